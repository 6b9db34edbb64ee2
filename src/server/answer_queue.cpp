#include "answer_queue.hpp"

#include <sys/sendfile.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "kanal/base/check.hpp"
#include "kanal/base/logging.hpp"

namespace kanal::server {
namespace {

// Shared by the connections of a thread: what is read into it is sent or read again.
MutableBytes scratch(std::size_t bytes) {
  thread_local const std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);
  return {memory.get(), bytes};
}

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK;
}

}  // namespace

std::unique_ptr<wire::Writer> WriterPool::take() {
  if (idle_.empty()) return std::make_unique<wire::Writer>();
  auto writer = std::move(idle_.back());
  idle_.pop_back();
  return writer;
}

void WriterPool::give_back(std::unique_ptr<wire::Writer> writer) {
  if (idle_.size() >= kKept || writer->capacity() > kLargestKept) return;
  writer->reset();
  idle_.push_back(std::move(writer));
}

void AnswerQueue::push(Answer answer) {
  for (const wire::Gap& gap : answer.out->gaps()) {
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < gap.slice_count; ++i)
      bytes += log::length_of(answer.slices[gap.first_slice + i]);
    CHECK(bytes == gap.bytes, "an answer's records are as long as its size says");
  }
  unsent_bytes_ += answer.out->total_bytes();
  answers_.push_back(std::move(answer));
}

SendState AnswerQueue::send(int socket) {
  for (std::size_t turn = 0; !answers_.empty();) {
    if (turn >= kTurnBytes) return SendState::kYield;
    const std::int64_t bytes = send_some(socket);
    if (bytes < 0) return SendState::kBroken;
    if (bytes == 0) return SendState::kBlocked;
    turn += static_cast<std::size_t>(bytes);
  }
  return SendState::kEmpty;
}

std::int64_t AnswerQueue::send_some(int socket) {
  Gathered gathered;
  gather(gathered);
  if (gathered.failed) return -1;
  if (gathered.count == 0) return gathered.file_follows ? send_file(socket) : -1;
  msghdr message{};
  message.msg_iov = gathered.pieces.data();
  message.msg_iovlen = gathered.count;
  const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (gathered.file_follows ? MSG_MORE : 0);
  ssize_t bytes = -1;
  do bytes = ::sendmsg(socket, &message, flags);
  while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return would_block(errno) ? 0 : -1;
  sent(static_cast<std::size_t>(bytes));
  // A short write means that the buffer is full: asking again would only say so.
  if (static_cast<std::size_t>(bytes) < gathered.bytes) return 0;
  return bytes;
}

std::int64_t AnswerQueue::send_file(int socket) {
  Piece piece;
  if (!next_piece(at_, piece) || piece.file == nullptr) return -1;
  auto offset = static_cast<off_t>(piece.offset);
  ssize_t bytes = -1;
  do
    bytes = ::sendfile(socket, piece.file->file->native_handle(), &offset,
                       piece.bytes > kSendFileLast ? kSendFilePiece : piece.bytes);
  while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return would_block(errno) ? 0 : -1;
  if (bytes == 0) {
    logger("server").error("A segment file is shorter than the records it should hold position={}",
                           piece.offset);
    return -1;
  }
  sent(static_cast<std::size_t>(bytes));
  return bytes;
}

void AnswerQueue::gather(Gathered& into) {
  std::size_t scratch_used = 0;
  Cursor at = at_;
  for (; at.answer < answers_.size() && into.count < kPieces;
       ++at.answer, at = Cursor{.answer = at.answer}) {
    for (Piece piece; into.count < kPieces && next_piece(at, piece);
         advance(at, piece, piece.bytes)) {
      if (piece.file != nullptr) {
        if (piece.bytes >= kReadBelow && piece.file->file->native_handle() >= 0) {
          into.file_follows = true;
          return;
        }
        piece.bytes = std::min(piece.bytes, kScratch - scratch_used);
        if (piece.bytes == 0) return;
        if (!read_small(piece, scratch_used)) {
          into.failed = true;
          return;
        }
        piece.memory = scratch(kScratch).subspan(scratch_used, piece.bytes);
        scratch_used += piece.bytes;
      }
      into.pieces[into.count++] = {const_cast<std::byte*>(piece.memory.data()), piece.bytes};
      into.bytes += piece.bytes;
    }
    if (into.count == kPieces) return;
  }
}

bool AnswerQueue::read_small(const Piece& piece, std::size_t scratch_used) {
  const auto read =
      piece.file->file->read_at(piece.offset, scratch(kScratch).subspan(scratch_used, piece.bytes));
  if (read && *read == piece.bytes) return true;
  logger("server").error("Records of an answer cannot be read position={} bytes={} reason=\"{}\"",
                         piece.offset, piece.bytes,
                         read ? "the file is shorter" : read.error().detail);
  return false;
}

bool AnswerQueue::next_piece(Cursor& at, Piece& piece) const {
  const Answer& answer = answers_[at.answer];
  const auto gaps = answer.out->gaps();
  const Bytes bytes = answer.out->bytes();
  for (;;) {
    const std::size_t until = at.gap < gaps.size() ? gaps[at.gap].position : bytes.size();
    if (at.position < until) {
      piece = {.memory = bytes.subspan(at.position, until - at.position),
               .bytes = until - at.position};
      return true;
    }
    if (at.gap >= gaps.size()) return false;
    if (at.slice >= gaps[at.gap].slice_count) {
      ++at.gap;
      at.slice = at.in_slice = 0;
      continue;
    }
    const log::Slice& slice = answer.slices[gaps[at.gap].first_slice + at.slice];
    const std::size_t left = log::length_of(slice) - at.in_slice;
    if (left == 0) {
      ++at.slice;
      at.in_slice = 0;
      continue;
    }
    if (const auto* file = std::get_if<log::FileSlice>(&slice.where)) {
      piece = {.file = file, .offset = file->offset + at.in_slice, .bytes = left, .of_slice = true};
    } else {
      const Bytes memory = std::get<log::MemorySlice>(slice.where).bytes;
      piece = {.memory = memory.subspan(at.in_slice), .bytes = left, .of_slice = true};
    }
    return true;
  }
}

void AnswerQueue::advance(Cursor& at, const Piece& piece, std::size_t bytes) {
  if (piece.of_slice)
    at.in_slice += static_cast<std::uint32_t>(bytes);
  else
    at.position += bytes;
}

void AnswerQueue::sent(std::size_t bytes) {
  unsent_bytes_ -= bytes;
  while (!answers_.empty()) {
    Piece piece;
    if (!next_piece(at_, piece)) {
      writers_.give_back(std::move(answers_.front().out));
      answers_.pop_front();
      at_ = {};
      continue;
    }
    if (bytes == 0) return;
    const std::size_t part = std::min(bytes, piece.bytes);
    advance(at_, piece, part);
    bytes -= part;
  }
}

}  // namespace kanal::server
