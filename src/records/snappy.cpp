// snappy: Java writes xerial frames (magic, two version words, blocks of 32 KiB each with its
// length), librdkafka one raw block. Both are read; frames are written.
#include "codec.hpp"

#include <snappy.h>

#include <algorithm>
#include <array>

namespace kanal::records {
namespace {

constexpr std::array<std::byte, 8> kFrameMagic{std::byte{0x82}, std::byte{'S'}, std::byte{'N'},
                                               std::byte{'A'},  std::byte{'P'}, std::byte{'P'},
                                               std::byte{'Y'},  std::byte{0}};
constexpr std::size_t kFrameHeader = 16;  // magic, version, lowest compatible version
constexpr std::uint32_t kMagicHead =
    0x82534E41;  // a block length can not have this value: another frame begins
constexpr std::size_t kBlockSize = 32 * 1024;

bool begins_frame(Bytes in) noexcept {
  return in.size() >= kFrameHeader &&
         std::equal(kFrameMagic.begin(), kFrameMagic.end(), in.begin());
}

class SnappyReader final : public Reader {
 public:
  Result<void> open(Bytes payload) override {
    in_ = payload;
    if (in_.empty()) return codec_error("snappy: the payload is empty");
    raw_ = !begins_frame(in_);
    return {};
  }

  Result<Bytes> next() override {
    if (raw_) {
      const Bytes block = std::exchange(in_, Bytes());
      return block.empty() ? Result<Bytes>(Bytes()) : inflate(block);
    }
    while (in_.size() >= 4) {  // fewer bytes are the end, as in Java
      const auto size = load_be<std::uint32_t>(in_.data());
      if (size == kMagicHead) {
        if (in_.size() < kFrameHeader) return codec_error("snappy: a frame header is cut");
        if (!begins_frame(in_)) break;
        in_ = in_.subspan(kFrameHeader);
        continue;
      }
      in_ = in_.subspan(4);
      if (size > in_.size()) return codec_error("snappy: a block is cut");
      const Bytes block = in_.first(size);
      in_ = in_.subspan(size);
      Result<Bytes> inflated = inflate(block);
      if (!inflated || !inflated->empty()) return inflated;
    }
    return Bytes();
  }

  void close() noexcept override {
    if (block_.size() > 16 * kChunkSize) block_ = Buffer();
  }

 private:
  Result<Bytes> inflate(Bytes block) {
    const char* data = chars(block);
    std::size_t size = 0;
    if (!snappy::GetUncompressedLength(data, block.size(), &size))
      return codec_error("snappy: no length");
    // 3 bytes make at most 64: a larger claim is a lie and must not cost memory
    if (size > block.size() * 24 + 64)
      return codec_error("snappy: the claimed length is impossible");
    reserve_scratch(block_, size);
    if (!snappy::RawUncompress(data, block.size(), reinterpret_cast<char*>(block_.data()))) {
      return codec_error("snappy: a block is damaged");
    }
    return Bytes(block_.data(), size);
  }

  Bytes in_;
  Buffer block_;
  bool raw_ = false;
};

class SnappyWriter final : public Writer {
 public:
  Result<void> open(int, Buffer& out) override {
    out_ = &out;
    blocks_.clear();
    std::array<std::byte, kFrameHeader> header{};
    std::copy(kFrameMagic.begin(), kFrameMagic.end(), header.begin());
    store_be(header.data() + 8, std::int32_t{1});
    store_be(header.data() + 12, std::int32_t{1});
    append(out, header);
    return {};
  }
  Result<void> write(Bytes bytes) override {
    blocks_.write(bytes, [this](Bytes block) { emit(block); });
    return {};
  }
  Result<void> finish() override {
    blocks_.flush([this](Bytes block) { emit(block); });
    return {};
  }

 private:
  void emit(Bytes block) {
    const std::size_t start = out_->size();
    out_->resize(start + 4 + snappy::MaxCompressedLength(block.size()));
    std::size_t size = 0;
    snappy::RawCompress(chars(block), block.size(),
                        reinterpret_cast<char*>(out_->data() + start + 4), &size);
    store_be(out_->data() + start, static_cast<std::uint32_t>(size));
    out_->resize(start + 4 + size);
  }

  BlockBuffer blocks_{kBlockSize};
  Buffer* out_ = nullptr;
};

}  // namespace

std::unique_ptr<Reader> make_snappy_reader() {
  return std::make_unique<SnappyReader>();
}
std::unique_ptr<Writer> make_snappy_writer() {
  return std::make_unique<SnappyWriter>();
}

}  // namespace kanal::records
