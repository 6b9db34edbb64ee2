// A few requests by hand, for what librdkafka does not show: error codes of one partition, producer
// ids. One blocking connection; a broken one throws std::runtime_error.
#pragma once

#include <cstdint>
#include <string>

namespace kanal::e2e {

class RawClient {
 public:
  explicit RawClient(const std::string& address);
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  /// InitProducerId 0 without a transactional id.
  std::int64_t new_producer_id();
  /// Error code of ListOffsets 1 (`time` -1: the end, -2: the start) and of Fetch 4.
  int list_offsets_error(const std::string& topic, std::int32_t partition, std::int64_t time);
  int fetch_error(const std::string& topic, std::int32_t partition, std::int64_t offset);

 private:
  std::string call(std::int16_t key, std::int16_t version, const std::string& body);

  int fd_ = -1;
};

}  // namespace kanal::e2e
