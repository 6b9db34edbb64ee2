#include "kanal/base/ids.hpp"

#include <cstring>

#include "kanal/base/random.hpp"

namespace kanal {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::string to_string(const Uuid& id) {
  std::string text;
  text.reserve(22);
  unsigned bits = 0;
  int held = 0;
  for (const std::uint8_t byte : id.bytes) {
    bits = (bits << 8) | byte;
    for (held += 8; held >= 6; held -= 6) text += kAlphabet[(bits >> (held - 6)) & 63];
  }
  text += kAlphabet[(bits << (6 - held)) & 63];
  return text;
}

Uuid fresh_uuid(Random& random) {
  for (;;) {
    Uuid id;
    const std::uint64_t halves[2] = {random.next(), random.next()};
    std::memcpy(id.bytes.data(), halves, sizeof halves);
    id.bytes[6] =
        static_cast<std::uint8_t>((id.bytes[6] & 0x0f) | 0x40);  // version 4, variant 2 as Java's
    id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3f) | 0x80);
    if (to_string(id).front() != '-')
      return id;  // a leading dash would read as an option on a command line
  }
}

}  // namespace kanal

std::size_t std::hash<kanal::Uuid>::operator()(const kanal::Uuid& id) const noexcept {
  std::uint64_t halves[2];
  std::memcpy(halves, id.bytes.data(), sizeof halves);
  return static_cast<std::size_t>(halves[0] ^ (halves[1] * 0x9e3779b97f4a7c15ULL));
}
