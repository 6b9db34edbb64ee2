// Clients in threads of their own that write down what they do and see: senders, readers, members
// of a group, an onlooker who asks for bounds, offsets, topics and configs, an administrator who
// makes, deletes, alters and trims. They go on whatever happens to the broker, until they are
// stopped.
#pragma once

#include <atomic>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "client.hpp"
#include "history.hpp"

namespace kanal::e2e {

struct TopicPlan {
  std::string name;
  int partitions = 1;
  std::string promise = "plain";  // see checker.hpp
  Settings configs;
  std::size_t value_bytes = 100;
  bool settles_late = false;  // a refused record may come to life: it waits for a sync
};

/// Runs `turn` again and again until stopped.
class Actor {
 public:
  Actor() = default;
  Actor(const Actor&) = delete;
  Actor& operator=(const Actor&) = delete;
  virtual ~Actor() { stop(); }
  void start() {
    thread_ = std::thread([this] {
      while (!stopping_) turn();
      end();
    });
  }
  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  /// Counts what got done, so that others can wait for some of it.
  [[nodiscard]] std::size_t done() const { return done_; }

 protected:
  virtual void turn() = 0;
  virtual void end() {}
  [[nodiscard]] bool stopping() const { return stopping_; }
  static void pause(int ms) { std::this_thread::sleep_for(milliseconds(ms)); }
  std::atomic<std::size_t> done_{0};

 private:
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

class Sender final : public Actor {
 public:
  /// `promise` of the producer: see checker.hpp. `one_at_a_time`: no request is sent before the
  /// last is answered. Where records are refused for a while librdkafka 2.0 needs it to be
  /// idempotent: when the batch behind a refused one is answered with 45, as it has to be, it gives
  /// up for good.
  Sender(const std::string& address, History& history, std::string who, const std::string& promise,
         std::vector<TopicPlan> topics, bool one_at_a_time = false);
  ~Sender() override { stop(); }
  [[nodiscard]] const std::string& who() const { return who_; }
  /// Empty, or why the producer can do no more.
  [[nodiscard]] std::string fatal() const;

 private:
  void turn() override;
  void end() override;
  void on_delivery(std::size_t tag, const Delivery& delivery);

  History& history_;
  const std::string who_;
  struct Target {
    const TopicPlan* plan;
    int partition;
    std::int64_t next = 0;
  };
  const std::vector<TopicPlan> topics_;
  std::vector<Target> targets_;
  std::vector<Event> sent_;
  Producer producer_;
};

/// What a sender wrote, from a value.
Event parse_value(const std::string& value);

/// Reads topics from their first record on.
class Reader final : public Actor {
 public:
  Reader(const std::string& address, History& history, std::string who,
         const std::vector<TopicPlan>& topics);
  ~Reader() override { stop(); }

 private:
  void turn() override;
  History& history_;
  const std::string who_;
  Consumer consumer_;
};

/// A member of the group that commits what it has read, offset by offset.
class GroupMember final : public Actor {
 public:
  GroupMember(const std::string& address, History& history, std::string who, std::string group,
              const std::vector<std::string>& topics);
  ~GroupMember() override;

 private:
  struct Owned {
    std::int64_t begin = 0;  // when it was given
    std::int64_t next = -1;  // -1: nothing read since
    std::int64_t committed = -1;
  };
  using Key = std::pair<std::string, std::int32_t>;
  void turn() override;
  void end() override;
  void rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions);
  void take(const rd_kafka_message_t& message);
  void commit();

  History& history_;
  const std::string who_, group_;
  std::map<Key, Owned> owned_;
  int assignments_ = 0;
  int since_commit_ = 0;
  Handle handle_;
};

class Onlooker final : public Actor {
 public:
  Onlooker(const std::string& address, History& history, std::vector<TopicPlan> topics,
           std::string group, std::string altered);
  ~Onlooker() override { stop(); }

 private:
  void turn() override;
  void look_at_offsets();
  History& history_;
  const std::vector<TopicPlan> topics_;
  const std::string group_, altered_;
  Handle handle_;
  Admin admin_;
};

class Administrator final : public Actor {
 public:
  Administrator(const std::string& address, History& history, std::vector<TopicPlan> trimmed,
                std::string altered, unsigned seed);
  ~Administrator() override { stop(); }

 private:
  void turn() override;
  void make_and_delete();
  void alter();
  void trim();
  History& history_;
  const std::vector<TopicPlan> trimmed_;
  const std::string altered_;
  std::mt19937 dice_;
  std::int64_t topics_ = 0, value_ = 1'000'000;
  Admin admin_;
  Consumer bounds_;
};

/// Everything that is there in the end.
void look_at_everything(const std::string& address, History& history,
                        const std::vector<TopicPlan>& topics);

}  // namespace kanal::e2e
