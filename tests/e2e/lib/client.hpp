// librdkafka's C API behind a few plain calls: producer, consumer with assigned partitions,
// administration. What the tests do not expect is thrown as std::runtime_error. An object is used
// by one thread at a time; a producer's on_delivery runs in the thread that calls send, poll or
// flush. Timestamps are milliseconds since 1970; offsets may be librdkafka's
// RD_KAFKA_OFFSET_BEGINNING and so on.
#pragma once

#include <librdkafka/rdkafka.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kanal::e2e {

using Settings = std::map<std::string, std::string>;  // librdkafka's
using Headers = std::vector<std::pair<std::string, std::optional<std::string>>>;
using Bytes = std::optional<std::string>;  // nothing: null
using std::chrono::milliseconds;
constexpr milliseconds kPatience{20'000};  // for what must happen; only a failure takes this long

struct HandleDeleter {
  void operator()(rd_kafka_t* handle) const { rd_kafka_destroy(handle); }
};
using Handle = std::unique_ptr<rd_kafka_t, HandleDeleter>;

struct Record {
  std::string topic = {};
  std::int32_t partition = 0;
  Bytes key = {}, value = {};
  Headers headers = {};
  std::int64_t timestamp = 0;  // 0 at the producer: now
  std::int64_t offset = RD_KAFKA_OFFSET_INVALID;
  rd_kafka_timestamp_type_t timestamp_type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
};

struct Delivery {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  std::int32_t partition = -1;
  std::int64_t offset = RD_KAFKA_OFFSET_INVALID;
  std::int64_t timestamp = -1;
  rd_kafka_timestamp_type_t timestamp_type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  rd_kafka_msg_status_t status = RD_KAFKA_MSG_STATUS_NOT_PERSISTED;
};

class Producer {
 public:
  explicit Producer(const std::string& address, const Settings& settings = {});
  ~Producer();

  /// Queued; while the queue is full, waits. `tag` comes back in on_delivery.
  rd_kafka_resp_err_t send(const Record& record, std::size_t tag = 0);
  /// Runs the callbacks of what was reported until now.
  void poll(milliseconds wait = {});
  /// All reports so far in their order, after everything was reported.
  const std::vector<Delivery>& flush();
  /// One record there and back.
  Delivery deliver(const Record& record);
  /// Takes the place of collecting for flush().
  std::function<void(std::size_t tag, const Delivery&)> on_delivery;
  [[nodiscard]] rd_kafka_t* handle() const { return handle_.get(); }

 private:
  void delivered(const rd_kafka_message_t& message);

  std::vector<Delivery> deliveries_;
  Handle handle_;
};

struct Position {
  std::string topic = {};
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

class Consumer {
 public:
  explicit Consumer(const std::string& address, const Settings& settings = {});
  ~Consumer();

  void assign(const std::vector<Position>& positions);
  void seek(const Position& position);
  /// The next record; nothing after `wait`. Errors are thrown, the end of a partition is not one.
  std::optional<Record> poll(milliseconds wait);
  /// As poll, but an error ends up in `error` too: an out-of-range offset is one.
  std::optional<Record> poll(milliseconds wait, rd_kafka_resp_err_t& error);
  /// Exactly `count` records.
  std::vector<Record> read(std::size_t count);
  /// Everything up to the end of each assigned partition.
  std::vector<Record> read_to_end();
  /// {first offset, offset after the last}, asked of the broker.
  std::pair<std::int64_t, std::int64_t> bounds(const std::string& topic, std::int32_t partition);
  std::int64_t offset_for_time(const std::string& topic, std::int32_t partition, std::int64_t time);

 private:
  std::size_t assigned_ = 0, ended_ = 0;
  Handle handle_;
};

struct Outcome {
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
  std::string text = {};
  [[nodiscard]] bool ok() const { return code == RD_KAFKA_RESP_ERR_NO_ERROR; }
};

struct NewTopic {
  std::string name = {};
  int partitions = 1;
  Settings configs = {};
  int replication = 1;
  bool validate_only = false;
};

struct TopicInfo {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  std::vector<std::int32_t> leaders;  // by partition; -1 where a partition has an error
};

struct ClusterInfo {
  std::map<std::string, TopicInfo> topics;
  std::vector<std::pair<std::int32_t, std::string>> brokers;  // id, host:port
};

class Admin {
 public:
  explicit Admin(const std::string& address, const Settings& settings = {});

  Outcome create(const NewTopic& topic, milliseconds timeout = kPatience);
  Outcome remove(const std::string& topic, milliseconds timeout = kPatience);
  Outcome grow(const std::string& topic, int total, milliseconds timeout = kPatience);
  /// Everything below `before` in one partition; the new first offset.
  std::int64_t delete_records(const std::string& topic, std::int32_t partition, std::int64_t before,
                              milliseconds timeout = kPatience);
  Settings describe(const std::string& topic, milliseconds timeout = kPatience);
  /// All that is set on the topic from now on (AlterConfigs).
  Outcome alter(const std::string& topic, const Settings& configs,
                milliseconds timeout = kPatience);
  /// All topics, or the one named.
  ClusterInfo metadata(const std::string& topic = {});
  std::string cluster_id();
  [[nodiscard]] rd_kafka_t* handle() const { return handle_.get(); }

 private:
  Handle handle_;
};

/// `conf` is taken.
Handle connect(rd_kafka_type_t type, rd_kafka_conf_t* conf, const std::string& address,
               const Settings& settings);
[[noreturn]] void fail(const std::string& what, rd_kafka_resp_err_t error);
std::int64_t now_ms();

}  // namespace kanal::e2e
