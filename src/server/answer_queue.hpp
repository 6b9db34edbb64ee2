// The answers of one connection on their way out, in request order. What is in memory leaves in one
// gathered call, up to the next large file slice; that leaves by sendfile, small ones are read and
// gathered too. Nothing blocks: where the socket takes no more, the rest stays for later. Belongs
// to the connection's I/O thread.
#pragma once

#include "kanal/log/channel_log.hpp"
#include "kanal/wire/writer.hpp"

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

namespace kanal::server {

/// Writers that answers are encoded into, kept for the next answer. One I/O thread.
class WriterPool {
 public:
  [[nodiscard]] std::unique_ptr<wire::Writer> take();
  void give_back(std::unique_ptr<wire::Writer> writer);

 private:
  static constexpr std::size_t kKept = 64;
  static constexpr std::size_t kLargestKept = 64 << 10;  // bytes of one writer
  std::vector<std::unique_ptr<wire::Writer>> idle_;
};

struct Answer {
  std::unique_ptr<wire::Writer> out;
  std::vector<log::Slice> slices;  // that the writer's gaps name
};

enum class SendState : std::uint8_t {
  kEmpty,    // all is sent
  kBlocked,  // the socket takes no more now
  kYield,    // enough for one turn; there is more
  kBroken,   // the connection or a file failed
};

class AnswerQueue {
 public:
  explicit AnswerQueue(WriterPool& writers) : writers_(writers) {}

  void push(Answer answer);
  [[nodiscard]] SendState send(int socket);
  [[nodiscard]] bool empty() const noexcept { return answers_.empty(); }
  [[nodiscard]] std::uint64_t unsent_bytes() const noexcept { return unsent_bytes_; }

 private:
  // 15 pages: on loopback larger calls split into a full segment and a runt each, at 2.5 times the
  // cost.
  static constexpr std::size_t kSendFilePiece = 60 << 10;
  static constexpr std::size_t kSendFileLast = 64 << 10;  // a rest up to this is not split
  static constexpr std::size_t kReadBelow =
      16 << 10;  // slices smaller than this are read, not sent by sendfile
  static constexpr std::size_t kTurnBytes = 1 << 20;
  static constexpr std::size_t kPieces = 64;
  static constexpr std::size_t kScratch = 64 << 10;

  struct Cursor {  // what of an answer is sent
    std::size_t answer = 0;
    std::size_t position = 0;  // in the writer's buffer
    std::size_t gap = 0;
    std::uint32_t slice = 0;  // within the gap
    std::uint32_t in_slice = 0;
  };
  struct Piece {
    Bytes memory = {};  // or
    const log::FileSlice* file = nullptr;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    bool of_slice = false;
  };
  struct Gathered {
    std::array<iovec, kPieces> pieces;
    std::size_t count = 0;
    std::size_t bytes = 0;
    bool file_follows = false;
    bool failed = false;
  };

  [[nodiscard]] bool next_piece(Cursor& at, Piece& piece) const;
  static void advance(Cursor& at, const Piece& piece, std::size_t bytes);
  void gather(Gathered& into);
  [[nodiscard]] bool read_small(const Piece& piece, std::size_t scratch_used);
  /// The bytes that left, 0 where the socket takes no more, -1 on failure.
  [[nodiscard]] std::int64_t send_some(int socket);
  [[nodiscard]] std::int64_t send_file(int socket);
  void sent(std::size_t bytes);

  WriterPool& writers_;
  std::deque<Answer> answers_;
  Cursor at_;
  std::uint64_t unsent_bytes_ = 0;
};

}  // namespace kanal::server
