// The door for the operator on the same machine: a unix socket `control` in the data directory,
// open to its owner alone. One request a connection, one line: "snapshot DIR\n"; the answer is "ok
// …\n" or "error …\n". One request at a time, on a thread of its own, since a snapshot takes its
// time. Constructed and destroyed by the main thread; destroying it cancels what runs. ask_daemon:
// any process.
#pragma once

#include "kanal/base/error.hpp"
#include "kanal/base/file_system.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace kanal::server {

class ControlSocket {
 public:
  static constexpr std::chrono::milliseconds kPatience{5000};
  /// Answers one line with one line. `cancelled`: the asker is gone, or the daemon stops.
  using Handler = std::function<Result<std::string>(const std::string& line,
                                                    const std::function<bool()>& cancelled)>;
  /// The data directory's lock is held: a socket that is there is a dead daemon's. Who connects and
  /// says nothing holds up the next one for `patience`, and a stop not at all.
  static Result<std::unique_ptr<ControlSocket>> open(
      FileSystem& files, const std::string& data_directory, Handler handler,
      std::chrono::milliseconds patience = kPatience);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

 private:
  ControlSocket(FileSystem& files, std::string path, Handler handler,
                std::chrono::milliseconds patience);
  void serve();
  void serve(int connection);

  FileSystem& files_;
  const std::string path_;
  const Handler handler_;
  const std::chrono::milliseconds patience_;
  int listening_ = -1;
  int wake_[2] = {-1, -1};  // a pair of sockets
  std::atomic<bool> stopping_ = false;
  std::jthread thread_;
};

/// The answer of the daemon that uses the directory; os_error ENOENT or ECONNREFUSED where there is
/// none.
[[nodiscard]] Result<std::string> ask_daemon(FileSystem& files, const std::string& data_directory,
                                             const std::string& line);

}  // namespace kanal::server
