// lz4 frames as Kafka reads them: one frame, independent blocks, header and block checksums
// verified, content size and content checksum stepped over. Written as Kafka writes: 64 KiB blocks,
// no checksums but the header's.
#include "codec.hpp"
#include "xxhash32.hpp"

#include <lz4.h>
#include <lz4hc.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace kanal::records {
namespace {

constexpr std::uint32_t kFrameMagic = 0x184D2204;
constexpr std::uint32_t kStoredBit = 0x80000000;  // of a block length: not compressed
constexpr std::size_t kBlockSize = 64 * 1024;
constexpr int kFastLevel = 9;  // Kafka's default level means the fast compressor

std::uint32_t load_le32(const std::byte* at) noexcept {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

class Lz4Reader final : public Reader {
 public:
  Result<void> open(Bytes payload) override {
    ended_ = false;
    if (payload.size() < 7) return codec_error("lz4: the frame header is cut");
    if (load_le32(payload.data()) != kFrameMagic) return codec_error("lz4: no lz4 frame");
    const auto flags = static_cast<unsigned>(payload[4]);
    const auto descriptor = static_cast<unsigned>(payload[5]);
    if ((flags & 0xC0) != 0x40 || (flags & 0x03) != 0)
      return codec_error("lz4: unknown frame version");
    if ((flags & 0x20) == 0) return codec_error("lz4: dependent blocks are not supported");
    const unsigned block_code = (descriptor >> 4) & 7;
    if ((descriptor & 0x8F) != 0 || block_code < 4) return codec_error("lz4: bad block size");
    block_checksums_ = (flags & 0x10) != 0;
    content_checksum_ = (flags & 0x04) != 0;
    max_block_ = std::size_t{1} << (2 * block_code + 8);
    const std::size_t checksum_at = (flags & 0x08) != 0 ? 14 : 6;
    if (payload.size() <= checksum_at) return codec_error("lz4: the frame header is cut");
    const std::uint32_t hash = xxhash32(payload.subspan(4, checksum_at - 4));
    if (static_cast<std::uint32_t>(payload[checksum_at]) != ((hash >> 8) & 0xFF)) {
      return codec_error("lz4: wrong header checksum");
    }
    in_ = payload.subspan(checksum_at + 1);
    return {};
  }

  Result<Bytes> next() override {
    if (ended_) return Bytes();
    if (in_.size() < 4) return codec_error("lz4: the frame is cut");
    const std::uint32_t word = load_le32(in_.data());
    const std::size_t size = word & ~kStoredBit;
    in_ = in_.subspan(4);
    if (size == 0) {
      ended_ = true;
      if (content_checksum_ && in_.size() < 4) return codec_error("lz4: the frame is cut");
      return Bytes();
    }
    if (size > max_block_) return codec_error("lz4: a block is too large");
    const std::size_t whole = size + (block_checksums_ ? 4 : 0);
    if (in_.size() < whole) return codec_error("lz4: a block is cut");
    const Bytes block = in_.first(size);
    if (block_checksums_ && load_le32(in_.data() + size) != xxhash32(block)) {
      return codec_error("lz4: wrong block checksum");
    }
    in_ = in_.subspan(whole);
    if ((word & kStoredBit) != 0) return block;
    return inflate(block);  // an empty block reads as the end, as in Kafka's clients
  }

  void close() noexcept override {
    if (block_.size() > 16 * kChunkSize) block_ = Buffer();
  }

 private:
  Result<Bytes> inflate(Bytes block) {
    const std::size_t room =
        std::min(max_block_, block.size() * 255 + 64);  // lz4 makes no more of them
    reserve_scratch(block_, room);
    const int size = LZ4_decompress_safe(chars(block), reinterpret_cast<char*>(block_.data()),
                                         static_cast<int>(block.size()), static_cast<int>(room));
    if (size < 0) return codec_error("lz4: a block is damaged");
    return Bytes(block_.data(), static_cast<std::size_t>(size));
  }

  Bytes in_;
  Buffer block_;
  std::size_t max_block_ = 0;
  bool block_checksums_ = false;
  bool content_checksum_ = false;
  bool ended_ = true;
};

class Lz4Writer final : public Writer {
 public:
  Result<void> open(int level, Buffer& out) override {
    out_ = &out;
    level_ = level;
    blocks_.clear();
    std::array<std::byte, 7> header{std::byte{0x04}, std::byte{0x22}, std::byte{0x4D},
                                    std::byte{0x18}, std::byte{0x60}, std::byte{0x40},
                                    std::byte{0}};
    header[6] = static_cast<std::byte>(xxhash32(Bytes(header).subspan(4, 2)) >> 8);
    append(out, header);
    return {};
  }
  Result<void> write(Bytes bytes) override {
    blocks_.write(bytes, [this](Bytes block) { emit(block); });
    return {};
  }
  Result<void> finish() override {
    blocks_.flush([this](Bytes block) { emit(block); });
    const std::array<std::byte, 4> end_mark{};
    append(*out_, end_mark);
    return {};
  }

 private:
  void emit(Bytes block) {
    const std::size_t start = out_->size();
    const int source_size = static_cast<int>(block.size());
    const int room = LZ4_compressBound(source_size);
    out_->resize(start + 4 + static_cast<std::size_t>(room));
    const char* from = chars(block);
    char* to = reinterpret_cast<char*>(out_->data() + start + 4);
    const int made = level_ == kFastLevel ? LZ4_compress_default(from, to, source_size, room)
                                          : LZ4_compress_HC(from, to, source_size, room, level_);
    std::uint32_t word = static_cast<std::uint32_t>(made);
    if (made <= 0 || made >= source_size) {
      std::memcpy(to, from, block.size());
      word = static_cast<std::uint32_t>(block.size()) | kStoredBit;
    }
    std::memcpy(out_->data() + start, &word, sizeof word);
    out_->resize(start + 4 + (word & ~kStoredBit));
  }

  BlockBuffer blocks_{kBlockSize};
  Buffer* out_ = nullptr;
  int level_ = kFastLevel;
};

}  // namespace

std::unique_ptr<Reader> make_lz4_reader() {
  return std::make_unique<Lz4Reader>();
}
std::unique_ptr<Writer> make_lz4_writer() {
  return std::make_unique<Lz4Writer>();
}

}  // namespace kanal::records
