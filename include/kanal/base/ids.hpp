// Strong identifiers and protocol scalars shared by every layer. Plain values: any thread.
// Offset (Kafka, counts from 0) and Sequence (channel, counts from 1) are different types;
// offset = sequence - 1 and the two functions below are the only conversion.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace kanal {

/// A number that cannot be mixed up with another kind of number.
template <class Tag, class Rep>
class Strong {
 public:
  using rep = Rep;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const noexcept { return value_; }
  friend constexpr auto operator<=>(Strong, Strong) = default;

  constexpr Strong& operator+=(Rep delta) {
    value_ += delta;
    return *this;
  }
  constexpr Strong& operator++() {
    ++value_;
    return *this;
  }
  friend constexpr Strong operator+(Strong a, Rep delta) {
    return Strong(static_cast<Rep>(a.value_ + delta));
  }
  friend constexpr Strong operator-(Strong a, Rep delta) {
    return Strong(static_cast<Rep>(a.value_ - delta));
  }
  friend constexpr Rep operator-(Strong a, Strong b) {
    return static_cast<Rep>(a.value_ - b.value_);
  }

 private:
  Rep value_{};
};

using Offset = Strong<struct OffsetTag, std::int64_t>;      // Kafka's: first record is 0
using Sequence = Strong<struct SequenceTag, std::int64_t>;  // the channel's: first record is 1
using LeaderEpoch = Strong<struct LeaderEpochTag, std::int32_t>;      // -1: not known
using ProducerId = Strong<struct ProducerIdTag, std::int64_t>;        // -1: none
using ProducerEpoch = Strong<struct ProducerEpochTag, std::int16_t>;  // -1: none
using PartitionIndex = Strong<struct PartitionIndexTag, std::int32_t>;
using NodeId = Strong<struct NodeIdTag, std::int32_t>;
using Timestamp = Strong<struct TimestampTag, std::int64_t>;  // ms since 1970 UTC; -1: none
using ChannelHandle =
    Strong<struct ChannelHandleTag, std::uint32_t>;  // small dense number of an open channel

inline constexpr LeaderEpoch kNoLeaderEpoch{-1};
inline constexpr ProducerId kNoProducerId{-1};
inline constexpr ProducerEpoch kNoProducerEpoch{-1};
inline constexpr Timestamp kNoTimestamp{-1};
inline constexpr Offset kNoOffset{-1};
/// No stored sequence is above. Whoever reads one from a file checks it with is_stored(): sums and
/// differences of two, and of one and a batch's length, then cannot overflow.
inline constexpr Sequence kLargestSequence{std::int64_t{1} << 62};
[[nodiscard]] constexpr bool is_stored(Sequence sequence) {
  return sequence >= Sequence(1) && sequence <= kLargestSequence;
}

[[nodiscard]] constexpr Offset to_offset(Sequence sequence) {
  return Offset(sequence.value() - 1);
}
[[nodiscard]] constexpr Sequence to_sequence(Offset offset) {
  return Sequence(offset.value() + 1);
}

/// 128-bit topic or cluster id, big endian as on the wire. All zero means "none".
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};
  [[nodiscard]] bool is_zero() const noexcept { return bytes == std::array<std::uint8_t, 16>{}; }
  friend auto operator<=>(const Uuid&, const Uuid&) = default;
};

/// Kafka's text form: URL-safe base64 without padding, 22 characters.
[[nodiscard]] std::string to_string(const Uuid& id);

}  // namespace kanal

template <class Tag, class Rep>
struct std::hash<kanal::Strong<Tag, Rep>> {
  std::size_t operator()(kanal::Strong<Tag, Rep> id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};

template <>
struct std::hash<kanal::Uuid> {
  std::size_t operator()(const kanal::Uuid& id) const noexcept;
};
