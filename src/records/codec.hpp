// What one codec gives to Inflater and Deflater. Not thread safe: each object belongs to one
// Scratch. Readers keep views into the payload until the next open(); errors are
// UNKNOWN_SERVER_ERROR with a sentence.
#pragma once

#include "kanal/records/compress.hpp"

#include <memory>
#include <string>

namespace kanal::records {

inline constexpr std::size_t kChunkSize =
    64 * 1024;  // what one next() inflates; stays in the L2 cache

class Reader {
 public:
  virtual ~Reader() = default;
  virtual Result<void> open(Bytes payload) = 0;
  virtual Result<Bytes> next() = 0;  // empty: the end of a complete payload
  virtual void close() noexcept {}
};

class Writer {
 public:
  virtual ~Writer() = default;
  virtual Result<void> open(int level, Buffer& out) = 0;
  virtual Result<void> write(Bytes bytes) = 0;
  virtual Result<void> finish() = 0;
};

std::unique_ptr<Reader> make_gzip_reader();
std::unique_ptr<Reader> make_snappy_reader();
std::unique_ptr<Reader> make_lz4_reader();
std::unique_ptr<Reader> make_zstd_reader();
std::unique_ptr<Writer> make_gzip_writer();
std::unique_ptr<Writer> make_snappy_writer();
std::unique_ptr<Writer> make_lz4_writer();
std::unique_ptr<Writer> make_zstd_writer();

inline std::unexpected<Error> codec_error(const char* why) {
  return fail(ErrorCode::UNKNOWN_SERVER_ERROR, why);
}

/// As the codecs' C interfaces want bytes.
inline const char* chars(Bytes bytes) noexcept {
  return reinterpret_cast<const char*>(bytes.data());
}

/// Makes `buffer` at least `size` bytes large without keeping what it holds.
inline void reserve_scratch(Buffer& buffer, std::size_t size) {
  if (buffer.size() < size) {
    buffer.clear();
    buffer.resize(size);
  }
}

/// Collects bytes into blocks of a fixed size (snappy and lz4 frames).
class BlockBuffer {
 public:
  explicit BlockBuffer(std::size_t block) : block_(block) {}
  void clear() noexcept { held_.clear(); }
  template <class Emit>
  void write(Bytes bytes, Emit&& emit) {
    while (!bytes.empty()) {
      if (held_.empty() && bytes.size() >= block_) {  // straight from the caller's bytes
        emit(bytes.first(block_));
        bytes = bytes.subspan(block_);
        continue;
      }
      const std::size_t room = block_ - held_.size();
      const Bytes part = bytes.first(bytes.size() < room ? bytes.size() : room);
      append(held_, part);
      bytes = bytes.subspan(part.size());
      if (held_.size() == block_) flush(emit);
    }
  }
  template <class Emit>
  void flush(Emit&& emit) {
    if (held_.empty()) return;
    emit(Bytes(held_));
    held_.clear();
  }

 private:
  std::size_t block_;
  Buffer held_;
};

}  // namespace kanal::records
