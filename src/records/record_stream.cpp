#include "record_stream.hpp"

namespace kanal::records {

Result<bool> RecordStream::next(RecordFields& out) {
  if (done_ == source_.count) {
    if (at_ == end_ && !refill()) {  // also reads a codec's trailer: a cut stream shows up here
      if (error_.code != ErrorCode::NONE) return failure();
      return false;
    }
    (void)malformed("bytes are left after the last record");
    return failure();
  }
  ++done_;
  // the length is at most 5 bytes: read without bounds trouble if the chunk has them
  const std::byte* at = at_;
  std::int32_t length = 0;
  if (end_ - at_ >= static_cast<std::ptrdiff_t>(kMaxVarint) && read_varint(at, end_, length) &&
      length >= 0 && length <= source_.max_body && length <= end_ - at) {
    return read_whole(at, at + length, out);
  }
  return read_spanning(out);
}

Result<bool> RecordStream::read_whole(const std::byte* body, const std::byte* body_end,
                                      RecordFields& out) {
  out.size = static_cast<std::uint32_t>(body_end - at_);
  at_ = body_end;
  const char* why = nullptr;
  if (sink_ == nullptr) {
    why = parse_body(body, body_end, out);
  } else {
    RecordView view;
    why = parse_body(body, body_end, view);
    if (why == nullptr) {
      view.size = out.size;
      out = view;
      sink_->begin(out, view.tail.size());
      sink_->tail(view.tail);
    }
  }
  if (why == nullptr) return true;
  (void)malformed(why);
  return failure();
}

Result<bool> RecordStream::read_spanning(RecordFields& out) {
  std::int32_t length = 0;
  body_left_ = kMaxVarint;
  if (!take_varint(length)) return failure();
  if (length < 0) {
    (void)malformed("a record length is negative");
    return failure();
  }
  if (length > source_.max_body) {
    (void)malformed("a record is larger than max.decompressed.message.bytes");
    return failure();
  }
  body_left_ = length;
  out.size = static_cast<std::uint32_t>(varint_size(length)) + static_cast<std::uint32_t>(length);
  if (!read_spanning_fields(out)) return failure();
  return true;
}

bool RecordStream::read_spanning_fields(RecordFields& out) {
  std::byte attributes{};
  if (!take(attributes) || !take_varlong(out.timestamp_delta) || !take_varint(out.offset_delta))
    return false;
  out.attributes = static_cast<std::int8_t>(attributes);
  if (sink_ == nullptr) return read_spanning_tail(out);
  sink_->begin(out, static_cast<std::size_t>(body_left_));
  tail_ = at_;
  const bool whole = read_spanning_tail(out);
  if (whole) sink_->tail(Bytes(tail_, at_));
  tail_ = nullptr;
  return whole;
}

bool RecordStream::read_spanning_tail(RecordFields& out) {
  if (!take_varint(out.key_size) || !skip(out.key_size)) return false;
  if (!take_varint(out.value_size) || !skip(out.value_size)) return false;
  if (!take_varint(out.header_count)) return false;
  if (out.header_count < 0) return malformed("a record has a negative number of headers");
  if (out.header_count > body_left_) return malformed("a record has more headers than bytes");
  for (std::int32_t i = 0; i < out.header_count; ++i) {
    std::int32_t size = 0;
    if (!take_varint(size)) return false;
    if (size < 0) return malformed("a record header has no key");
    if (!skip(size) || !take_varint(size) || !skip(size)) return false;
  }
  return body_left_ == 0 || malformed("a record is longer than its fields");
}

bool RecordStream::refill() {
  if (tail_ != nullptr) sink_->tail(Bytes(tail_, end_));
  error_ = Error{ErrorCode::NONE, {}, 0};
  Result<Bytes> chunk = inflater_.next();
  if (!chunk) {
    error_ = std::move(chunk.error());
    at_ = end_ = tail_ = nullptr;
    return false;
  }
  at_ = chunk->data();
  end_ = at_ + chunk->size();
  if (tail_ != nullptr) tail_ = at_;
  return at_ != end_ && count_inflated(chunk->size());
}

bool RecordStream::count_inflated(std::size_t bytes) {
  if (source_.codec == Codec::kNone) return true;
  inflated_ += bytes;
  if (inflated_ > kMaxInflated) return malformed("the batch inflates to more than 2 GiB");
  over_budget_ = inflated_ > source_.budget;
  return !over_budget_ || malformed("the batch inflates beyond the budget");
}

bool RecordStream::take(std::byte& out) {
  if (body_left_ == 0) return malformed("a record ends inside a field");
  if (at_ == end_ && !refill()) {
    return error_.code == ErrorCode::NONE && malformed("the records end inside a record");
  }
  --body_left_;
  out = *at_++;
  return true;
}

bool RecordStream::take_varint(std::int32_t& out) {
  std::byte bytes[kMaxVarint];
  std::size_t size = 0;
  do {
    if (size == kMaxVarint) return malformed("a varint is too long");
    if (!take(bytes[size])) return false;
  } while ((bytes[size++] & std::byte{0x80}) != std::byte{0});
  const std::byte* at = bytes;
  return read_varint(at, bytes + size, out);
}

bool RecordStream::take_varlong(std::int64_t& out) {
  std::byte bytes[kMaxVarlong];
  std::size_t size = 0;
  do {
    if (size == kMaxVarlong) return malformed("a varint is too long");
    if (!take(bytes[size])) return false;
  } while ((bytes[size++] & std::byte{0x80}) != std::byte{0});
  const std::byte* at = bytes;
  return read_varlong(at, bytes + size, out);
}

bool RecordStream::skip(std::int32_t size) {
  if (size <= 0) return true;
  if (size > body_left_) return malformed("a record ends inside a field");
  body_left_ -= size;
  std::ptrdiff_t left = size;
  while (left > end_ - at_) {
    left -= end_ - at_;
    at_ = end_;
    if (!refill())
      return error_.code == ErrorCode::NONE && malformed("the records end inside a record");
  }
  at_ += left;
  return true;
}

bool RecordStream::malformed(const char* why) {
  error_ = Error{ErrorCode::INVALID_RECORD, why, 0};
  return false;
}

}  // namespace kanal::records
