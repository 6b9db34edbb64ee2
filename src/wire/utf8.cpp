#include "utf8.hpp"

namespace kanal::wire {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

struct Piece {
  std::size_t size;
  bool valid;
};

/// The character that `text` begins with, or what one replacement stands for. `text` is not empty.
Piece first_piece(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i) { return i < text.size() && (at(i) & 0xc0U) == 0x80U; };
  const unsigned lead = at(0);
  if (lead < 0x80) return {1, true};
  if (lead < 0xc2 || lead > 0xf4 || !continues(1)) return {1, false};
  if (lead < 0xe0) return {2, true};
  const unsigned second = at(1);
  const bool overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  if (overlong || (lead == 0xf4 && second > 0x8f)) return {1, false};
  if (!continues(2)) return {2, false};
  const bool surrogate = lead == 0xed && second > 0x9f;
  if (lead < 0xf0) return {3, !surrogate};
  if (!continues(3)) return {3, false};
  return {4, true};
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const Piece piece = first_piece(text);
    if (!piece.valid) return false;
    text.remove_prefix(piece.size);
  }
  return true;
}

std::string replace_malformed_utf8(std::string_view text) {
  std::string replaced;
  while (!text.empty()) {
    const Piece piece = first_piece(text);
    replaced += piece.valid ? text.substr(0, piece.size) : kReplacement;
    text.remove_prefix(piece.size);
  }
  return replaced;
}

}  // namespace kanal::wire
