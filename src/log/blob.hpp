// The small checksummed files of the log: 4 bytes of magic, version, payload length, payload,
// CRC-32C over all before it. BlobWriter and BlobReader are the only way to make and to read one; a
// reader is bounds-checked and never trusts a count. Integers are big endian. Plain values: any
// thread.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kanal::log {

/// KAFKA_STORAGE_ERROR.
[[nodiscard]] std::unexpected<Error> storage_error(std::string detail);

class BlobWriter {
 public:
  template <class T>
  void number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    store_be(bytes_.data() + at, value);
  }
  template <class Tag, class Rep>
  void id(Strong<Tag, Rep> value) {
    number(value.value());
  }
  void uuid(const Uuid& value);
  void sized(Bytes bytes);  // u32 length, bytes
  void raw(Bytes bytes) { append(bytes_, bytes); }
  [[nodiscard]] Buffer take() { return std::move(bytes_); }
  /// The whole file around what was written.
  [[nodiscard]] Buffer seal(std::string_view magic, std::uint16_t version) const;

 private:
  Buffer bytes_;
};

class BlobReader {
 public:
  explicit BlobReader(Bytes bytes) : bytes_(bytes) {}

  template <class T>
  [[nodiscard]] T number() {
    if (bytes_.size() < sizeof(T)) {
      good_ = false;
      bytes_ = {};
      return T{};
    }
    const T value = load_be<T>(bytes_.data());
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }
  template <class Id>
  [[nodiscard]] Id id() {
    return Id(number<typename Id::rep>());
  }
  [[nodiscard]] Uuid uuid();
  [[nodiscard]] Bytes sized();
  [[nodiscard]] Bytes rest() const { return bytes_; }
  /// False once something was read past the end.
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool done() const { return good_ && bytes_.empty(); }

 private:
  Bytes bytes_;
  bool good_ = true;
};

/// How long a file that begins with these bytes says it is; 0 where they do not tell.
[[nodiscard]] std::uint64_t blob_size(Bytes file);

/// The payload of a whole file, or what is wrong with it. `version` gets the file's, which is at
/// most `newest`.
[[nodiscard]] Result<Bytes> open_blob(Bytes file, std::string_view magic, std::uint16_t newest,
                                      std::uint16_t* version = nullptr);

}  // namespace kanal::log
