#include "control.hpp"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "kanal/base/logging.hpp"

namespace kanal::server {
namespace {

constexpr std::string_view kName = "control";
constexpr std::size_t kLongestLine = 8192;
constexpr std::chrono::milliseconds kBetweenAttempts{100};

std::unexpected<Error> failed(const std::string& what, int error = errno) {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, what + ": " + std::generic_category().message(error),
              error);
}

/// An address has room for 107 bytes, a path may be longer: through the directory's descriptor.
Result<sockaddr_un> address_in(const File& directory) {
  const std::string path =
      "/proc/self/fd/" + std::to_string(directory.native_handle()) + "/" + std::string(kName);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return failed("the address is too long", ENAMETOOLONG);
  std::ranges::copy(path, address.sun_path);
  return address;
}

/// What ends a wait: an end of a pair whose other end was closed (-1: nothing), and time.
struct Patience {
  int wake = -1;
  std::chrono::milliseconds longest{-1};  // -1: for ever
};

/// Whether there is something to accept or to read, an end or an error among it.
bool wait_for(int socket, const Patience& patience) {
  std::array<pollfd, 2> waiting{pollfd{socket, POLLIN, 0}, pollfd{patience.wake, POLLIN, 0}};
  int ready = 0;
  do {
    ready = ::poll(waiting.data(), waiting.size(), static_cast<int>(patience.longest.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0 && waiting[1].revents == 0;
}

/// Up to a line's end, the stream's end, an error or the end of patience.
std::string read_line(int connection, const Patience& patience) {
  std::string line;
  std::array<char, 1024> part{};
  while (line.find('\n') == std::string::npos && line.size() <= kLongestLine) {
    if (!wait_for(connection, patience)) break;
    const ssize_t got = ::recv(connection, part.data(), part.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    line.append(part.data(), static_cast<std::size_t>(got));
  }
  return line.substr(0, line.find('\n'));
}

void write_line(int connection, std::string line) {
  std::ranges::replace(line, '\n', ' ');
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t sent = ::send(connection, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    rest.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool has_hung_up(int connection) {
  pollfd look{connection, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLHUP | POLLERR | POLLRDHUP)) != 0;
}

}  // namespace

ControlSocket::ControlSocket(FileSystem& files, std::string path, Handler handler,
                             std::chrono::milliseconds patience)
    : files_(files), path_(std::move(path)), handler_(std::move(handler)), patience_(patience) {}

Result<std::unique_ptr<ControlSocket>> ControlSocket::open(FileSystem& files,
                                                           const std::string& data_directory,
                                                           Handler handler,
                                                           std::chrono::milliseconds patience) {
  std::unique_ptr<ControlSocket> control(new ControlSocket(
      files, data_directory + "/" + std::string(kName), std::move(handler), patience));
  if (auto done = files.remove(control->path_); !done) return std::unexpected(done.error());
  auto directory = files.open(data_directory, OpenMode::kRead);
  if (!directory) return std::unexpected(std::move(directory.error()));
  const auto address = address_in(**directory);
  if (!address) return std::unexpected(address.error());
  const std::string what = "cannot listen at '" + control->path_ + "'";
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control->wake_) != 0)
    return failed(what);
  control->listening_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (control->listening_ < 0) return failed(what);
  const auto* where = reinterpret_cast<const sockaddr*>(&*address);
  if (::bind(control->listening_, where, sizeof *address) != 0) return failed(what);
  // Before anybody can connect.
  if (::chmod(address->sun_path, S_IRUSR | S_IWUSR) != 0) return failed(what);
  if (::listen(control->listening_, 4) != 0) return failed(what);
  control->thread_ = std::jthread([self = control.get()] { self->serve(); });
  ::pthread_setname_np(control->thread_.native_handle(), "kanal-control");
  return control;
}

ControlSocket::~ControlSocket() {
  stopping_ = true;
  if (thread_.joinable()) {
    ::close(std::exchange(wake_[1], -1));  // which the other end notices
    thread_.join();
  }
  for (const int each : {listening_, wake_[0], wake_[1]}) {
    if (each >= 0) ::close(each);
  }
  if (listening_ >= 0) (void)files_.remove(path_);
}

void ControlSocket::serve() {
  while (!stopping_) {
    if (!wait_for(listening_, {.wake = wake_[0]})) continue;
    const int connection = ::accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      // Without descriptors it goes on being ready: not again at once.
      (void)wait_for(-1, {wake_[0], kBetweenAttempts});
      continue;
    }
    serve(connection);
    ::close(connection);
  }
}

void ControlSocket::serve(int connection) {
  const std::string line = read_line(connection, {wake_[0], patience_});
  if (line.empty() || stopping_) return;
  const auto answer = handler_(line, [&] { return stopping_.load() || has_hung_up(connection); });
  write_line(connection, answer ? "ok " + *answer : "error " + answer.error().detail);
}

Result<std::string> ask_daemon(FileSystem& files, const std::string& data_directory,
                               const std::string& line) {
  auto directory = files.open(data_directory, OpenMode::kRead);
  if (!directory) return std::unexpected(std::move(directory.error()));
  const auto address = address_in(**directory);
  if (!address) return std::unexpected(address.error());
  const int connection = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) return failed("no socket is to be had");
  const auto* where = reinterpret_cast<const sockaddr*>(&*address);
  if (::connect(connection, where, sizeof *address) != 0) {
    const int error = errno;
    ::close(connection);
    return failed("cannot reach the daemon at '" + data_directory + "/" + std::string(kName) + "'",
                  error);
  }
  write_line(connection, line);
  std::string answer = read_line(connection, {});
  ::close(connection);
  if (answer.starts_with("ok ")) return answer.substr(3);
  if (answer.starts_with("error ")) return fail(ErrorCode::UNKNOWN_SERVER_ERROR, answer.substr(6));
  return fail(ErrorCode::UNKNOWN_SERVER_ERROR, "the daemon ended before it answered");
}

}  // namespace kanal::server
