#include "kanal/wire/reader.hpp"

#include <string>
#include <utility>

#include "utf8.hpp"

namespace kanal::wire {

Error Reader::error(std::string_view message, std::int16_t version, ErrorCode code) const {
  std::string detail(message);
  detail += " v" + std::to_string(version) + ": " + path_ + " at byte " +
            std::to_string(failed_at_) + ": ";
  return Error{code, detail + reason_};
}

std::uint32_t Reader::long_uvarint(const char* field) {
  std::uint32_t value = 0;
  for (unsigned shift = 0; shift <= 28; shift += 7) {
    const auto octet = static_cast<std::uint32_t>(number<std::uint8_t>(field));
    value |= (octet & 0x7fU) << shift;
    if (octet < 0x80U) return failed_ ? 0 : value;
  }
  fail(field, "a variable-length number of more than 5 bytes");
  return 0;
}

std::string_view Reader::readable_slow(std::string_view text, const char* field) {
  if (is_utf8(text)) return text;
  std::string replaced = replace_malformed_utf8(text);
  if (replaced.size() > static_cast<std::size_t>(kMaxStringLength)) {
    fail(field, "text that is not UTF-8, and too long once that is replaced");
    return {};
  }
  if (replaced.size() > budget_) {
    fail(field, "text that is not UTF-8, over the memory limit of one request");
    return {};
  }
  budget_ -= replaced.size();
  return replaced_.emplace_front(std::move(replaced));
}

std::size_t Reader::checked_count(std::int32_t count, ElementSize element, const char* field) {
  const auto wanted = static_cast<std::size_t>(count);
  if (wanted > remaining() / element.wire) {
    fail(field, std::to_string(count) + " elements announced, only " + std::to_string(remaining()) +
                    " bytes left");
    return 0;
  }
  if (count > kMaxArrayLength) {
    fail(field,
         std::to_string(count) + " elements, over the limit of " + std::to_string(kMaxArrayLength));
    return 0;
  }
  if (wanted > budget_ / element.memory) {
    fail(field, std::to_string(count) + " elements, over the memory limit of one request");
    return 0;
  }
  budget_ -= wanted * element.memory;
  return wanted;
}

std::uint32_t Reader::tag_count() {
  const std::uint32_t count = uvarint("tagged fields");
  if (count > remaining() || count > kMaxTaggedFields) {
    fail("tagged fields", std::to_string(count) + " tagged fields announced");
    return 0;
  }
  return count;
}

void Reader::skip_tag(Tag tag) {
  if (tag.size > remaining()) return fail_short("tagged field", tag.size);
  at_ += tag.size;
}

void Reader::fail_tag_version(const char* field) {
  fail(field, "this version has no such tagged field");
}

void Reader::inside(const char* field, std::optional<std::size_t> index) {
  std::string outer = field;
  if (index) outer += "[" + std::to_string(*index) + "]";
  path_ = path_.empty() ? std::move(outer) : std::move(outer) + "." + path_;
}

void Reader::fail_short(const char* field, std::size_t wanted) {
  fail(field,
       std::to_string(wanted) + " bytes announced, only " + std::to_string(remaining()) + " left");
}

void Reader::fail_null(const char* field) {
  fail(field, "null where this version has no null");
}

void Reader::fail_length(const char* field, std::int32_t length) {
  fail(field, "a string of " + std::to_string(length) + " bytes, over the limit of " +
                  std::to_string(kMaxStringLength));
}

void Reader::fail(const char* field, std::string reason) {
  if (failed_) return;
  failed_ = true;
  failed_at_ = position();
  path_ = field;
  reason_ = std::move(reason);
  at_ = end_;
}

}  // namespace kanal::wire
