#include "kanal/records/compress.hpp"

#include "codec.hpp"

#include "kanal/base/check.hpp"

#include <utility>

namespace kanal::records {
namespace {

/// Codec none: the payload is the records.
class PlainReader final : public Reader {
 public:
  Result<void> open(Bytes payload) override {
    in_ = payload;
    return {};
  }
  Result<Bytes> next() override { return std::exchange(in_, Bytes()); }

 private:
  Bytes in_;
};

class PlainWriter final : public Writer {
 public:
  Result<void> open(int, Buffer& out) override {
    out_ = &out;
    return {};
  }
  Result<void> write(Bytes bytes) override {
    append(*out_, bytes);
    return {};
  }
  Result<void> finish() override { return {}; }

 private:
  Buffer* out_ = nullptr;
};

std::unique_ptr<Reader> make_reader(Codec codec) {
  switch (codec) {
    case Codec::kNone:
      return std::make_unique<PlainReader>();
    case Codec::kGzip:
      return make_gzip_reader();
    case Codec::kSnappy:
      return make_snappy_reader();
    case Codec::kLz4:
      return make_lz4_reader();
    case Codec::kZstd:
      return make_zstd_reader();
  }
  return nullptr;
}

std::unique_ptr<Writer> make_writer(Codec codec) {
  switch (codec) {
    case Codec::kNone:
      return std::make_unique<PlainWriter>();
    case Codec::kGzip:
      return make_gzip_writer();
    case Codec::kSnappy:
      return make_snappy_writer();
    case Codec::kLz4:
      return make_lz4_writer();
    case Codec::kZstd:
      return make_zstd_writer();
  }
  return nullptr;
}

}  // namespace

Inflater::Inflater() = default;
Inflater::~Inflater() = default;

Result<void> Inflater::open(Codec codec, Bytes payload) {
  reader_ = nullptr;
  const auto index = static_cast<std::size_t>(codec);
  if (index >= readers_.size()) return codec_error("unknown compression codec");
  if (!readers_[index]) readers_[index] = make_reader(codec);
  Result<void> opened = readers_[index]->open(payload);
  if (opened) reader_ = readers_[index].get();
  return opened;
}

Result<Bytes> Inflater::next() {
  CHECK(reader_ != nullptr, "an inflater is opened before it is read");
  return reader_->next();
}

void Inflater::close() noexcept {
  if (reader_ != nullptr) reader_->close();
  reader_ = nullptr;
}

Deflater::Deflater() = default;
Deflater::~Deflater() = default;

Result<void> Deflater::open(Codec codec, int level, Buffer& out) {
  const auto index = static_cast<std::size_t>(codec);
  CHECK(index < writers_.size(), "only known codecs are written");
  if (!writers_[index]) writers_[index] = make_writer(codec);
  writer_ = writers_[index].get();
  return writer_->open(level, out);
}

Result<void> Deflater::write(Bytes bytes) {
  return writer_->write(bytes);
}
Result<void> Deflater::finish() {
  return writer_->finish();
}

Result<void> inflate_all(Inflater& inflater, Codec codec, Bytes payload, std::size_t limit,
                         Buffer& out) {
  if (Result<void> opened = inflater.open(codec, payload); !opened) return opened;
  std::size_t total = 0;
  Result<void> outcome;
  for (;;) {
    const Result<Bytes> chunk = inflater.next();
    if (!chunk) {
      outcome = std::unexpected(chunk.error());
      break;
    }
    if (chunk->empty()) break;
    total += chunk->size();
    if (total > limit) {
      outcome = fail(ErrorCode::MESSAGE_TOO_LARGE, "the payload inflates beyond the limit");
      break;
    }
    append(out, *chunk);
  }
  inflater.close();
  return outcome;
}

}  // namespace kanal::records
