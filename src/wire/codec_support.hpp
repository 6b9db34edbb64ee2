// Small pieces that generated codecs share. Included by generated sources only.
#pragma once

#include "kanal/wire/message.hpp"
#include "kanal/wire/reader.hpp"
#include "kanal/wire/writer.hpp"

#include <string>

namespace kanal::wire {

[[nodiscard]] inline Buffer copied(MutableBytes bytes) {
  return {bytes.begin(), bytes.end()};
}
[[nodiscard]] inline std::optional<Buffer> copied(std::optional<MutableBytes> bytes) {
  if (!bytes) return std::nullopt;
  return copied(*bytes);
}

/// Records of a response that was read: a view into its frame; null reads as empty.
[[nodiscard]] inline ExternalRecords inline_records(std::optional<MutableBytes> bytes) {
  ExternalRecords records;
  if (bytes) records.inline_bytes = *bytes;
  return records;
}

[[nodiscard]] inline std::optional<std::string_view> view(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  return *text;
}
[[nodiscard]] inline std::optional<std::string_view> view(std::optional<std::string_view> text) {
  return text;
}
[[nodiscard]] inline std::optional<Bytes> view(const std::optional<Buffer>& bytes) {
  if (!bytes) return std::nullopt;
  return *bytes;
}
[[nodiscard]] inline std::optional<Bytes> view(std::optional<Bytes> bytes) {
  return bytes;
}

/// For versions in which the field has no null.
[[nodiscard]] inline std::string_view or_empty(const std::optional<std::string>& text) {
  return text ? std::string_view(*text) : std::string_view();
}
[[nodiscard]] inline std::string_view or_empty(std::optional<std::string_view> text) {
  return text.value_or(std::string_view());
}
[[nodiscard]] inline Bytes or_empty(const std::optional<Buffer>& bytes) {
  return bytes ? Bytes(*bytes) : Bytes();
}
[[nodiscard]] inline Bytes or_empty(std::optional<Bytes> bytes) {
  return bytes.value_or(Bytes());
}

[[nodiscard]] inline std::unexpected<Error> wrong_version(
    std::string_view message, std::int16_t version,
    ErrorCode code = ErrorCode::UNSUPPORTED_VERSION) {
  return fail(code,
              std::string(message) + " v" + std::to_string(version) + ": version is not served");
}

[[nodiscard]] inline std::unexpected<Error> unknown_record(std::int16_t type) {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR,
              "stored record of unknown type " + std::to_string(type));
}

/// The body of a stored record, which must end where the record ends.
template <class Variant, class Record>
[[nodiscard]] Result<Variant> decode_whole(Reader& in, std::int16_t version) {
  Record record;
  if (auto decoded = decode(in, version, record); !decoded)
    return std::unexpected(std::move(decoded).error());
  if (in.remaining() != 0) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                "stored record of type " + std::to_string(Record::kRecordType) + ": " +
                    std::to_string(in.remaining()) + " bytes left over");
  }
  return Variant(std::move(record));
}

}  // namespace kanal::wire
