// What the load programs of tests/bench share: request frames, answers, connections on one epoll, the broker's CPU.
//
// One thread. Answers are those of a well-behaved broker: anything else ends the program. Compiled by the scripts
// beside it with plain g++, no libraries.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace raw {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

[[noreturn]] inline void fail(const std::string& text) {
  std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, text.c_str());
  std::exit(1);
}

/// A request frame under construction. `flexible`: with the header of flexible versions (KIP-482).
class Frame {
 public:
  Frame(int16_t key, int16_t version, uint32_t correlation, bool flexible = false) {
    number<int32_t>(0);
    number(key);
    number(version);
    number(correlation);
    text("bench");
    if (flexible) {
      no_tags();
    }
  }
  template <class T>
  Frame& number(T value) {
    for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8) {
      bytes_.push_back(static_cast<char>(static_cast<uint64_t>(value) >> shift));
    }
    return *this;
  }
  Frame& text(const std::string& value) {
    number(static_cast<int16_t>(value.size()));
    bytes_ += value;
    return *this;
  }
  Frame& null_text() { return number<int16_t>(-1); }
  Frame& blob(const std::string& value) {
    number(static_cast<int32_t>(value.size()));
    bytes_ += value;
    return *this;
  }
  Frame& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      bytes_.push_back(static_cast<char>(value | 0x80));
    }
    bytes_.push_back(static_cast<char>(value));
    return *this;
  }
  Frame& compact_count(size_t count) { return varint(count + 1); }
  Frame& compact_null() { return varint(0); }
  /// A text or bytes.
  Frame& compact(const std::string& value) {
    varint(value.size() + 1);
    bytes_ += value;
    return *this;
  }
  Frame& no_tags() { return varint(0); }
  std::string done() {
    const auto size = static_cast<uint32_t>(bytes_.size() - 4);
    for (int at = 0; at < 4; ++at) {
      bytes_[at] = static_cast<char>(size >> (24 - 8 * at));
    }
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

/// Reads an answer from its correlation id on. No bounds but the string's own.
class Answer {
 public:
  explicit Answer(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  T number() {
    uint64_t value = 0;
    for (size_t count = 0; count < sizeof(T); ++count) {
      value = value << 8 | static_cast<unsigned char>(bytes_.at(at_++));
    }
    return static_cast<T>(value);
  }
  std::string text() {
    const auto size = number<int16_t>();
    at_ += std::max<int16_t>(size, 0);
    return bytes_.substr(at_ - std::max<int16_t>(size, 0), std::max<int16_t>(size, 0));
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto octet = number<uint8_t>();
      value |= static_cast<uint64_t>(octet & 0x7f) << shift;
      if (octet < 0x80) {
        return value;
      }
    }
  }
  size_t compact_count() { return static_cast<size_t>(std::max<uint64_t>(varint(), 1) - 1); }
  void skip_compact_text() { at_ += compact_count(); }
  void skip_tags() {
    for (uint64_t count = varint(); count > 0; --count) {
      varint();
      at_ += varint();
    }
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

/// Connections on one epoll. A request is sent by blocking, answers are taken by pump().
class Connections {
 public:
  Connections(std::string host, const std::string& port)
      : host_(std::move(host)), port_(static_cast<uint16_t>(std::stoi(port))), epoll_(epoll_create1(0)) {}

  size_t open() {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    inet_pton(AF_INET, host_.c_str(), &address.sin_addr);
    if (socket < 0 || connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      fail("connection " + std::to_string(all_.size()) + ": " + std::strerror(errno));
    }
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = all_.size();
    epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event);
    all_.push_back({socket, {}});
    return all_.size() - 1;
  }

  void send(size_t connection, const std::string& frame) {
    for (size_t sent = 0; sent < frame.size();) {
      const ssize_t now = ::send(all_[connection].socket, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
      if (now < 0) {
        fail(std::string("send: ") + std::strerror(errno));
      }
      sent += static_cast<size_t>(now);
    }
  }

  /// Waits for up to `wait_ms` and gives each whole answer that arrived to `answered(const std::string& frame)`.
  template <class F>
  void pump(int wait_ms, F answered) {
    epoll_event events[256];
    const int count = epoll_wait(epoll_, events, 256, wait_ms);
    for (int at = 0; at < count; ++at) {
      One& connection = all_[events[at].data.u64];
      char buffer[65536];
      const ssize_t got = recv(connection.socket, buffer, sizeof buffer, 0);
      if (got <= 0) {
        fail("the broker closed a connection");
      }
      connection.input.append(buffer, static_cast<size_t>(got));
      size_t used = 0;
      while (connection.input.size() - used >= 4) {
        const std::string head = connection.input.substr(used, 4);
        const auto size = Answer(head).number<uint32_t>();
        if (connection.input.size() - used - 4 < size) {
          break;
        }
        answered(connection.input.substr(used + 4, size));
        used += 4 + size;
      }
      connection.input.erase(0, used);
    }
  }

 private:
  struct One {
    int socket = -1;
    std::string input;
  };

  std::string host_;
  uint16_t port_;
  int epoll_;
  std::vector<One> all_;
};

/// HOST PORT BROKER_PID TOPIC [NAME=VALUE]...; the names and their defaults are those of `numbers`.
struct Options {
  std::string host, port, topic;
  int broker = 0;
  std::map<std::string, int> numbers;

  Options(int count, char** arguments, std::map<std::string, int> defaults) : numbers(std::move(defaults)) {
    if (count < 5) {
      fail("HOST PORT BROKER_PID TOPIC [NAME=VALUE]...");
    }
    host = arguments[1];
    port = arguments[2];
    broker = std::atoi(arguments[3]);
    topic = arguments[4];
    for (int at = 5; at < count; ++at) {
      const std::string text = arguments[at];
      const size_t equals = text.find('=');
      if (equals == std::string::npos || !numbers.contains(text.substr(0, equals))) {
        fail("no such option: " + text);
      }
      numbers[text.substr(0, equals)] = std::stoi(text.substr(equals + 1));
    }
  }
  int operator[](const char* name) const { return numbers.at(name); }
};

/// Seconds, user and system, of all threads.
inline double broker_cpu(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  unsigned long user = 0;
  unsigned long system = 0;
  const char* rest = text.c_str() + text.rfind(')') + 2;
  std::sscanf(rest, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

inline double seconds_since(Time begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

inline double micros_since(Time begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

/// Sorts what was collected; 0 where that is nothing.
inline double quantile(std::vector<double>& values, double part) {
  std::sort(values.begin(), values.end());
  const auto last = static_cast<double>(values.size()) - 1;
  return values.empty() ? 0.0 : values[static_cast<size_t>(part * last)];
}

}  // namespace raw
