// A kanald of our own: started with a fresh data directory, ended by SIGTERM or SIGKILL, started
// again on the same port and the same data. One thread uses an object. What goes wrong is thrown
// with the end of the daemon's log. The process dies with this one; the scratch directory goes with
// the object, unless KEEP_SCRATCH is set.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace kanal::e2e {

/// Of the environment; nullptr if not set.
const char* variable(const char* name);

/// A port of 127.0.0.1 that is free now and that the system does not give to outgoing connections:
/// a broker that comes back finds it free.
int free_port();

class BrokerProcess {
 public:
  /// `binary`: path of kanald ($KANALD wins); `settings`: KEY=VALUE of --set.
  explicit BrokerProcess(std::string binary, std::vector<std::string> settings = {});
  ~BrokerProcess();
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;

  /// One more KEY=VALUE, from the next start on.
  void set(const std::string& setting) { settings_.push_back(setting); }
  /// Returns when the ready file is there.
  void start();
  void kill9();
  /// SIGTERM; the exit code.
  int terminate();
  [[nodiscard]] bool running() const { return pid_ > 0; }
  /// Throws where the daemon has ended by itself.
  void expect_running();

  /// host:port of the first listener; `address(1)` of the second.
  [[nodiscard]] const std::string& address(std::size_t listener = 0) const;
  [[nodiscard]] std::filesystem::path channel(const std::string& topic, int partition) const;
  /// The newest segment file of a partition.
  [[nodiscard]] std::filesystem::path active_segment(const std::string& topic, int partition) const;
  [[nodiscard]] const std::filesystem::path& scratch() const { return scratch_; }

  /// Lines since the last start that contain `part`.
  [[nodiscard]] std::vector<std::string> log_lines(const std::string& part) const;
  /// `key=NUMBER` of the line that tells that the daemon serves (after the last start), or -1.
  [[nodiscard]] long start_figure(const std::string& key) const;
  /// From exec to the ready file, seen from here.
  [[nodiscard]] double start_ms() const { return start_ms_; }
  [[nodiscard]] double stop_ms() const { return stop_ms_; }

 private:
  void spawn();
  int wait_for_end(double seconds);
  [[nodiscard]] std::string log_tail() const;
  [[nodiscard]] std::filesystem::path log_file() const;

  std::string binary_;
  std::vector<std::string> settings_;
  std::filesystem::path scratch_;
  std::vector<std::string> addresses_;
  int starts_ = 0;
  pid_t pid_ = -1;
  double start_ms_ = 0, stop_ms_ = 0;
};

}  // namespace kanal::e2e
