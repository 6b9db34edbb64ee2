// The four codecs of record batches as Kafka's clients write and read them: gzip (members may
// follow each other), snappy (Java's xerial frames and raw blocks), lz4 frames (independent blocks
// only, as Kafka), zstd. Inflater and Deflater keep their buffers and contexts for the next batch:
// one Scratch for each I/O or helper thread, never shared. Memory stays bounded by a codec's window
// whatever a payload claims: 64 KiB chunks, blocks no larger than their input can make. A payload
// that does not inflate is UNKNOWN_SERVER_ERROR, which is what Kafka answers.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/records/batch.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kanal::records {

/// compression.{gzip,lz4,zstd}.level; snappy has none.
struct Levels {
  int gzip = -1;  // 1..9, or -1: zlib's own default
  int lz4 = 9;    // 1..17; 9, the default, means the fast compressor, as in Kafka
  int zstd = 3;   // -131072..22
  [[nodiscard]] int of(Codec codec) const noexcept {
    return codec == Codec::kGzip   ? gzip
           : codec == Codec::kLz4  ? lz4
           : codec == Codec::kZstd ? zstd
                                   : 0;
  }
};

class Reader;  // one codec's decoder; src/records/codec.hpp
class Writer;

/// Inflates one payload in chunks.
class Inflater {
 public:
  Inflater();
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Starts on `payload`, which must outlive the reading. UNKNOWN_SERVER_ERROR for an unknown codec
  /// or a bad start.
  Result<void> open(Codec codec, Bytes payload);
  /// The next bytes, valid until the next call; empty at the end of a complete payload.
  Result<Bytes> next();
  /// Done with the payload, read to its end or not: gives back what an unusually large window took.
  void close() noexcept;

 private:
  std::array<std::unique_ptr<Reader>, 5> readers_;  // by codec, made when first needed
  Reader* reader_ = nullptr;
};

/// Compresses one payload, appending to a buffer.
class Deflater {
 public:
  Deflater();
  ~Deflater();
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  /// Starts a payload behind what `out` holds; `out` must outlive finish().
  Result<void> open(Codec codec, int level, Buffer& out);
  Result<void> write(Bytes bytes);
  Result<void> finish();

 private:
  std::array<std::unique_ptr<Writer>, 5> writers_;
  Writer* writer_ = nullptr;
};

/// What one thread reuses from batch to batch.
struct Scratch {
  Inflater inflater;
  Deflater deflater;
};

/// Appends the whole inflated payload to `out`; MESSAGE_TOO_LARGE if it has more than `limit`
/// bytes.
Result<void> inflate_all(Inflater& inflater, Codec codec, Bytes payload, std::size_t limit,
                         Buffer& out);

}  // namespace kanal::records
