// The list of aborted transactions against a plain vector, over many chunks.
#include "aborted.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

namespace kanal::log {
namespace {

using All = std::vector<AbortedTransaction>;

/// Transactions as `producers` at a time leave them, every second one aborted.
All make(std::mt19937& random, std::size_t count, int producers) {
  All all;
  std::vector<std::int64_t> began(static_cast<std::size_t>(producers), -1);
  std::int64_t offset = 0;
  while (all.size() < count) {
    const std::size_t which = random() % began.size();
    offset += 1 + static_cast<std::int64_t>(random() % 5);
    if (began[which] < 0) {
      began[which] = offset;
      continue;
    }
    const std::int64_t first = std::exchange(began[which], -1);
    if (random() % 2 == 0) continue;
    std::int64_t stable = offset + 1;
    for (const std::int64_t other : began)
      if (other >= 0) stable = std::min(stable, other);
    all.push_back({ProducerId(static_cast<std::int64_t>(which) * 1000), Offset(first),
                   Offset(offset), Offset(stable)});
  }
  return all;
}

All in(const All& all, Offset from, Offset upto) {
  All found;
  for (const AbortedTransaction& one : all)
    if (one.last >= from && one.first < upto) found.push_back(one);
  return found;
}

All found(const AbortedTransactions& list, Offset from = Offset(0),
          Offset upto = to_offset(kLargestSequence)) {
  All all;
  list.find(from, upto, all);
  return all;
}

class AbortedTest : public ::testing::Test {
 protected:
  void fill(std::size_t count, int producers) {
    all = make(random, count, producers);
    for (const AbortedTransaction& one : all) list.add(one);
  }
  std::mt19937 random{7};
  AbortedTransactions list;
  All all;
};

TEST_F(AbortedTest, FindsThoseThatAPlainListFinds) {
  for (const int producers : {1, 3, 200}) {
    list = {};
    fill(3000, producers);
    EXPECT_EQ(found(list), all);
    const auto end = static_cast<unsigned>(all.back().last.value() + 10);
    for (int i = 0; i < 500; ++i) {
      const Offset from(static_cast<std::int64_t>(random() % end));
      const Offset upto = from + static_cast<std::int64_t>(random() % 3000);
      ASSERT_EQ(found(list, from, upto), in(all, from, upto)) << from.value();
    }
  }
}

TEST_F(AbortedTest, AddsAboutEightBytesATransaction) {
  fill(100'000, 10);
  EXPECT_LT(list.bytes(), 100'000U * 9);
}

TEST_F(AbortedTest, ATrimLeavesThoseWhoseMarkersAreThere) {
  fill(1000, 5);
  for (const std::size_t at : {0U, 1U, 127U, 128U, 500U, 999U}) {
    list.trim(all[at].last);
    EXPECT_EQ(found(list), in(all, all[at].last, to_offset(kLargestSequence))) << at;
    list.trim(Offset(0));  // goes nowhere
  }
  list.trim(all.back().last + 1);
  EXPECT_TRUE(found(list).empty());
  EXPECT_EQ(list.bytes(), 0U);
}

TEST_F(AbortedTest, KeepTakesOutOnlyWhatIsInItsRangeAndNotNamed) {
  fill(1500, 20);
  const Offset from = all[300].last, below = all[900].last;
  std::vector<Offset> markers;
  All expected;
  for (const AbortedTransaction& one : all) {
    const bool judged = one.last >= from && one.last < below;
    const bool named = judged && random() % 3 == 0;
    if (named) markers.push_back(one.last);
    if (!judged || named) expected.push_back(one);
  }
  EXPECT_EQ(list.keep(from, below, markers), all.size() - expected.size());
  EXPECT_EQ(found(list), expected);
  EXPECT_EQ(list.keep(from, below, markers), 0U);
  const AbortedTransaction next{ProducerId(3), below + 50'000, below + 50'001, below + 50'002};
  list.add(next);
  expected.push_back(next);
  EXPECT_EQ(found(list), expected);
}

TEST_F(AbortedTest, ComesBackFromItsBytesAndGoesOn) {
  fill(700, 8);
  list.trim(all[200].last);
  BlobWriter writer;
  list.encode(writer);
  const Buffer bytes = writer.take();
  const Offset below = all.back().last + 1;
  AbortedTransactions copy;
  BlobReader reader(bytes);
  ASSERT_TRUE(copy.decode(reader, below));
  EXPECT_TRUE(reader.done());
  EXPECT_EQ(found(copy), found(list));
  const AbortedTransaction next{ProducerId(3), below, below + 1, below + 2};
  copy.add(next);
  EXPECT_EQ(found(copy).back(), next);
  BlobReader again(bytes);
  EXPECT_FALSE(copy.decode(again, all.back().last));  // a marker where the log ended
}

TEST_F(AbortedTest, BytesThatCannotBeAreRefused) {
  fill(300, 8);
  const Offset below = all.back().last + 1;
  BlobWriter writer;
  list.encode(writer);
  const Buffer bytes = writer.take();
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    AbortedTransactions copy;
    BlobReader reader{Bytes(bytes).first(size)};
    EXPECT_FALSE(copy.decode(reader, below)) << size;
  }
  int sound = 0;
  for (int i = 0; i < 3000; ++i) {
    Buffer changed = bytes;
    changed[random() % changed.size()] ^= static_cast<std::byte>(1U << (random() % 8));
    AbortedTransactions copy;
    BlobReader reader(changed);
    if (!copy.decode(reader, below)) continue;
    ++sound;  // another list, but one that can be
    const All read = found(copy);
    EXPECT_TRUE(std::ranges::is_sorted(read, {}, &AbortedTransaction::last));
    EXPECT_TRUE(std::ranges::is_sorted(read, {}, &AbortedTransaction::last_stable));
    for (const AbortedTransaction& one : read) {
      EXPECT_LT(one.first, one.last);
      EXPECT_LT(one.last, below);
    }
  }
  EXPECT_LT(sound, 3000);
}

}  // namespace
}  // namespace kanal::log
