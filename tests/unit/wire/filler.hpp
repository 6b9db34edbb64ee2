// Values for every field of a message, the same in every run: generated fill_message() asks it
// field by field. Views it hands out live as long as the Filler. Test code, single-threaded.
#pragma once

#include "kanal/wire/message.hpp"

#include <deque>
#include <limits>
#include <memory>
#include <random>

namespace kanal::wire {

enum class Pattern {
  kFilled,    // every field set, arrays of two, nothing null
  kNulls,     // null wherever a version allows it, everything else small or empty
  kExtremes,  // largest and smallest numbers, empty strings and arrays
  kRandom,    // from the seed
};

class Filler {
 public:
  Filler(Pattern pattern, std::uint64_t seed) : pattern_(pattern), random_(seed) {}

  bool boolean() {
    return pattern_ == Pattern::kRandom ? random_() % 2 == 0 : pattern_ != Pattern::kNulls;
  }
  bool null() {
    return pattern_ == Pattern::kNulls || (pattern_ == Pattern::kRandom && random_() % 4 == 0);
  }
  std::size_t count() {
    switch (pattern_) {
      case Pattern::kFilled:
        return 2;
      case Pattern::kNulls:
        return 1;
      case Pattern::kExtremes:
        return 1;
      case Pattern::kRandom:
        return random_() % 4;
    }
    return 0;
  }
  template <class T>
  T integer() {
    ++serial_;
    switch (pattern_) {
      case Pattern::kFilled:
        return static_cast<T>(serial_);
      case Pattern::kNulls:
        return 0;
      case Pattern::kExtremes:
        return serial_ % 2 == 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
      case Pattern::kRandom:
        return static_cast<T>(random_());
    }
    return 0;
  }
  double float64() { return static_cast<double>(integer<std::int32_t>()) / 4; }
  Uuid uuid() {
    Uuid id;
    if (pattern_ == Pattern::kNulls) return id;
    for (auto& octet : id.bytes) octet = static_cast<std::uint8_t>(integer<std::uint32_t>());
    return id;
  }
  std::string_view text() {
    ++serial_;
    switch (pattern_) {
      case Pattern::kFilled:
        return keep("text-" + std::to_string(serial_));
      case Pattern::kNulls:
        return keep("n");
      case Pattern::kExtremes:
        return {};
      case Pattern::kRandom:
        return keep(std::string(random_() % 200, static_cast<char>('a' + random_() % 26)));
    }
    return {};
  }
  MutableBytes blob() {
    const std::string_view source = text();
    Buffer& copy = blobs_.emplace_back(as_bytes(source).begin(), as_bytes(source).end());
    return copy;
  }
  Buffer buffer() {
    const Bytes source = blob();
    return {source.begin(), source.end()};
  }
  ExternalRecords records() {
    ExternalRecords records;
    records.inline_bytes = blob();
    return records;
  }

 private:
  std::string_view keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  Pattern pattern_;
  std::mt19937_64 random_;
  std::uint64_t serial_ = 0;
  std::deque<std::string> texts_;
  std::deque<Buffer> blobs_;
};

}  // namespace kanal::wire
