#include "control.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "support/scratch_directory.hpp"

namespace kanal::server {
namespace {

constexpr std::chrono::milliseconds kWhile{500};

/// Of all threads of this process: a busy machine does not make it more.
std::chrono::microseconds processor_time() {
  rusage used{};
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &used), 0);
  return std::chrono::seconds(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         std::chrono::microseconds(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/// No descriptor is to be had while this lives: all below the limit are taken.
class NoDescriptors {
 public:
  NoDescriptors() {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit none{3, before_.rlim_max};  // poll takes no more entries than the limit either
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    EXPECT_EQ(::dup(0), -1);
  }
  ~NoDescriptors() { EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before_), 0); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

/// Without virtual functions: UBSan needs descriptors to look at an object that has some.
class Client {
 public:
  explicit Client(const std::string& directory) {
    const std::string path = directory + "/control";
    EXPECT_LT(path.size(), sizeof address_.sun_path);
    std::ranges::copy(path, address_.sun_path);
    address_.sun_family = AF_UNIX;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void connect() {
    const auto* where = reinterpret_cast<const sockaddr*>(&address_);
    EXPECT_EQ(::connect(socket_, where, sizeof address_), 0);
  }
  void say(std::string_view text) {
    EXPECT_EQ(::send(socket_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  /// What comes until the other end is closed.
  std::string hear() {
    std::string heard;
    char byte = 0;
    while (::recv(socket_, &byte, 1, 0) == 1) heard += byte;
    return heard;
  }

 private:
  const int socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address_{};
};

class Control : public ::testing::Test {
 protected:
  /// So patient that a test would not end if it waited for it.
  std::unique_ptr<ControlSocket> open() {
    auto echo = [](const std::string& line, const auto&) -> Result<std::string> { return line; };
    auto control = ControlSocket::open(*files_, directory_, echo, std::chrono::hours(24));
    EXPECT_TRUE(control);
    return std::move(*control);
  }

  const std::unique_ptr<FileSystem> files_ = make_system_file_system();
  const kanal::test::ScratchDirectory scratch_;
  const std::string& directory_ = scratch_.root();
};

TEST_F(Control, AnswersALine) {
  const auto control = open();
  Client client(directory_);
  client.connect();
  client.say("hel");
  client.say("lo\n");
  EXPECT_EQ(client.hear(), "ok hello\n");
}

TEST_F(Control, IsNotHeldUpInItsStopByAClientThatSaysNothing) {
  auto control = open();
  Client client(directory_);
  client.connect();
  client.say("half a line");
  control.reset();
  EXPECT_EQ(client.hear(), "");
}

TEST_F(Control, WithoutDescriptorsWaitsForSomeAndAnswersThen) {
  const auto control = open();
  Client client(directory_);
  const auto used_before = processor_time();
  {
    const NoDescriptors none;
    client.connect();
    client.say("hello\n");
    std::this_thread::sleep_for(kWhile);
  }
  EXPECT_EQ(client.hear(), "ok hello\n");
  EXPECT_LT(processor_time() - used_before, kWhile / 2) << "it tries again without a pause";
}

TEST_F(Control, StopsWithoutDescriptors) {
  auto control = open();
  Client client(directory_);
  const NoDescriptors none;
  client.connect();
  client.say("hello\n");
  control.reset();
  EXPECT_EQ(client.hear(), "");
}

}  // namespace
}  // namespace kanal::server
