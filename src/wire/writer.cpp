#include "kanal/wire/writer.hpp"

#include "kanal/base/check.hpp"
#include "kanal/wire/reader.hpp"

#include <algorithm>
#include <limits>

namespace kanal::wire {
namespace {

constexpr std::size_t kFirstCapacity = 512;
constexpr std::size_t kFrameSizeBytes = 4;

}  // namespace

void Writer::release() noexcept {
  reset();
  storage_ = Buffer();
  gaps_ = std::vector<Gap>();
}

Writer::Mark Writer::begin_frame() {
  const Mark mark{size_, gap_bytes_, gaps_.size()};
  int32(0);
  return mark;
}

void Writer::end_frame(Mark frame) {
  const std::uint64_t bytes =
      size_ - frame.position - kFrameSizeBytes + gap_bytes_ - frame.gap_bytes;
  CHECK(bytes <= static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()),
        "a frame fits an int32");
  store_be(storage_.data() + frame.position, static_cast<std::int32_t>(bytes));
}

void Writer::discard(Mark frame) {
  size_ = frame.position;
  gap_bytes_ = frame.gap_bytes;
  gaps_.resize(frame.gap_count);
}

void Writer::milliseconds(std::chrono::milliseconds value) {
  const std::int64_t low = std::numeric_limits<std::int32_t>::min();
  const std::int64_t high = std::numeric_limits<std::int32_t>::max();
  int32(static_cast<std::int32_t>(std::clamp<std::int64_t>(value.count(), low, high)));
}

void Writer::text(bool flexible, std::string_view value) {
  value = value.substr(0, static_cast<std::size_t>(kMaxStringLength));
  if (flexible)
    uvarint(static_cast<std::uint32_t>(value.size() + 1));
  else
    int16(static_cast<std::int16_t>(value.size()));
  raw(as_bytes(value));
}

void Writer::nullable_text(bool flexible, std::optional<std::string_view> value) {
  if (value) return text(flexible, *value);
  flexible ? uvarint(0) : int16(-1);
}

void Writer::blob(bool flexible, Bytes value) {
  long_length(flexible, value.size());
  raw(value);
}

void Writer::nullable_blob(bool flexible, std::optional<Bytes> value) {
  value ? blob(flexible, *value) : null_length(flexible);
}

void Writer::records(bool flexible, const ExternalRecords& value) {
  if (value.is_inline()) return blob(flexible, value.inline_bytes);
  long_length(flexible, value.bytes);
  if (value.bytes == 0) return;
  gaps_.push_back({size_, value.bytes, value.first_slice, value.slice_count});
  gap_bytes_ += value.bytes;
}

void Writer::end_tag(std::size_t begin) {
  const std::size_t length = size_ - begin;
  uvarint(static_cast<std::uint32_t>(length));  // written behind the value, then rotated before it
  const auto at = [this](std::size_t position) {
    return storage_.begin() + static_cast<std::ptrdiff_t>(position);
  };
  std::rotate(at(begin), at(begin + length), at(size_));
}

void Writer::grow(std::size_t bytes) {
  storage_.resize(std::max({kFirstCapacity, storage_.size() * 2, size_ + bytes}));
}

}  // namespace kanal::wire
