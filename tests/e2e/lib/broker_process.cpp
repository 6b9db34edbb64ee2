#include "broker_process.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace kanal::e2e {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kStartSeconds = 60, kStopSeconds = 20;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

bool can_bind(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool bound = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(fd);
  return bound;
}

std::string make_scratch() {
  std::string name = (std::filesystem::temp_directory_path() / "kanal-e2e-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch directory " + name);
  return name;
}

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace

const char* variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
}

int free_port() {
  constexpr int kFirst = 10000, kCount = 20000;  // below the ephemeral range
  static int next = kFirst + ::getpid() * 97 % kCount;
  for (int tries = 0; tries < kCount; ++tries) {
    next = kFirst + (next + 1 - kFirst) % kCount;
    if (can_bind(next)) return next;
  }
  throw std::runtime_error("no free port");
}

BrokerProcess::BrokerProcess(std::string binary, std::vector<std::string> settings)
    : binary_(std::move(binary)), settings_(std::move(settings)), scratch_(make_scratch()) {
  if (const char* other = variable("KANALD")) binary_ = other;
  const auto is_listeners = [](const std::string& text) { return text.starts_with("listeners="); };
  if (std::ranges::none_of(settings_, is_listeners)) {
    settings_.push_back("listeners=PLAINTEXT://127.0.0.1:" + std::to_string(free_port()));
  }
}

BrokerProcess::~BrokerProcess() {
  if (running()) kill9();
  std::error_code ignored;
  if (variable("KEEP_SCRATCH") == nullptr) std::filesystem::remove_all(scratch_, ignored);
}

void BrokerProcess::start() {
  const auto ready = scratch_ / "ready";
  std::filesystem::remove(ready);
  ++starts_;
  const auto begin = Clock::now();
  spawn();
  while (!std::filesystem::exists(ready)) {
    expect_running();
    if (ms_since(begin) > kStartSeconds * 1000)
      throw std::runtime_error("kanald does not start\n" + log_tail());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  start_ms_ = ms_since(begin);
  addresses_ = lines_of(ready);
}

void BrokerProcess::spawn() {
  std::vector<std::string> words{binary_, "--data-dir", (scratch_ / "data").string(),
                                 "--ready-file", (scratch_ / "ready").string()};
  for (const std::string& setting : settings_) words.insert(words.end(), {"--set", setting});
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int log = ::open(log_file().c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0644);
  pid_ = ::fork();
  if (pid_ == 0) {  // only what is safe after a fork in a process with threads
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::dup2(log, STDOUT_FILENO);
    ::dup2(log, STDERR_FILENO);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(log);
  if (pid_ < 0) throw std::runtime_error("fork failed");
}

void BrokerProcess::expect_running() {
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return;
  pid_ = -1;
  const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                              : "exit code " + std::to_string(WEXITSTATUS(status));
  throw std::runtime_error("kanald has ended by itself, " + how + "\n" + log_tail());
}

void BrokerProcess::kill9() {
  ::kill(pid_, SIGKILL);
  wait_for_end(kStopSeconds);
}

int BrokerProcess::terminate() {
  ::kill(pid_, SIGTERM);
  const int status = wait_for_end(kStopSeconds);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int BrokerProcess::wait_for_end(double seconds) {
  const auto begin = Clock::now();
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) != pid_) {
    if (ms_since(begin) > seconds * 1000)
      throw std::runtime_error("kanald does not end\n" + log_tail());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  stop_ms_ = ms_since(begin);
  pid_ = -1;
  return status;
}

const std::string& BrokerProcess::address(std::size_t listener) const {
  return addresses_.at(listener);
}

std::filesystem::path BrokerProcess::channel(const std::string& topic, int partition) const {
  const std::string name =
      "kafka." + topic + (partition == 0 ? "" : "~" + std::to_string(partition));
  return scratch_ / "data" / "channels" / name;
}

std::filesystem::path BrokerProcess::active_segment(const std::string& topic, int partition) const {
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(channel(topic, partition))) {
    if (entry.path().extension() == ".log") newest = std::max(newest, entry.path());
  }
  return newest;
}

std::filesystem::path BrokerProcess::log_file() const {
  return scratch_ / ("log." + std::to_string(starts_));
}

std::vector<std::string> BrokerProcess::log_lines(const std::string& part) const {
  auto lines = lines_of(log_file());
  std::erase_if(lines,
                [&](const std::string& line) { return line.find(part) == std::string::npos; });
  return lines;
}

long BrokerProcess::start_figure(const std::string& key) const {
  // The line is written just after the ready file.
  for (int tries = 0; tries < 2000; ++tries) {
    for (const std::string& line : log_lines("Serving.")) {
      const auto at = line.find(" " + key + "=");
      if (at != std::string::npos)
        return std::strtol(line.c_str() + at + key.size() + 2, nullptr, 10);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return -1;
}

std::string BrokerProcess::log_tail() const {
  const auto lines = lines_of(log_file());
  std::string tail;
  for (std::size_t i = lines.size() > 40 ? lines.size() - 40 : 0; i < lines.size(); ++i)
    tail += "  " + lines[i] + "\n";
  return tail;
}

}  // namespace kanal::e2e
