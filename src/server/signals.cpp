#include "signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "kanal/base/check.hpp"

namespace kanal::server {
namespace {

int pipe_ends[2] = {-1, -1};
std::atomic<int> received{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_stop_signal(int number) {
  const int error = errno;
  if (received.fetch_add(1) > 0) ::_exit(128 + number);
  const char byte = static_cast<char>(number);
  if (::write(pipe_ends[1], &byte, 1) != 1) ::_exit(128 + number);
  errno = error;
}

}  // namespace

StopSignals::StopSignals() {
  CHECK(pipe_ends[0] < 0, "one StopSignals a process");
  CHECK(::pipe2(pipe_ends, O_CLOEXEC) == 0, "a pipe is to be had");
  struct sigaction action{};
  action.sa_handler = on_stop_signal;
  ::sigfillset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGINT, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

int StopSignals::wait() {
  char number = 0;
  pollfd readable{pipe_ends[0], POLLIN, 0};
  // Not in read(): under the thread sanitizer a handler runs once the call returns, and read()
  // would not.
  while (::poll(&readable, 1, -1) < 0 && errno == EINTR) {
  }
  while (::read(pipe_ends[0], &number, 1) < 0 && errno == EINTR) {
  }
  return number;
}

}  // namespace kanal::server
