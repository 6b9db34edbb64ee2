// What a partition costs in memory, and that appending and reading at the end allocate next to
// nothing. The whole program's allocations are counted here.
#include "world.hpp"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <new>

namespace {

std::atomic<std::size_t> allocations = 0;
std::atomic<std::int64_t> live_bytes = 0;

void* counted(std::size_t size) {
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  ++allocations;
  live_bytes +=
      static_cast<std::int64_t>(malloc_usable_size(memory)) + 8;  // and the allocator's own word
  return memory;
}

void released(void* memory) noexcept {
  if (memory == nullptr) return;
  live_bytes -= static_cast<std::int64_t>(malloc_usable_size(memory)) + 8;
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) {
  return counted(size);
}
void* operator new[](std::size_t size) {
  return counted(size);
}
void operator delete(void* memory) noexcept {
  released(memory);
}
void operator delete[](void* memory) noexcept {
  released(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  released(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  released(memory);
}

namespace kanal::log::test {
namespace {

constexpr int kPartitions = 500;

TEST(Memory, AnIdlePartitionTakesAKibibyte) {
  World world;
  std::vector<std::unique_ptr<Partition>> partitions;
  partitions.reserve(kPartitions);
  partitions.push_back(world.open("a-topic-with-a-usual-name", 0));
  std::int64_t before = live_bytes;
  for (int i = 1; i < kPartitions; ++i)
    partitions.push_back(world.open("a-topic-with-a-usual-name", i));
  const std::int64_t empty = (live_bytes - before) / (kPartitions - 1);
  EXPECT_LE(empty, 1024);
  for (auto& partition : partitions) ASSERT_TRUE(world.append(*partition));
  world.store().prepare_stop();
  for (auto& partition : partitions)
    ASSERT_TRUE(partition->log().checkpoint(partition->checkpoint()));
  ASSERT_TRUE(world.store().stop({}));
  partitions.clear();
  world.kill();
  partitions.push_back(world.open("a-topic-with-a-usual-name", 0));
  before = live_bytes;
  for (int i = 1; i < kPartitions; ++i)
    partitions.push_back(world.open("a-topic-with-a-usual-name", i));
  // What the last shutdown left in memory for them is given back meanwhile.
  const std::int64_t with_records = (live_bytes - before) / (kPartitions - 1);
  EXPECT_LE(with_records, 1280);
  RecordProperty("bytes_empty", std::to_string(empty));
  RecordProperty("bytes_with_records", std::to_string(with_records));
}

TEST(Memory, AppendingAndReadingAtTheEndAllocateNextToNothing) {
  std::string root = (std::filesystem::temp_directory_path() / "kanal-memory-XXXXXX").string();
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  {
    const auto files = make_system_file_system();
    World world(files.get(), root + "/channels");
    auto partition = world.open();
    std::vector<Slice> slices;
    slices.reserve(16);
    ASSERT_TRUE(world.append(*partition, {.producer = 1, .epoch = 0, .sequence = 0}));
    std::size_t counted = 0;
    for (int i = 1; i <= 1000; ++i) {
      Buffer batch = make_batch({.producer = 1, .epoch = 0, .sequence = i});
      const auto header = records::parse_header(batch).value();
      const Offset from = partition->watermarks().high_watermark;
      slices.clear();
      const std::size_t before = allocations;
      const bool nothing = partition->read(from, {1 << 20, true, false}, slices).has_value();
      const bool appended = partition->append(batch, header, Timestamp(1)).has_value();
      const bool read = partition->read(from, {1 << 20, true, false}, slices).has_value();
      counted += allocations - before;
      ASSERT_TRUE(nothing && appended && read);
      ASSERT_EQ(slices.size(), 1U);
    }
    EXPECT_LE(counted, 10U);  // the index grows now and then
  }
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace kanal::log::test
