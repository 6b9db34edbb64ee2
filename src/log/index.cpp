#include "index.hpp"

#include "blob.hpp"

#include <algorithm>

namespace kanal::log {
namespace {

constexpr std::string_view kIndexMagic = "KNLX";
constexpr std::uint16_t kIndexVersion = 1;

/// Whether it can be a segment's, and the blocks such a one's: rising, from its begin, inside it.
bool is_sound(const IndexFile& index) {
  const auto in_order = [](const Block& a, const Block& b) {
    return a.first < b.first && a.position < b.position;
  };
  const Index& blocks = index.blocks;
  if (!is_stored(index.base) || !is_stored(index.end) || index.end < index.base) return false;
  if (blocks.empty()) return index.size == 0;
  if (blocks.front().first != 0 || blocks.front().position != 0) return false;
  for (std::size_t i = 1; i < blocks.size(); ++i) {
    if (!in_order(blocks[i - 1], blocks[i])) return false;
  }
  return blocks.back().position < index.size && blocks.back().first < index.end - index.base;
}

}  // namespace

void note(Index& index, const BatchMark& batch, std::uint64_t interval) {
  if (index.empty() || batch.position - index.back().position >= interval) {
    // The first block begins with the segment, though its first batch may begin later.
    const std::uint32_t first = batch.position == 0 ? 0 : batch.first;
    index.push_back({first, static_cast<std::uint32_t>(batch.position), batch.max_timestamp});
  } else {
    index.back().max_timestamp = std::max(index.back().max_timestamp, batch.max_timestamp);
  }
}

const Block* block_of(const Index& index, std::uint32_t first) noexcept {
  const auto after = std::ranges::upper_bound(index, first, {}, &Block::first);
  return after == index.begin() ? nullptr : &*(after - 1);
}

const Block* block_at(const Index& index, std::uint64_t position) noexcept {
  const auto after = std::ranges::upper_bound(
      index, position, {}, [](const Block& block) { return std::uint64_t{block.position}; });
  return after == index.begin() ? nullptr : &*(after - 1);
}

Buffer encode_index(const IndexFile& index) {
  BlobWriter writer;
  writer.id(index.base);
  writer.id(index.end);
  writer.number(index.size);
  writer.id(index.first_timestamp);
  writer.id(index.max_timestamp);
  writer.number(static_cast<std::uint32_t>(index.sealed));
  writer.number(static_cast<std::uint32_t>(index.blocks.size()));
  for (const Block& block : index.blocks) {
    writer.number(block.first);
    writer.number(block.position);
    writer.id(block.max_timestamp);
  }
  return writer.seal(kIndexMagic, kIndexVersion);
}

Result<IndexFile> decode_index(Bytes file) {
  const auto payload = open_blob(file, kIndexMagic, kIndexVersion);
  if (!payload) return std::unexpected(payload.error());
  BlobReader reader(*payload);
  IndexFile index;
  index.base = reader.id<Sequence>();
  index.end = reader.id<Sequence>();
  index.size = reader.number<std::uint64_t>();
  index.first_timestamp = reader.id<Timestamp>();
  index.max_timestamp = reader.id<Timestamp>();
  index.sealed = reader.number<std::uint32_t>() != 0;
  const auto count = reader.number<std::uint32_t>();
  if (!reader.good() || reader.rest().size() != std::size_t{count} * sizeof(Block)) {
    return storage_error("its length does not match its number of blocks");
  }
  index.blocks.resize(count);
  for (Block& block : index.blocks) {
    block.first = reader.number<std::uint32_t>();
    block.position = reader.number<std::uint32_t>();
    block.max_timestamp = reader.id<Timestamp>();
  }
  if (!is_sound(index)) return storage_error("its blocks are not in order");
  return index;
}

}  // namespace kanal::log
