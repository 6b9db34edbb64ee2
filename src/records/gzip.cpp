// gzip: ISA-L inflates (about twice zlib's speed), zlib deflates. Members may follow each other as
// in Java's GZIPInputStream, which takes anything behind a member that is no further member for the
// end.
#include "codec.hpp"

#include <isa-l/crc.h>
#include <isa-l/igzip_lib.h>
#include <zlib.h>

#include <cstring>
#include <optional>

namespace kanal::records {
namespace {

constexpr std::size_t kTrailerSize = 8;
constexpr std::size_t kSmallestHeader = 10;

std::uint32_t load_le32(const std::byte* at) noexcept {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return value;  // x86-64 and arm64 run little endian
}

std::uint32_t gzip_crc(std::uint32_t crc, Bytes bytes) noexcept {
  return crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

/// Length of the zero-terminated text at `at`, terminator included.
std::optional<std::size_t> text_size(Bytes bytes) noexcept {
  const void* end = bytes.empty() ? nullptr : std::memchr(bytes.data(), 0, bytes.size());
  if (end == nullptr) return std::nullopt;
  return static_cast<std::size_t>(static_cast<const std::byte*>(end) - bytes.data()) + 1;
}

/// Size of the member header at the start of `in`; nothing if there is none.
std::optional<std::size_t> header_size(Bytes in) noexcept {
  constexpr unsigned kHeaderCrc = 2, kExtra = 4, kName = 8, kComment = 16;
  if (in.size() < kSmallestHeader) return std::nullopt;
  if (in[0] != std::byte{0x1F} || in[1] != std::byte{0x8B} || in[2] != std::byte{8})
    return std::nullopt;
  const auto flags = static_cast<unsigned>(in[3]);
  std::size_t at = kSmallestHeader;
  if ((flags & kExtra) != 0) {
    if (in.size() < at + 2) return std::nullopt;
    at += 2 + (static_cast<std::size_t>(in[at]) | static_cast<std::size_t>(in[at + 1]) << 8);
    if (in.size() < at) return std::nullopt;
  }
  for (const unsigned flag : {kName, kComment}) {
    if ((flags & flag) == 0) continue;
    const std::optional<std::size_t> text = text_size(in.subspan(at));
    if (!text) return std::nullopt;
    at += *text;
  }
  if ((flags & kHeaderCrc) != 0) {
    if (in.size() < at + 2) return std::nullopt;
    const std::uint32_t crc = gzip_crc(0, in.first(at)) & 0xFFFF;
    if (crc != (static_cast<std::uint32_t>(in[at]) | static_cast<std::uint32_t>(in[at + 1]) << 8)) {
      return std::nullopt;
    }
    at += 2;
  }
  return at;
}

class GzipReader final : public Reader {
 public:
  Result<void> open(Bytes payload) override {
    if (!begin_member(payload)) return codec_error("gzip: no gzip header");
    return {};
  }

  Result<Bytes> next() override {
    while (!ended_) {
      state_.next_out = reinterpret_cast<std::uint8_t*>(chunk_.data());
      state_.avail_out = static_cast<std::uint32_t>(chunk_.size());
      const int outcome = isal_inflate(&state_);
      if (outcome != ISAL_DECOMP_OK && outcome != ISAL_END_INPUT && outcome != ISAL_OUT_OVERFLOW) {
        return codec_error("gzip: the deflate stream is damaged");
      }
      const Bytes inflated(chunk_.data(), chunk_.size() - state_.avail_out);
      crc_ = gzip_crc(crc_, inflated);
      inflated_ += inflated.size();
      if (state_.block_state == ISAL_BLOCK_FINISH) {
        if (Result<void> ended = end_member(); !ended) return std::unexpected(ended.error());
      } else if (inflated.empty()) {
        return codec_error("gzip: the stream is cut");
      }
      if (!inflated.empty()) return inflated;
    }
    return Bytes();
  }

 private:
  bool begin_member(Bytes in) {
    const std::optional<std::size_t> header = header_size(in);
    if (!header) return false;
    in = in.subspan(*header);
    isal_inflate_init(&state_);
    state_.crc_flag = ISAL_DEFLATE;
    // isal reads only, though its member is not const
    state_.next_in = const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(in.data()));
    state_.avail_in = static_cast<std::uint32_t>(in.size());
    crc_ = 0;
    inflated_ = 0;
    ended_ = false;
    reserve_scratch(chunk_, kChunkSize);
    return true;
  }

  Result<void> end_member() {
    // isal has read ahead whole words: hand back the bytes it did not need
    const auto ahead = static_cast<std::size_t>(state_.read_in_length) / 8;
    const Bytes rest(reinterpret_cast<const std::byte*>(state_.next_in) - ahead,
                     state_.avail_in + ahead);
    if (rest.size() < kTrailerSize) return codec_error("gzip: the trailer is cut");
    if (load_le32(rest.data()) != crc_ ||
        load_le32(rest.data() + 4) != static_cast<std::uint32_t>(inflated_)) {
      return codec_error("gzip: wrong checksum or length");
    }
    const Bytes more = rest.subspan(kTrailerSize);
    // Java looks for another member only if it would have room for a header and a trailer
    ended_ = more.size() <= kSmallestHeader + kTrailerSize || !begin_member(more);
    return {};
  }

  inflate_state state_;
  Buffer chunk_;
  std::uint32_t crc_ = 0;
  std::uint64_t inflated_ = 0;
  bool ended_ = true;
};

class GzipWriter final : public Writer {
 public:
  ~GzipWriter() override { end(); }

  Result<void> open(int level, Buffer& out) override {
    constexpr int kGzipWindow = 15 + 16, kMemory = 8;
    if (live_ && level == level_) {
      if (deflateReset(&stream_) != Z_OK) return codec_error("gzip: deflate cannot be reset");
    } else {
      end();
      stream_ = z_stream{};
      if (deflateInit2(&stream_, level, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) !=
          Z_OK) {
        return codec_error("gzip: deflate cannot start");
      }
      live_ = true;
      level_ = level;
    }
    out_ = &out;
    chunk_.resize(kChunkSize);
    return {};
  }

  Result<void> write(Bytes bytes) override {
    constexpr std::size_t kPiece = std::size_t{1} << 30;
    while (!bytes.empty()) {
      const Bytes piece = bytes.first(bytes.size() < kPiece ? bytes.size() : kPiece);
      if (Result<void> done = run(piece, Z_NO_FLUSH); !done) return done;
      bytes = bytes.subspan(piece.size());
    }
    return {};
  }

  Result<void> finish() override { return run({}, Z_FINISH); }

 private:
  void end() noexcept {
    if (live_) deflateEnd(&stream_);
    live_ = false;
  }

  Result<void> run(Bytes bytes, int flush) {
    stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(chunk_.data());
      stream_.avail_out = static_cast<uInt>(chunk_.size());
      if (deflate(&stream_, flush) == Z_STREAM_ERROR) return codec_error("gzip: deflate failed");
      append(*out_, Bytes(chunk_.data(), chunk_.size() - stream_.avail_out));
    } while (stream_.avail_out == 0);
    return {};
  }

  z_stream stream_{};
  Buffer* out_ = nullptr;
  Buffer chunk_;
  int level_ = 0;
  bool live_ = false;
};

}  // namespace

std::unique_ptr<Reader> make_gzip_reader() {
  return std::make_unique<GzipReader>();
}
std::unique_ptr<Writer> make_gzip_writer() {
  return std::make_unique<GzipWriter>();
}

}  // namespace kanal::records
