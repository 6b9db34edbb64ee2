// Answers leave whole and in order, whatever they are made of and however little the socket takes
// at a time.
#include "answer_queue.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <random>
#include <string>

#include "kanal/base/file_system.hpp"

namespace kanal::server {
namespace {

class AnswerQueueTest : public ::testing::Test {
 protected:
  AnswerQueueTest() {
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets_), 0);
    const int small = 20'000;
    ::setsockopt(sockets_[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    char path[] = "/tmp/kanal-answers-XXXXXX";
    const int created = ::mkstemp(path);
    ::close(created);
    path_ = path;
    for (std::size_t i = 0; i < 300'000; ++i) content_ += static_cast<char>('a' + i * 7 % 26);
    file_ = std::move(*files_->open(path_, OpenMode::kReadWrite));
    const Bytes piece = as_bytes(content_);
    EXPECT_TRUE(file_->write_at(0, {&piece, 1}));
  }
  ~AnswerQueueTest() override {
    ::close(sockets_[0]);
    ::close(sockets_[1]);
    EXPECT_TRUE(files_->remove(path_));
  }

  log::Slice file_slice(std::size_t offset, std::size_t length) {
    return {log::FileSlice{file_.get(), offset, static_cast<std::uint32_t>(length)}, nullptr};
  }
  log::Slice memory_slice(std::size_t offset, std::size_t length) {
    return {log::MemorySlice{as_bytes(content_).subspan(offset, length)}, nullptr};
  }

  /// An answer of text, then `slices` as one records field, then text; adds what the client must
  /// see to expected_.
  void push(std::vector<log::Slice> slices, const std::string& expected_records) {
    Answer answer{writers_.take(), std::move(slices)};
    std::uint32_t bytes = 0;
    for (const log::Slice& slice : answer.slices) bytes += log::length_of(slice);
    const auto mark = answer.out->begin_frame();
    answer.out->int32(static_cast<std::int32_t>(expected_.size()));
    const auto count = static_cast<std::uint32_t>(answer.slices.size());
    answer.out->records(
        false, {.bytes = bytes, .first_slice = 0, .slice_count = count, .inline_bytes = {}});
    answer.out->int64(77);
    answer.out->end_frame(mark);
    const std::string_view all = as_text(answer.out->bytes());
    const std::size_t before = count == 0 ? all.size() : answer.out->gaps()[0].position;
    expected_ +=
        std::string(all.substr(0, before)) + expected_records + std::string(all.substr(before));
    queue_.push(std::move(answer));
  }

  /// Sends everything while the other side reads in small pieces.
  std::string send_all() {
    std::string got;
    for (int turns = 0; turns < 1'000'000; ++turns) {
      const SendState state = queue_.send(sockets_[0]);
      char buffer[3'001];
      const ssize_t bytes = ::recv(sockets_[1], buffer, sizeof buffer, 0);
      if (bytes > 0) got.append(buffer, static_cast<std::size_t>(bytes));
      if (state == SendState::kBroken) return "broken";
      if (state == SendState::kEmpty && bytes <= 0) break;
    }
    return got;
  }

  std::unique_ptr<FileSystem> files_ = make_system_file_system();
  std::string path_, content_, expected_;
  std::unique_ptr<File> file_;
  int sockets_[2] = {-1, -1};
  WriterPool writers_;
  AnswerQueue queue_{writers_};
};

TEST_F(AnswerQueueTest, SendsMemoryAndFilesInterleaved) {
  push({}, "");
  push({file_slice(100, 50)}, content_.substr(100, 50));
  push({file_slice(5'000, 150'000), memory_slice(7, 9)},
       content_.substr(5'000, 150'000) + content_.substr(7, 9));
  push({memory_slice(0, 40'000), file_slice(1, 1), file_slice(200'000, 100'000)},
       content_.substr(0, 40'000) + content_.substr(1, 1) + content_.substr(200'000));
  push({}, "");
  EXPECT_EQ(queue_.unsent_bytes(), expected_.size());
  EXPECT_EQ(send_all(), expected_);
  EXPECT_EQ(queue_.unsent_bytes(), 0U);
  EXPECT_TRUE(queue_.empty());
}

TEST_F(AnswerQueueTest, SendsManySmallSlices) {
  std::mt19937 random(1);
  for (int i = 0; i < 100; ++i) {
    std::vector<log::Slice> slices;
    std::string records;
    for (std::size_t n = random() % 9; n > 0; --n) {
      const std::size_t offset = random() % 200'000, length = random() % 20'000;
      slices.push_back(n % 2 == 0 ? memory_slice(offset, length) : file_slice(offset, length));
      records += content_.substr(offset, length);
    }
    push(std::move(slices), records);
  }
  EXPECT_EQ(send_all(), expected_);
}

TEST_F(AnswerQueueTest, AFileThatIsTooShortBreaksTheConnection) {
  push({file_slice(290'000, 100'000)}, std::string(100'000, '?'));
  EXPECT_EQ(send_all(), "broken");
}

TEST_F(AnswerQueueTest, YieldsAfterAMegabyte) {
  const int large = 8 << 20;
  ::setsockopt(sockets_[0], SOL_SOCKET, SO_SNDBUFFORCE, &large, sizeof large);
  std::string drop(1 << 20, ' ');
  for (int i = 0; i < 40; ++i) push({file_slice(0, 300'000)}, content_);
  SendState state = SendState::kBlocked;
  while ((state = queue_.send(sockets_[0])) == SendState::kBlocked) {
    ASSERT_GT(::recv(sockets_[1], drop.data(), drop.size(), 0), 0);
  }
  EXPECT_TRUE(state == SendState::kYield || state == SendState::kEmpty);
}

}  // namespace
}  // namespace kanal::server
