// Reads Kafka's primitives from one frame, bounds-checked, without exceptions: the first error
// sticks, every later read gives zero or empty, and error() tells API, version, field path and
// byte. Views it returns point into the frame, which must outlive them, or into the reader: text
// that is not UTF-8 is replaced as Java's decoder does for Kafka. Local to one thread.
// Limits: Kafka's (a string of 32,767 bytes, 1,000,000 array elements, 10,000 tagged fields), no
// array longer than its bytes allow, and a budget for what the decoded form may take in memory.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"

#include <bit>
#include <cstdint>
#include <cstring>
#include <forward_list>
#include <optional>
#include <string>
#include <string_view>

namespace kanal::wire {

inline constexpr std::int32_t kMaxStringLength = 32'767;
inline constexpr std::int32_t kMaxArrayLength = 1'000'000;
inline constexpr std::uint32_t kMaxTaggedFields = 10'000;
inline constexpr std::size_t kMaxDecodedBytes = 64 << 20;

class Reader {
 public:
  /// `memory_limit`: bytes that the arrays of one decoded message may take.
  explicit Reader(MutableBytes frame, std::size_t memory_limit = kMaxDecodedBytes) noexcept
      : start_(frame.data()),
        at_(frame.data()),
        end_(frame.data() + frame.size()),
        budget_(memory_limit) {}
  // Moved, not copied: views into replaced_ stay with it.
  Reader(Reader&&) = default;
  Reader& operator=(Reader&&) = default;
  /// For bytes that must not change: nobody may write through the views of such a reader.
  [[nodiscard]] static Reader read_only(Bytes bytes) noexcept {
    return Reader(MutableBytes(const_cast<std::byte*>(bytes.data()), bytes.size()));
  }

  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] std::size_t position() const noexcept {
    return static_cast<std::size_t>(at_ - start_);
  }
  [[nodiscard]] std::size_t remaining() const noexcept {
    return static_cast<std::size_t>(end_ - at_);
  }
  /// The first error, e.g. "Produce request v9: topic_data[0].name at byte 31: …". Only after a
  /// failure.
  [[nodiscard]] Error error(std::string_view message, std::int16_t version,
                            ErrorCode code = ErrorCode::INVALID_REQUEST) const;

  // Fixed-size values. `field` names them in an error; it must be a literal.
  [[nodiscard]] bool boolean(const char* field) { return number<std::int8_t>(field) != 0; }
  [[nodiscard]] std::int8_t int8(const char* field) { return number<std::int8_t>(field); }
  [[nodiscard]] std::int16_t int16(const char* field) { return number<std::int16_t>(field); }
  [[nodiscard]] std::int32_t int32(const char* field) { return number<std::int32_t>(field); }
  [[nodiscard]] std::int64_t int64(const char* field) { return number<std::int64_t>(field); }
  [[nodiscard]] std::uint16_t uint16(const char* field) { return number<std::uint16_t>(field); }
  [[nodiscard]] std::uint32_t uint32(const char* field) { return number<std::uint32_t>(field); }
  [[nodiscard]] double float64(const char* field) {
    return std::bit_cast<double>(number<std::int64_t>(field));
  }
  [[nodiscard]] Uuid uuid(const char* field) {
    Uuid id;
    if (remaining() < sizeof id.bytes) [[unlikely]] {
      fail_short(field, sizeof id.bytes);
      return id;
    }
    std::memcpy(id.bytes.data(), at_, sizeof id.bytes);
    at_ += sizeof id.bytes;
    return id;
  }
  /// Up to five bytes; as in Kafka bits above the 32nd are dropped and a sixth byte is an error.
  [[nodiscard]] std::uint32_t uvarint(const char* field) {
    if (at_ < end_ && static_cast<std::uint8_t>(*at_) < 0x80) [[likely]] {
      return static_cast<std::uint32_t>(*at_++);
    }
    return long_uvarint(field);
  }

  // Strings and bytes. `flexible`: compact form. Every negative length is null, as in Kafka.
  [[nodiscard]] std::string_view text(bool flexible, const char* field) {
    const std::int32_t length = text_length(flexible, field);
    return length < 0 ? (fail_null(field), std::string_view{})
                      : readable(take(length, field), field);
  }
  [[nodiscard]] std::optional<std::string_view> nullable_text(bool flexible, const char* field) {
    const std::int32_t length = text_length(flexible, field);
    if (length < 0) return std::nullopt;
    return readable(take(length, field), field);
  }
  [[nodiscard]] MutableBytes blob(bool flexible, const char* field) {
    const std::int32_t length = long_length(flexible, field);
    return length < 0 ? (fail_null(field), MutableBytes{}) : take(length, field);
  }
  [[nodiscard]] std::optional<MutableBytes> nullable_blob(bool flexible, const char* field) {
    const std::int32_t length = long_length(flexible, field);
    if (length < 0) return std::nullopt;
    return take(length, field);
  }

  /// How many bytes an element takes, on the wire at least and decoded exactly.
  struct ElementSize {
    std::size_t wire;
    std::size_t memory;
  };
  [[nodiscard]] std::size_t array_size(bool flexible, ElementSize element, const char* field) {
    const std::int32_t count = long_length(flexible, field);
    return count < 0 ? (fail_null(field), 0) : checked_count(count, element, field);
  }
  [[nodiscard]] std::optional<std::size_t> nullable_array_size(bool flexible, ElementSize element,
                                                               const char* field) {
    const std::int32_t count = long_length(flexible, field);
    if (count < 0) return std::nullopt;
    return checked_count(count, element, field);
  }

  // Tagged fields (KIP-482). As Kafka does, a known one is read in place whatever its size says.
  struct Tag {
    std::uint32_t id;
    std::uint32_t size;
  };
  [[nodiscard]] std::uint32_t tag_count();
  [[nodiscard]] Tag tag() {
    const std::uint32_t id = uvarint("tagged field");
    return {id, uvarint("tagged field")};
  }
  void skip_tag(Tag tag);
  void fail_tag_version(const char* field);
  void skip_tags() {
    for (std::uint32_t left = tag_count(); left > 0 && !failed_; --left) skip_tag(tag());
  }

  /// Called on the way out of a failed read to build the field path, innermost first.
  void inside(const char* field, std::optional<std::size_t> index = std::nullopt);

 private:
  template <class T>
  T number(const char* field) {
    if (remaining() < sizeof(T)) [[unlikely]] {
      fail_short(field, sizeof(T));
      return T{};
    }
    const T value = load_be<T>(at_);
    at_ += sizeof(T);
    return value;
  }
  std::int32_t compact_length(const char* field) {
    const std::uint32_t length = uvarint(field);
    return failed_ ? 0 : static_cast<std::int32_t>(length - 1);
  }
  std::int32_t long_length(bool flexible, const char* field) {
    return flexible ? compact_length(field) : int32(field);
  }
  std::int32_t text_length(bool flexible, const char* field) {
    if (!flexible) return int16(field);
    const std::int32_t length = compact_length(field);
    if (length > kMaxStringLength) [[unlikely]]
      return fail_length(field, length), 0;
    return length;
  }
  MutableBytes take(std::int32_t length, const char* field) {
    const auto size = static_cast<std::size_t>(length);
    if (remaining() < size) [[unlikely]] {
      fail_short(field, size);
      return {};
    }
    const MutableBytes view(at_, size);
    at_ += size;
    return view;
  }
  std::string_view readable(MutableBytes bytes, const char* field) {
    // Nearly every text is ASCII, looked at eight bytes at a time.
    constexpr std::uint64_t kHighBits = 0x8080'8080'8080'8080;
    const std::string_view text = as_text(bytes);
    std::uint64_t seen = 0;
    std::size_t i = 0;
    for (; i + sizeof seen <= text.size(); i += sizeof seen) {
      std::uint64_t eight;
      std::memcpy(&eight, text.data() + i, sizeof eight);
      seen |= eight;
    }
    for (; i < text.size(); ++i) seen |= static_cast<std::uint8_t>(text[i]);
    return (seen & kHighBits) == 0 ? text : readable_slow(text, field);
  }
  std::string_view readable_slow(std::string_view text, const char* field);
  std::size_t checked_count(std::int32_t count, ElementSize element, const char* field);
  std::uint32_t long_uvarint(const char* field);

  void fail(const char* field, std::string reason);
  void fail_short(const char* field, std::size_t wanted);
  void fail_null(const char* field);
  void fail_length(const char* field, std::int32_t length);

  std::byte* start_;
  std::byte* at_;
  std::byte* end_;
  std::size_t budget_;
  std::forward_list<std::string> replaced_;  // texts that were not UTF-8
  bool failed_ = false;
  std::size_t failed_at_ = 0;
  std::string path_;
  std::string reason_;
};

}  // namespace kanal::wire
