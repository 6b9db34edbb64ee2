// A TCP proxy in front of a broker that can lose its answers: requests still arrive, nothing comes
// back, until the broker closes the connection. One thread of its own; the calls may come from any
// other.
#pragma once

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace kanal::e2e {

class Proxy {
 public:
  /// Listens on 127.0.0.1:`port`; connects to 127.0.0.1:`broker_port` for each client.
  Proxy(int port, int broker_port);
  ~Proxy();

  /// From now on every answer of the connections there are is lost, and of those that come until it
  /// is set back.
  void lose_answers(bool lose) { losing_ = lose; }
  /// Bytes of answers lost so far.
  [[nodiscard]] std::size_t lost() const { return lost_; }

 private:
  struct Pair {
    int client = -1, broker = -1;
    bool losing = false;
  };
  void run(const std::stop_token& stop);
  void accept_one();
  /// False: the connection is over.
  bool forward(Pair& pair, bool from_broker);

  const int broker_port_;
  int listener_ = -1;
  std::vector<Pair> pairs_;
  std::atomic<bool> losing_{false};
  std::atomic<std::size_t> lost_{0};
  std::jthread thread_;
};

}  // namespace kanal::e2e
