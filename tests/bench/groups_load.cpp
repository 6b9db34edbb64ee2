// groups_load HOST PORT BROKER_PID TOPIC [NAME=VALUE]...: members of many classic groups as raw frames, for groups.py.
//
// One thread, one epoll. Every member joins, then sends heartbeats at its interval, then commits are spread over the
// members at an even rate (open loop: a late answer does not slow the next commit down). Prints one line per phase,
// "NAME key=value...": CPU of the broker is its utime + stime over the phase. Compiled by groups.py, no libraries.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "raw_frames.hpp"

namespace {

using raw::Answer;
using raw::broker_cpu;
using raw::Clock;
using raw::fail;
using raw::Frame;
using raw::Options;
using raw::seconds_since;
using raw::Time;

constexpr int kKinds = 4;
enum Kind : uint32_t { kJoin, kSync, kHeartbeat, kCommit };

struct Member {
  size_t connection = 0;
  std::string group;
  std::string id;
  int32_t generation = -1;
  std::string heartbeat;
  std::string commit;
  Time since[kKinds] = {};
  bool waiting[kKinds] = {};
  bool synced = false;
};

class Load {
 public:
  explicit Load(const Options& options) : options_(options), connections_(options.host, options.port) {
    const int groups = options_["groups"];
    const int size = options_["members"];
    members_.resize(static_cast<size_t>(groups) * size);
    const int per = options_["per_connection"];
    // Members of one group never share a connection: a broker reads a connection's next request only after the answer.
    const int connections = (groups + per - 1) / per * size;
    for (int at = 0; at < connections; ++at) {
      connections_.open();
    }
    for (int at = 0; at < groups * size; ++at) {
      members_[at].connection = static_cast<size_t>(at / size / per * size + at % size);
      members_[at].group = "bench-" + std::to_string(options_["run"]) + "-" + std::to_string(at / size);
    }
  }

  void join() {
    const Time begin = Clock::now();
    const double cpu = broker_cpu(options_.broker);
    for (size_t at = 0; at < members_.size(); ++at) {
      send_join(at);
      pump(0);
    }
    while (synced_ < members_.size()) {
      pump(100);
      if (seconds_since(begin) > 300) {
        fail("only " + std::to_string(synced_) + " members got an assignment");
      }
    }
    std::printf("joined members=%zu seconds=%.1f cpu_s=%.2f rejoins=%zu\n", members_.size(), seconds_since(begin),
                broker_cpu(options_.broker) - cpu, rejoins_);
    std::fflush(stdout);
  }

  void heartbeats(const char* name, int seconds) {
    const double rate = static_cast<double>(members_.size()) * 1000 / options_["interval_ms"];
    phase(name, kHeartbeat, rate, seconds);
  }

  void commits(const char* name, int seconds) { phase(name, kCommit, options_["commit_rate"], seconds); }

 private:
  uint32_t correlation(size_t member, Kind kind) const { return static_cast<uint32_t>(member) << 2 | kind; }

  void send(size_t at, Kind kind, const std::string& frame, Time since) {
    Member& member = members_[at];
    member.since[kind] = since;
    member.waiting[kind] = true;
    connections_.send(member.connection, frame);
  }

  void send_join(size_t at) {
    Frame frame(11, 3, correlation(at, kJoin));
    frame.text(members_[at].group).number<int32_t>(45000).number<int32_t>(60000).text(members_[at].id);
    frame.text("consumer").number<int32_t>(1).text("range").blob(std::string(24, '\0'));
    send(at, kJoin, frame.done(), Clock::now());
  }

  void joined(size_t at, Answer& answer) {
    Member& member = members_[at];
    answer.number<int32_t>();
    const auto error = answer.number<int16_t>();
    if (error >= 14 && error <= 16) {  // Kafka's coordinator is not there yet.
      send_join(at);
      return;
    }
    if (error != 0) {
      fail("JoinGroup: error " + std::to_string(error));
    }
    member.generation = answer.number<int32_t>();
    answer.text();
    const std::string leader = answer.text();
    member.id = answer.text();
    Frame frame(14, 1, correlation(at, kSync));
    frame.text(member.group).number(member.generation).text(member.id);
    const int32_t count = leader == member.id ? answer.number<int32_t>() : 0;
    frame.number(count);
    for (int32_t each = 0; each < count; ++each) {
      frame.text(answer.text());
      const auto size = answer.number<int32_t>();
      for (int32_t byte = 0; byte < size; ++byte) {
        answer.number<int8_t>();
      }
      frame.blob(std::string(24, '\0'));
    }
    send(at, kSync, frame.done(), Clock::now());
  }

  void synced(size_t at, Answer& answer) {
    Member& member = members_[at];
    answer.number<int32_t>();
    const auto error = answer.number<int16_t>();
    if (error == 27) {  // A late member began another rebalance.
      ++rejoins_;
      send_join(at);
      return;
    }
    if (error != 0) {
      fail("SyncGroup: error " + std::to_string(error));
    }
    Frame beat(12, 3, correlation(at, kHeartbeat));
    member.heartbeat = beat.text(member.group).number(member.generation).text(member.id).null_text().done();
    Frame commit(8, 7, correlation(at, kCommit));
    commit.text(member.group).number(member.generation).text(member.id).null_text();
    commit.number<int32_t>(1).text(options_.topic).number<int32_t>(1);
    commit.number(static_cast<int32_t>(at % options_["members"])).number<int64_t>(12345).number<int32_t>(-1).text("");
    member.commit = commit.done();
    synced_ += member.synced ? 0 : 1;
    member.synced = true;
  }

  void answered(const std::string& frame) {
    Answer answer(frame);
    const auto id = answer.number<uint32_t>();
    const size_t at = id >> 2;
    const auto kind = static_cast<Kind>(id & 3);
    Member& member = members_.at(at);
    member.waiting[kind] = false;
    if (kind == kJoin) {
      joined(at, answer);
    } else if (kind == kSync) {
      synced(at, answer);
    } else {
      latencies_.push_back(raw::micros_since(member.since[kind]));
      answer.number<int32_t>();
      if (kind == kCommit) {
        answer.number<int32_t>();
        answer.text();
        answer.number<int32_t>();
        answer.number<int32_t>();
      }
      ++errors_[answer.number<int16_t>()];
    }
  }

  void pump(int wait_ms) {
    connections_.pump(wait_ms, [this](const std::string& frame) { answered(frame); });
  }

  /// Requests of one kind, evenly spread in time over all members for `seconds`, then waits for the answers.
  void phase(const char* name, Kind kind, double rate, int seconds) {
    latencies_.clear();
    errors_.clear();
    const double cpu = broker_cpu(options_.broker);
    const Time begin = Clock::now();
    const auto total = static_cast<size_t>(rate * seconds);
    size_t sent = 0;
    size_t skipped = 0;
    while (sent < total) {
      const double now = seconds_since(begin);
      for (; sent < total && static_cast<double>(sent) <= now * rate; ++sent) {
        const size_t at = next_++ % members_.size();
        const Time due = begin + std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(sent) / rate * 1e9));
        if (members_[at].waiting[kind]) {
          ++skipped;
          continue;
        }
        send(at, kind, kind == kCommit ? members_[at].commit : members_[at].heartbeat, due);
      }
      pump(1);
    }
    while (latencies_.size() < total - skipped && seconds_since(begin) < seconds + 30) {
      pump(10);
    }
    report(name, seconds_since(begin), broker_cpu(options_.broker) - cpu, skipped);
  }

  void report(const char* name, double wall, double cpu, size_t skipped) {
    const auto quantile = [&](double part) { return raw::quantile(latencies_, part); };
    const size_t good = errors_[0];
    std::printf("%s answers=%zu seconds=%.2f rate=%.0f cpu_s=%.2f cpu_us=%.2f ", name, latencies_.size(), wall,
                static_cast<double>(good) / wall, cpu,
                1e6 * cpu / static_cast<double>(std::max<size_t>(latencies_.size(), 1)));
    std::printf("p50_us=%.0f p99_us=%.0f max_us=%.0f errors=%zu skipped=%zu\n", quantile(0.5), quantile(0.99),
                quantile(1), latencies_.size() - good, skipped);
    std::fflush(stdout);
  }

  const Options& options_;
  raw::Connections connections_;
  std::vector<Member> members_;
  std::vector<double> latencies_;
  std::map<int16_t, size_t> errors_;
  size_t synced_ = 0;
  size_t rejoins_ = 0;
  size_t next_ = 0;
};

}  // namespace

int main(int count, char** arguments) {
  const Options options(count, arguments,
                        {{"groups", 1000}, {"members", 10}, {"per_connection", 1}, {"interval_ms", 3000},
                         {"warm_s", 15}, {"beat_s", 20}, {"commit_rate", 10000}, {"commit_warm_s", 5},
                         {"commit_s", 10}, {"run", 0}});
  Load load(options);
  load.join();
  load.heartbeats("warm", options["warm_s"]);
  load.heartbeats("heartbeats", options["beat_s"]);
  load.commits("commit_warm", options["commit_warm_s"]);
  load.commits("commits", options["commit_s"]);
}
