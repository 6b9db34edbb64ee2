// A producer in a thread of its own that numbers what it sends to each partition of a topic and
// keeps what became of each record. Construct, let it run, finish(), then look at sent();
// acknowledged() and failure() at any time.
#pragma once

#include <atomic>
#include <thread>

#include "client.hpp"

namespace kanal::e2e {

enum class Promise {
  kExactlyOnce,  // idempotent: every record arrives, once, in order
  kAtMostOnce,   // acks=all and no retries: what is reported as stored is there; nothing twice; in
                 // order
  kAtLeastOnce,  // acks=all, retries, one request in flight: every record arrives; in order but for
                 // repeats, and after refusals
};

struct LoadOptions {
  int id = 0;  // in every record
  std::string topic = {};
  int partitions = 1;
  Promise promise = Promise::kExactlyOnce;
  // By a broker that goes on: librdkafka has built the next request by then, whatever may be in
  // flight (rd_kafka_broker_outbufs_space), and sends it before it repeats what was refused.
  bool may_be_refused = false;
};

struct Sent {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__IN_PROGRESS;
  std::int64_t offset = RD_KAFKA_OFFSET_INVALID;
};

/// What a record of load `id` with number `n` of its partition holds; no two are the same.
std::string load_value(int id, std::int32_t partition, std::size_t n);
struct LoadNumber {
  int id = -1;
  std::int32_t partition = -1;
  std::size_t n = 0;
};
/// Of a value made by load_value; `id` -1 for anything else.
LoadNumber parse_load_value(const std::string& value);

class Load {
 public:
  Load(const std::string& address, LoadOptions options);
  ~Load();

  [[nodiscard]] std::size_t acknowledged() const { return acknowledged_; }
  /// Sends no more and waits until everything is reported.
  void finish();
  /// By partition and number.
  [[nodiscard]] const std::vector<std::vector<Sent>>& sent() const { return sent_; }
  [[nodiscard]] const LoadOptions& options() const { return options_; }

 private:
  void run();
  void on_delivery(std::size_t tag, const Delivery& delivery);

  const LoadOptions options_;
  std::vector<std::vector<Sent>> sent_;
  std::atomic<std::size_t> acknowledged_{0};
  std::atomic<bool> stopping_{false};
  Producer producer_;
  std::thread thread_;
};

}  // namespace kanal::e2e
