// transactions_load HOST PORT BROKER_PID TOPIC [NAME=VALUE]...: transactions as raw frames, for transactions.py.
//
// One thread, one epoll, closed loops: a connection has one request in flight. mode=0: transactions, each connection with
// a transactional id of its own. mode=1: plain produces. mode=2: opens `open` transactions, says so, ends them by abort
// when the standard input ends. Prints lines "NAME key=value...". The protocol is that of a current client (KIP-890,
// version 2): no AddPartitionsToTxn, Produce v12, EndTxn v5, whose answer gives the epoch of the next transaction.
#include <nmmintrin.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "raw_frames.hpp"

namespace {

using raw::Answer;
using raw::broker_cpu;
using raw::Clock;
using raw::fail;
using raw::Frame;
using raw::Options;
using raw::seconds_since;
using raw::Time;

constexpr auto kPause = std::chrono::milliseconds(20);
constexpr int kTimeoutMs = 15 * 60 * 1000;  // the most that a broker allows by default
constexpr size_t kHeader = 61;
constexpr size_t kCrc = 17;
constexpr size_t kChecked = 21;  // what the CRC covers begins here
constexpr size_t kProducer = 43;

/// Not there yet, or the last transaction is still being ended.
bool again(int16_t error) {
  switch (error) {
    case 3:   // UNKNOWN_TOPIC_OR_PARTITION
    case 5:   // LEADER_NOT_AVAILABLE
    case 6:   // NOT_LEADER_OR_FOLLOWER
    case 7:   // REQUEST_TIMED_OUT
    case 13:  // NETWORK_EXCEPTION
    case 14:  // COORDINATOR_LOAD_IN_PROGRESS
    case 15:  // COORDINATOR_NOT_AVAILABLE
    case 16:  // NOT_COORDINATOR
    case 19:  // NOT_ENOUGH_REPLICAS: what Kafka makes of some of the others
    case 51:  // CONCURRENT_TRANSACTIONS
      return true;
    default:
      return false;
  }
}

__attribute__((target("sse4.2"))) uint32_t crc32c(const char* data, size_t size) {
  uint64_t crc = 0xffffffff;
  for (; size >= 8; data += 8, size -= 8) {
    uint64_t word = 0;
    std::memcpy(&word, data, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto rest = static_cast<uint32_t>(crc);
  for (; size > 0; ++data, --size) {
    rest = _mm_crc32_u8(rest, static_cast<uint8_t>(*data));
  }
  return ~rest;
}

template <class T>
void put(std::string& bytes, size_t at, T value) {
  for (size_t octet = 0; octet < sizeof(T); ++octet) {
    bytes[at + octet] = static_cast<char>(static_cast<uint64_t>(value) >> (8 * (sizeof(T) - 1 - octet)));
  }
}

void append_zigzag(std::string& bytes, int64_t value) {
  uint64_t left = static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
  for (; left >= 0x80; left >>= 7) {
    bytes.push_back(static_cast<char>(left | 0x80));
  }
  bytes.push_back(static_cast<char>(left));
}

/// One batch of one record of `value` bytes, of no producer yet.
std::string batch_of(size_t value, bool transactional) {
  std::string record(3, '\0');  // attributes, deltas of time and offset
  append_zigzag(record, -1);    // no key
  append_zigzag(record, static_cast<int64_t>(value));
  record.append(value, 'x');
  append_zigzag(record, 0);  // no headers
  std::string bytes(kHeader, '\0');
  append_zigzag(bytes, static_cast<int64_t>(record.size()));
  bytes += record;
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch()).count();
  put<int32_t>(bytes, 8, static_cast<int32_t>(bytes.size() - 12));
  put<int32_t>(bytes, 12, -1);
  bytes[16] = 2;
  put<int16_t>(bytes, kChecked, transactional ? 0x10 : 0);
  put<int64_t>(bytes, 27, now);
  put<int64_t>(bytes, 35, now);
  put<int64_t>(bytes, kProducer, -1);
  put<int16_t>(bytes, kProducer + 8, -1);
  put<int32_t>(bytes, kProducer + 10, -1);
  put<int32_t>(bytes, 57, 1);
  put<uint32_t>(bytes, kCrc, crc32c(bytes.data() + kChecked, bytes.size() - kChecked));
  return bytes;
}

/// The producer's first batch of an epoch.
void set_producer(std::string& batch, int64_t producer, int16_t epoch) {
  put(batch, kProducer, producer);
  put(batch, kProducer + 8, epoch);
  put<int32_t>(batch, kProducer + 10, 0);
  put<uint32_t>(batch, kCrc, crc32c(batch.data() + kChecked, batch.size() - kChecked));
}

enum class Step { kInit, kProduce, kEnd, kIdle };

/// One connection, and the transactional id that it works for now.
struct Worker {
  size_t connection = 0;
  std::string id;
  int64_t producer = -1;
  int16_t epoch = -1;
  Step step = Step::kIdle;
  std::vector<int32_t> partitions;
  std::string frame;   // in flight, or to be sent again
  Time begun = {};     // the step was first sent
  Time produced = {};  // the transaction's Produce was
  std::vector<std::pair<std::string, std::pair<int64_t, int16_t>>> held;  // open transactions: id, producer, epoch
  size_t waiting = 0;                                                     // ids that are still to be opened or ended
};

class Load {
 public:
  explicit Load(const Options& options) : options_(options), connections_(options.host, options.port) {
    workers_.resize(static_cast<size_t>(options_["connections"]));
    const auto all = static_cast<size_t>(options_["topic_partitions"]);
    const auto each = static_cast<size_t>(options_["partitions"]);
    for (size_t at = 0; at < workers_.size(); ++at) {
      workers_[at].connection = connections_.open();
      workers_[at].id = id_of(at);
      for (size_t count = 0; count < each; ++count) {
        workers_[at].partitions.push_back(static_cast<int32_t>((at * each + count) % all));
      }
    }
  }

  void transactions() {
    batch_ = batch_of(static_cast<size_t>(options_["record"]), true);
    run(&Load::next_transaction);
    for (size_t at = 0; at < workers_.size(); ++at) {
      begin(at, Step::kInit, init_frame(at));
    }
    measure("transactions");
  }

  void plain() {
    batch_ = batch_of(static_cast<size_t>(options_["record"]), false);
    run(&Load::next_plain);
    for (size_t at = 0; at < workers_.size(); ++at) {
      next_plain(at);
    }
    measure("plain");
  }

  void hold() {
    batch_ = batch_of(static_cast<size_t>(options_["record"]), true);
    run(&Load::next_open);
    const auto total = static_cast<size_t>(options_["open"]);
    const size_t count = workers_.size();
    for (size_t at = 0; at < count; ++at) {
      workers_[at].waiting = total / count + (at < total % count ? 1 : 0);
    }
    all("open", total);
    char octet = 0;
    while (read(STDIN_FILENO, &octet, 1) > 0) {
    }
    run(&Load::next_abort);
    for (Worker& worker : workers_) {
      worker.waiting = worker.held.size();
    }
    all("aborted", total);
  }

 private:
  using Next = void (Load::*)(size_t);

  void run(Next next) { next_ = next; }

  std::string id_of(size_t number) const {
    return "bench-" + std::to_string(options_["run"]) + "-" + std::to_string(number);
  }

  std::string init_frame(size_t at) const {
    Frame frame(22, 5, static_cast<uint32_t>(at), true);
    frame.compact(workers_[at].id).number<int32_t>(kTimeoutMs).number<int64_t>(-1).number<int16_t>(-1).no_tags();
    return frame.done();
  }

  std::string produce_frame(size_t at, bool transactional) {
    Worker& worker = workers_[at];
    Frame frame(0, 12, static_cast<uint32_t>(at), true);
    if (transactional) {
      set_producer(batch_, worker.producer, worker.epoch);
      frame.compact(worker.id);
    } else {
      frame.compact_null();
    }
    frame.number<int16_t>(transactional ? -1 : 1).number<int32_t>(30000);
    frame.compact_count(1).compact(options_.topic).compact_count(worker.partitions.size());
    for (const int32_t partition : worker.partitions) {
      frame.number(partition).compact(batch_).no_tags();
    }
    frame.no_tags().no_tags();
    return frame.done();
  }

  std::string end_frame(size_t at, bool commit) const {
    const Worker& worker = workers_[at];
    Frame frame(26, 5, static_cast<uint32_t>(at), true);
    frame.compact(worker.id).number(worker.producer).number(worker.epoch).number<int8_t>(commit ? 1 : 0).no_tags();
    return frame.done();
  }

  void begin(size_t at, Step step, std::string frame) {
    Worker& worker = workers_[at];
    worker.step = step;
    worker.frame = std::move(frame);
    worker.begun = Clock::now();
    ++busy_;
    connections_.send(worker.connection, worker.frame);
  }

  /// After an answer without an error, or before the first request.
  void next_transaction(size_t at) {
    Worker& worker = workers_[at];
    if (worker.step == Step::kProduce) {
      worker.produced = worker.begun;
      begin(at, Step::kEnd, end_frame(at, true));
      return;
    }
    if (worker.step == Step::kEnd) {
      ++done_;
      ++total_;
      ends_.push_back(raw::micros_since(worker.begun));
      wholes_.push_back(raw::micros_since(worker.produced));
    }
    if (stopping_) {
      worker.step = Step::kIdle;
    } else {
      begin(at, Step::kProduce, produce_frame(at, true));
    }
  }

  void next_plain(size_t at) {
    Worker& worker = workers_[at];
    if (worker.step == Step::kProduce) {
      ++done_;
      ++total_;
      wholes_.push_back(raw::micros_since(worker.begun));
    }
    if (stopping_) {
      worker.step = Step::kIdle;
      return;
    }
    const auto all = static_cast<int32_t>(options_["topic_partitions"]);
    worker.partitions.assign(1, static_cast<int32_t>(at) % all);
    begin(at, Step::kProduce, produce_frame(at, false));
  }

  void next_open(size_t at) {
    Worker& worker = workers_[at];
    if (worker.step == Step::kInit) {
      const auto all = static_cast<size_t>(options_["topic_partitions"]);
      worker.partitions.assign(1, static_cast<int32_t>((at + worker.held.size() * workers_.size()) % all));
      begin(at, Step::kProduce, produce_frame(at, true));
      return;
    }
    if (worker.step == Step::kProduce) {
      worker.held.push_back({worker.id, {worker.producer, worker.epoch}});
      ++done_;
    }
    worker.step = Step::kIdle;
    if (worker.waiting > 0) {
      --worker.waiting;
      worker.id = id_of(at + worker.held.size() * workers_.size());
      begin(at, Step::kInit, init_frame(at));
    }
  }

  void next_abort(size_t at) {
    Worker& worker = workers_[at];
    done_ += worker.step == Step::kEnd ? 1 : 0;
    worker.step = Step::kIdle;
    if (worker.waiting > 0) {
      const auto& [id, producer] = worker.held[--worker.waiting];
      worker.id = id;
      std::tie(worker.producer, worker.epoch) = producer;
      begin(at, Step::kEnd, end_frame(at, false));
    }
  }

  /// The first error of a Produce v12 answer.
  int16_t produce_error(Answer& answer) {
    int16_t found = 0;
    for (size_t topics = answer.compact_count(); topics > 0; --topics) {
      answer.skip_compact_text();
      for (size_t partitions = answer.compact_count(); partitions > 0; --partitions) {
        answer.number<int32_t>();
        const auto error = answer.number<int16_t>();
        found = found == 0 || (again(found) && !again(error) && error != 0) ? error : found;
        answer.number<int64_t>();
        answer.number<int64_t>();
        answer.number<int64_t>();
        for (size_t records = answer.compact_count(); records > 0; --records) {
          answer.number<int32_t>();
          answer.skip_compact_text();
          answer.skip_tags();
        }
        answer.skip_compact_text();
        answer.skip_tags();
      }
      answer.skip_tags();
    }
    return found;
  }

  void answered(const std::string& bytes) {
    Answer answer(bytes);
    const auto at = static_cast<size_t>(answer.number<uint32_t>());
    Worker& worker = workers_.at(at);
    answer.skip_tags();
    int16_t error = 0;
    if (worker.step == Step::kProduce) {
      error = produce_error(answer);
    } else {
      answer.number<int32_t>();
      error = answer.number<int16_t>();
    }
    if (again(error)) {
      ++(error == 51 ? concurrent_ : retries_);
      later_.push_back({Clock::now() + kPause, at});
      return;
    }
    if (error != 0) {
      fail("step " + std::to_string(static_cast<int>(worker.step)) + " of " + worker.id + ": error " +
           std::to_string(error));
    }
    if (worker.step != Step::kProduce) {  // InitProducerId and EndTxn give the next transaction's producer
      worker.producer = answer.number<int64_t>();
      worker.epoch = answer.number<int16_t>();
    }
    --busy_;
    (this->*next_)(at);
  }

  void turn() {
    while (!later_.empty() && later_.front().first <= Clock::now()) {
      const Worker& worker = workers_[later_.front().second];
      later_.pop_front();
      connections_.send(worker.connection, worker.frame);
    }
    connections_.pump(later_.empty() ? 100 : 1, [this](const std::string& frame) { answered(frame); });
  }

  void warm_up() {
    const Time begin = Clock::now();
    while (seconds_since(begin) < options_["warm_s"]) {
      turn();
    }
    ends_.clear();
    wholes_.clear();
    done_ = concurrent_ = retries_ = 0;
  }

  void measure(const char* name) {
    warm_up();
    const double cpu = broker_cpu(options_.broker);
    const Time begin = Clock::now();
    while (seconds_since(begin) < options_["secs"] || (done_ == 0 && seconds_since(begin) < 60)) {
      turn();
    }
    const double wall = seconds_since(begin);
    const double used = broker_cpu(options_.broker) - cpu;
    report(name, wall, used);
    if (done_ == 0) {
      fail(std::string(name) + ": not one in a minute");
    }
    stopping_ = true;  // what is under way is ended
    while (busy_ > 0 && seconds_since(begin) < options_["secs"] + 60) {
      turn();
    }
    if (busy_ > 0) {
      fail(std::string(name) + ": no answer for a minute");
    }
    std::printf("total done=%zu\n", total_);  // with those of the warm-up and the last ones
  }

  /// Runs the workers until `total` are done.
  void all(const char* name, size_t total) {
    done_ = concurrent_ = retries_ = 0;
    const double cpu = broker_cpu(options_.broker);
    const Time begin = Clock::now();
    for (size_t at = 0; at < workers_.size(); ++at) {
      workers_[at].step = Step::kIdle;
      (this->*next_)(at);
    }
    while (done_ < total) {
      turn();
      if (seconds_since(begin) > 600) {
        fail(std::string(name) + ": only " + std::to_string(done_) + " of " + std::to_string(total));
      }
    }
    report(name, seconds_since(begin), broker_cpu(options_.broker) - cpu);
  }

  void report(const char* name, double wall, double cpu) {
    const auto count = static_cast<double>(std::max<size_t>(done_, 1));
    std::printf("%s done=%zu seconds=%.2f rate=%.1f cpu_s=%.2f cpu_us=%.2f ", name, done_, wall,
                static_cast<double>(done_) / wall, cpu, 1e6 * cpu / count);
    std::printf("p50_us=%.0f p99_us=%.0f max_us=%.0f ", raw::quantile(wholes_, 0.5), raw::quantile(wholes_, 0.99),
                raw::quantile(wholes_, 1));
    std::printf("commit_p50_us=%.0f commit_p99_us=%.0f concurrent=%zu retries=%zu\n", raw::quantile(ends_, 0.5),
                raw::quantile(ends_, 0.99), concurrent_, retries_);
    std::fflush(stdout);
  }

  const Options& options_;
  raw::Connections connections_;
  std::vector<Worker> workers_;
  std::string batch_;
  std::deque<std::pair<Time, size_t>> later_;  // workers that send again, and when
  std::vector<double> ends_;                   // microseconds
  std::vector<double> wholes_;
  Next next_ = nullptr;
  size_t busy_ = 0;  // workers with a request under way
  size_t done_ = 0;  // since the phase began
  size_t total_ = 0;
  size_t concurrent_ = 0;
  size_t retries_ = 0;
  bool stopping_ = false;
};

}  // namespace

int main(int count, char** arguments) {
  const Options options(count, arguments,
                        {{"mode", 0}, {"connections", 1}, {"partitions", 1}, {"topic_partitions", 100}, {"record", 100},
                         {"warm_s", 2}, {"secs", 5}, {"open", 10000}, {"run", 0}});
  Load load(options);
  if (options["mode"] == 0) {
    load.transactions();
  } else if (options["mode"] == 1) {
    load.plain();
  } else {
    load.hold();
  }
}
