#include "blob.hpp"

#include "kanal/records/batch.hpp"

namespace kanal::log {
namespace {

constexpr std::size_t kHead = 4 + 2 + 2 + 8;  // magic, version, reserved, payload length
constexpr std::size_t kTail = 4;

}  // namespace

std::unexpected<Error> storage_error(std::string detail) {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, std::move(detail));
}

void BlobWriter::uuid(const Uuid& value) {
  raw({reinterpret_cast<const std::byte*>(value.bytes.data()), value.bytes.size()});
}

void BlobWriter::sized(Bytes bytes) {
  number(static_cast<std::uint32_t>(bytes.size()));
  raw(bytes);
}

Buffer BlobWriter::seal(std::string_view magic, std::uint16_t version) const {
  Buffer file;
  file.reserve(kHead + bytes_.size() + kTail);
  append(file, as_bytes(magic));
  file.resize(kHead);
  store_be(file.data() + 4, version);
  store_be(file.data() + 8, static_cast<std::uint64_t>(bytes_.size()));
  append(file, bytes_);
  const std::uint32_t crc = records::crc32c(file);
  file.resize(file.size() + kTail);
  store_be(file.data() + file.size() - kTail, crc);
  return file;
}

Uuid BlobReader::uuid() {
  Uuid value;
  if (bytes_.size() < value.bytes.size()) {
    good_ = false;
    bytes_ = {};
    return value;
  }
  std::memcpy(value.bytes.data(), bytes_.data(), value.bytes.size());
  bytes_ = bytes_.subspan(value.bytes.size());
  return value;
}

Bytes BlobReader::sized() {
  const auto size = number<std::uint32_t>();
  if (!good_ || size > bytes_.size()) {
    good_ = false;
    bytes_ = {};
    return {};
  }
  const Bytes part = bytes_.first(size);
  bytes_ = bytes_.subspan(size);
  return part;
}

std::uint64_t blob_size(Bytes file) {
  if (file.size() < kHead) return kHead + kTail;
  const auto payload = load_be<std::uint64_t>(file.data() + 8);
  return payload > UINT64_MAX - kHead - kTail ? 0 : kHead + payload + kTail;
}

Result<Bytes> open_blob(Bytes file, std::string_view magic, std::uint16_t newest,
                        std::uint16_t* version) {
  if (file.size() < kHead + kTail) return storage_error("it is cut short");
  if (as_text(file.first(4)) != magic) return storage_error("it begins with other bytes");
  const Bytes checked = file.first(file.size() - kTail);
  if (records::crc32c(checked) != load_be<std::uint32_t>(file.data() + checked.size())) {
    return storage_error("its checksum does not match");
  }
  const auto found = load_be<std::uint16_t>(file.data() + 4);
  if (found > newest) {
    return storage_error("it has format version " + std::to_string(found) + ", newer than " +
                         std::to_string(newest));
  }
  if (load_be<std::uint64_t>(file.data() + 8) != checked.size() - kHead) {
    return storage_error("its length does not match");
  }
  if (version != nullptr) *version = found;
  return checked.subspan(kHead);
}

}  // namespace kanal::log
