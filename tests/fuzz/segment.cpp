// A channel directory after any damage: the log opens or says why not, what it opens is dense,
// readable and goes on, and the next start finds the same. The input is a small program: the first
// bytes say which files to damage and how, the rest is what is written over them. Checksums of the
// side files are made right again now and then, so that decoders are met too.
#include "support/memory_file_system.hpp"

#include "kanal/base/logging.hpp"
#include "kanal/log/partition.hpp"
#include "kanal/records/build.hpp"

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>

namespace {

using namespace kanal;

class Helpers final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override { queue_.push_back(std::move(work)); }
  void run() {
    while (!queue_.empty()) {
      auto work = std::move(queue_.front());
      queue_.pop_front();
      work();
    }
  }

 private:
  std::deque<std::move_only_function<void()>> queue_;
};

class StillClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return {}; }
  [[nodiscard]] Timestamp wall() const noexcept override { return Timestamp(1); }
};

class Sink final : public log::CommitSink {
 public:
  void committed(std::span<const log::Progress>) noexcept override {}
  void lost(std::span<const log::Loss>) noexcept override {}
};

void require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "broken: " << what << '\n';
  std::abort();
}

const ChannelId kChannel{"kafka.f", Uuid{{1}}, PartitionIndex(0)};

struct Process {  // one run of a broker over the disk
  explicit Process(FileSystem& files)
      : store(log::make_segment_store(files, helpers, clock, {"/data/channels", 8})) {
    store->start(sink);
    helpers.run();
  }
  Result<std::unique_ptr<log::Partition>> open() {
    log::LogOptions options;
    options.segment_bytes = 500;
    options.index_interval_bytes = 150;
    const log::Opening opening{kChannel, ChannelHandle(0), LeaderEpoch(1), options};
    return log::Partition::open(*store, opening, nullptr);
  }
  Result<Offset> append(log::Partition& partition, int number) {
    records::BatchOptions options;
    options.producer_id = ProducerId(number % 3 == 0 ? 5 : -1);
    options.producer_epoch = ProducerEpoch(0);
    records::BatchBuilder builder(options);
    builder.add(Timestamp(number), std::nullopt, as_bytes("a value of some length"));
    records::Deflater deflater;
    Buffer batch = builder.build(deflater).value();
    auto header = records::parse_header(batch).value();
    if (header.has_producer_id()) {
      header.base_sequence = number / 3;
      store_be(batch.data() + records::at::kBaseSequence, header.base_sequence);
      records::seal(batch);
    }
    const auto done = partition.append(batch, header, Timestamp(number));
    helpers.run();
    if (!done) return std::unexpected(done.error());
    return done->base_offset;
  }

  Helpers helpers;
  StillClock clock;
  Sink sink;
  std::unique_ptr<log::LogStore> store;
};

/// Offsets of all readable batches; false where a read is refused.
bool read_all(Process& process, log::Partition& partition) {
  std::int64_t from = partition.watermarks().log_start.value();
  for (int misses = 0; from < partition.watermarks().high_watermark.value();) {
    std::vector<log::Slice> slices;
    const auto fetched = partition.read(Offset(from), {400, true, false}, slices);
    if (!fetched) {
      const auto* miss = std::get_if<log::Miss>(&fetched.error());
      if (miss == nullptr || ++misses > 200) return false;
      bool loaded = true;
      process.store->load(*miss, [&](Result<void> done) { loaded = done.has_value(); });
      process.helpers.run();
      if (!loaded) return false;
      continue;
    }
    require(fetched->next.value() > from, "a read gets on");
    from = fetched->next.value();
  }
  return true;
}

/// Puts the checksum of a blob right; see src/log/blob.hpp.
void seal_blob(Buffer& bytes, std::size_t begin, std::size_t size) {
  if (size < 4 || begin + size > bytes.size()) return;
  const std::uint32_t crc = records::crc32c(Bytes(bytes).subspan(begin, size - 4));
  store_be(bytes.data() + begin + size - 4, crc);
}

/// Whether a side file has other content under a right checksum, which no disk does.
bool damage(test::MemoryFileSystem& disk, Bytes& program) {
  bool forged = false;
  const std::vector<std::string> files = disk.files();
  while (program.size() >= 5) {
    const Bytes head = program.first(5);
    const auto at = [&](std::size_t i) { return static_cast<std::size_t>(head[i]); };
    const std::string& path = files[at(0) % files.size()];
    Buffer bytes = disk.content(path).value_or(Buffer{});
    const std::size_t position = bytes.empty() ? 0 : (at(1) << 8 | at(2)) % (bytes.size() + 1);
    const std::size_t count = std::min<std::size_t>(at(4) % 24, program.size() - 5);
    const Bytes content = program.subspan(5, count);
    program = program.subspan(5 + count);
    const auto where = bytes.begin() + static_cast<std::ptrdiff_t>(position);
    switch (at(3) % 7) {
      case 0:
        std::copy_n(content.begin(), std::min<std::size_t>(count, bytes.size() - position), where);
        break;
      case 1:
        bytes.resize(position);
        break;
      case 2:
        bytes.insert(where, content.begin(), content.end());
        break;
      case 3:
        bytes.insert(where, count * 20, std::byte{0});
        break;
      case 4:
        bytes.erase(where,
                    where + static_cast<std::ptrdiff_t>(std::min(count, bytes.size() - position)));
        break;
      case 5:
        disk.erase(path);
        continue;
      default:
        std::copy_n(content.begin(), std::min<std::size_t>(count, bytes.size() - position), where);
        if (path.ends_with("/channel")) {
          seal_blob(bytes, 0, 56);
          seal_blob(bytes, 512, 56);
        } else if (path.ends_with(".log")) {
          if (bytes.size() >= 200) records::seal(bytes);
        } else {
          seal_blob(bytes, 0, bytes.size());
        }
        forged |= !path.ends_with(".log");
    }
    disk.set_content(path, bytes);
  }
  return forged;
}

/// Damage that a read found closes the log until it is mended: nothing vouches for it any more. The
/// reader may yet have got all, where it asked again for as much as needs no batch's end.
bool a_read_found_damage(const test::MemoryFileSystem& disk) {
  return disk.content("/data/channels/kafka.f/rescan").has_value();
}

void next_start_finds_it(test::MemoryFileSystem& disk) {
  Process process(disk);
  const auto partition = process.open();
  require(!partition || read_all(process, **partition), "a start looks for what a read found");
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  (void)set_log_level("off");  // every damage is a warning
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes program{reinterpret_cast<const std::byte*>(data), size};
  if (program.size() < 6) return 0;
  const auto shape = static_cast<unsigned>(program.front());
  program = program.subspan(1);
  test::MemoryFileSystem disk;
  (void)disk.create_directories("/data");
  {
    Process process(disk);
    auto partition = process.open().value();
    for (int i = 0; i < 12; ++i) {
      require(process.append(*partition, i).has_value(), "a sound log takes records");
      if (i == 7 && (shape & 1) != 0)
        require(partition->log().checkpoint(partition->checkpoint()).has_value(), "checkpoint");
    }
    if ((shape & 2) != 0) require(partition->trim(Offset(4)).has_value(), "trim");
    process.helpers.run();
    if ((shape & 4) != 0) {
      process.store->prepare_stop();
      require(partition->log().checkpoint(partition->checkpoint()).has_value(), "last checkpoint");
      require(process.store->stop({}).has_value(), "stop");
    }
  }
  const bool forged = damage(disk, program);
  std::int64_t end = -1;
  {
    Process process(disk);
    auto partition = process.open();
    if (!partition) return 0;
    const bool readable = read_all(process, **partition);
    const auto base = process.append(**partition, 100);
    // What a clean shutdown or a checkpoint vouches for is trusted: damage there shows at the read,
    // which closes the log, or at the append.
    const bool closed = a_read_found_damage(disk);
    if (!base) require((shape & 4) != 0 || !readable || closed, "a log that was scanned takes records");
    if (!forged && closed) next_start_finds_it(disk);
    if (!base || !readable) return 0;
    end = base->value() + 1;
    require((*partition)->watermarks().high_watermark.value() == end, "the end moves");
  }
  if ((shape & 4) != 0) return 0;
  Process process(disk);
  auto partition = process.open();
  require(partition.has_value(), "what was recovered opens again");
  require((*partition)->watermarks().high_watermark.value() == end, "and has the same end");
  require(read_all(process, **partition), "and is readable");
  return 0;
}
