// What the log's tests share: a faulty disk, a clock set by hand, helpers that run when told, and
// small batches. One thread.
#pragma once

#include "support/memory_file_system.hpp"

#include "kanal/log/partition.hpp"
#include "kanal/records/build.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kanal::log::test {

class QueueExecutor final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override { queue_.push_back(std::move(work)); }
  void run() {
    while (!queue_.empty()) {
      auto work = std::move(queue_.front());
      queue_.pop_front();
      work();
    }
  }
  /// The oldest, for somebody else to run.
  std::move_only_function<void()> take() {
    auto work = std::move(queue_.front());
    queue_.pop_front();
    return work;
  }
  void forget() { queue_.clear(); }  // the process was killed
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }

 private:
  std::deque<std::move_only_function<void()>> queue_;
};

class HandClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return now_; }
  [[nodiscard]] Timestamp wall() const noexcept override { return wall_; }
  void set(std::int64_t wall_ms) { wall_ = Timestamp(wall_ms); }
  /// Both clocks go on.
  void pass(std::chrono::milliseconds time) {
    now_ += time;
    wall_ = wall_ + time.count();
  }

 private:
  Time now_{};
  Timestamp wall_{1'700'000'000'000};
};

class RecordingSink final : public CommitSink {
 public:
  void committed(std::span<const Progress> progress) noexcept override {
    commits.insert(commits.end(), progress.begin(), progress.end());
  }
  void lost(std::span<const Loss> news) noexcept override {
    losses.insert(losses.end(), news.begin(), news.end());
  }
  std::vector<Progress> commits;
  std::vector<Loss> losses;
};

struct BatchSpec {
  std::int32_t records = 1;
  std::int64_t timestamp = 1000;  // of the first record; the others have it too
  std::int64_t producer = -1;
  std::int16_t epoch = -1;
  std::int32_t sequence = -1;
  std::string value = "value";
  bool log_append_time = false;
  bool transactional = false;
};

inline Buffer make_batch(const BatchSpec& spec) {
  records::BatchOptions options;
  options.producer_id = ProducerId(spec.producer);
  options.producer_epoch = ProducerEpoch(spec.epoch);
  options.base_sequence = spec.sequence;
  options.transactional = spec.transactional;
  if (spec.log_append_time) options.log_append_time = Timestamp(spec.timestamp);
  records::BatchBuilder builder(options);
  for (std::int32_t i = 0; i < spec.records; ++i) {
    builder.add(Timestamp(spec.timestamp), std::nullopt, as_bytes(spec.value));
  }
  records::Deflater deflater;
  return builder.build(deflater).value();
}

/// A broker's worth of log: restarts keep the disk.
class World {
 public:
  explicit World(FileSystem* other = nullptr, std::string directory = "/data/channels")
      : directory_(std::move(directory)), files_(other != nullptr ? *other : disk) {
    (void)disk.create_directories("/data");
    (void)disk.sync_directory("/");
    start();
  }

  void start() {
    store_ = make_segment_store(files_, helpers, clock,
                                {directory_, max_open_files, journal_bytes, ++starts_, cut_damage});
    store_->start(sink);
    helpers.run();
  }
  /// As the broker stops: checkpoints, then one file for all.
  void stop(std::initializer_list<Partition*> partitions) {
    store_->prepare_stop();
    for (Partition* partition : partitions) {
      ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
    }
    ASSERT_TRUE(store_->stop({}));
    helpers.run();
  }
  /// kill -9, then a new process. Partition objects of the old one must be gone or kept aside.
  void kill() {
    helpers.forget();
    store_.reset();
    start();
  }

  Result<std::unique_ptr<Partition>> try_open(std::string_view topic = "t",
                                              std::int32_t index = 0) {
    report = {};
    const Opening opening{id(topic, index), ChannelHandle(handle_++), LeaderEpoch(epoch), options};
    return Partition::open(*store_, opening, &report);
  }
  std::unique_ptr<Partition> open(std::string_view topic = "t", std::int32_t index = 0) {
    auto opened = try_open(topic, index);
    EXPECT_TRUE(opened) << (opened ? "" : opened.error().detail);
    return opened ? std::move(*opened) : nullptr;
  }
  ChannelId id(std::string_view topic = "t", std::int32_t index = 0) const {
    ChannelId channel{channel_name(topic, PartitionIndex(index)), {}, PartitionIndex(index)};
    channel.topic_id.bytes[0] = incarnation;
    channel.topic_id.bytes[15] = 1;
    return channel;
  }
  std::string path(std::string_view name, std::string_view topic = "t") const {
    return directory_ + "/" + directory_name(id(topic)) + "/" + std::string(name);
  }

  Result<AppendResult> append(Partition& partition, const BatchSpec& spec = {}) {
    Buffer batch = make_batch(spec);
    return partition.append(batch, records::parse_header(batch).value(), clock.wall());
  }

  LogStore& store() { return *store_; }
  FileSystem& files() { return files_; }

  kanal::test::MemoryFileSystem disk;
  QueueExecutor helpers;
  HandClock clock;
  RecordingSink sink;
  LogOptions options;
  RecoveryReport report;
  std::int32_t epoch = 0;
  std::uint8_t incarnation = 7;
  std::size_t max_open_files = 1024;
  std::uint64_t journal_bytes = 128 << 10;
  bool cut_damage = false;

 private:
  const std::string directory_;
  FileSystem& files_;
  std::unique_ptr<LogStore> store_;
  std::uint32_t handle_ = 0;
  std::uint64_t starts_ = 0;
};

/// All bytes of the slices.
inline Buffer bytes_of(const std::vector<Slice>& slices) {
  Buffer all;
  for (const Slice& slice : slices) {
    const auto& file = std::get<FileSlice>(slice.where);
    Buffer part(file.length);
    EXPECT_EQ(file.file->read_at(file.offset, part).value(), part.size());
    kanal::append(all, part);
  }
  return all;
}

/// Base offsets of the batches in it; -1 for what is not a sound batch.
inline std::vector<std::int64_t> offsets_in(Bytes bytes) {
  std::vector<std::int64_t> offsets;
  while (!bytes.empty()) {
    const auto header = records::parse_header(bytes);
    if (!header || header->size() > bytes.size() ||
        !records::verify_crc(bytes.first(header->size()))) {
      offsets.push_back(-1);
      break;
    }
    offsets.push_back(header->base_offset.value());
    bytes = bytes.subspan(header->size());
  }
  return offsets;
}

struct Read {
  std::vector<std::int64_t> offsets;
  std::int64_t next = -1;
  std::size_t bytes = 0;
  ErrorCode error = ErrorCode::NONE;
  std::string detail;
  int misses = 0;
};

/// Reads as the broker does: a Miss is loaded and asked again.
inline Read read(World& world, Partition& partition, std::int64_t from,
                 std::uint32_t max_bytes = 1 << 20, bool at_least_one = true) {
  Read result;
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::vector<Slice> slices;
    const auto fetched = partition.read(Offset(from), {max_bytes, at_least_one, false}, slices);
    if (fetched) {
      const Buffer bytes = bytes_of(slices);
      EXPECT_EQ(bytes.size(), fetched->bytes);
      result.offsets = offsets_in(bytes);
      result.next = fetched->next.value();
      result.bytes = bytes.size();
      return result;
    }
    if (const auto* miss = std::get_if<Miss>(&fetched.error())) {
      ++result.misses;
      world.store().load(*miss,
                         [](Result<void> done) { EXPECT_TRUE(done) << done.error().detail; });
      world.helpers.run();
      continue;
    }
    result.error = std::get<Error>(fetched.error()).code;
    result.detail = std::get<Error>(fetched.error()).detail;
    return result;
  }
  ADD_FAILURE() << "reads never stop missing";
  return result;
}

/// Every record offset from `from` on, batch by batch to the end.
inline std::vector<std::int64_t> read_all(World& world, Partition& partition, std::int64_t from = 0,
                                          std::uint32_t max_bytes = 300) {
  std::vector<std::int64_t> offsets;
  while (from < partition.watermarks().high_watermark.value()) {
    const Read part = read(world, partition, from, max_bytes);
    EXPECT_EQ(part.error, ErrorCode::NONE) << part.detail;
    if (part.next <= from) {
      ADD_FAILURE() << "no progress at " << from;
      break;
    }
    offsets.insert(offsets.end(), part.offsets.begin(), part.offsets.end());
    from = part.next;
  }
  return offsets;
}

/// find or find_max with loads.
template <class Find>
std::optional<TimePosition> found(World& world, Find&& find) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto result = find();
    if (result) return *result;
    const auto* miss = std::get_if<Miss>(&result.error());
    if (miss == nullptr) {
      ADD_FAILURE() << std::get<Error>(result.error()).detail;
      return std::nullopt;
    }
    world.store().load(*miss, [](Result<void> done) { EXPECT_TRUE(done) << done.error().detail; });
    world.helpers.run();
  }
  ADD_FAILURE() << "never found";
  return std::nullopt;
}

}  // namespace kanal::log::test
