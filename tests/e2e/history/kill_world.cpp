#include "kill_world.hpp"

#include <cerrno>
#include <cstdio>
#include <stdexcept>
#include <thread>

namespace kanal::e2e {
namespace {

std::vector<TopicPlan> plans() {
  const Settings small{{"internal.segment.bytes", "65536"}};
  const auto with = [&](Settings more) {
    more.insert(small.begin(), small.end());
    return more;
  };
  return {
      {.name = "plain", .partitions = 3, .configs = small},
      {.name = "synced",
       .partitions = 2,
       .configs = with({{"flush.messages", "1"}}),
       .settles_late = true},
      {.name = "trimmed", .partitions = 2, .promise = "trimmed", .configs = small},
      {.name = "short",
       .promise = "trimmed",
       .configs = with({{"retention.bytes", "200000"}, {"file.delete.delay.ms", "100"}}),
       .value_bytes = 1500},
      {.name = "compacted",
       .partitions = 2,
       .promise = "compacted",
       .configs = with({{"cleanup.policy", "compact"},
                        {"min.cleanable.dirty.ratio", "0.01"},
                        {"segment.ms", "500"},
                        {"file.delete.delay.ms", "100"}}),
       .value_bytes = 400},
  };
}

std::vector<std::string> settings() {
  return {"log.retention.check.interval.ms=300", "log.cleaner.backoff.ms=200",
          "group.initial.rebalance.delay.ms=50", "storage.reserve.bytes=1MiB"};
}

}  // namespace

KillWorld::KillWorld(unsigned seed, bool with_faults)
    : dice_(seed), broker_(KANALD, settings()), topics_(plans()) {
  if (with_faults) topics_[1].promise = "settling";
  if (with_faults) faults_.emplace(FAULT_LIBRARY, broker_.scratch() / "faults");
  std::printf("  seed %u\n", seed);
}

KillWorld::~KillWorld() {
  if (faults_) faults_->clear();
}

void KillWorld::start() {
  broker_.start();
  const std::string& address = broker_.address();
  Admin admin(address);
  for (const TopicPlan& topic : topics_) {
    const auto made = admin.create({topic.name, topic.partitions, topic.configs});
    if (!made.ok()) throw std::runtime_error("cannot create " + topic.name + ": " + made.text);
    history_.add({.kind = Kind::kTopic, .topic = topic.name, .source = topic.promise});
  }
  if (!admin.create({"altered", 1, {{"max.message.bytes", "1000000"}}}).ok())
    throw std::runtime_error("cannot create a topic");
  history_.add({.kind = Kind::kAlter, .topic = "altered", .number = 1'000'000});
  const std::pair<const char*, const char*> kinds[] = {
      {"exact-1", "idempotent"},
      {"exact-2", "idempotent"},
      {"once", "once"},
      {"again", faults_ ? "eventual" : "repeating"}};
  for (const auto& [who, promise] : kinds)
    senders_.push_back(
        std::make_unique<Sender>(address, history_, who, promise, topics_, faults_.has_value()));
  others_.push_back(std::make_unique<Reader>(address, history_, "reader", topics_));
  const std::vector<std::string> followed{"plain", "synced", "trimmed"};
  for (const char* who : {"member-1", "member-2"})
    others_.push_back(std::make_unique<GroupMember>(address, history_, who, "group", followed));
  others_.push_back(std::make_unique<Onlooker>(address, history_, topics_, "group", "altered"));
  others_.push_back(std::make_unique<Administrator>(
      address, history_, std::vector{topics_[2], topics_[3]}, "altered", dice_()));
  for (const auto& sender : senders_) sender->start();
  for (const auto& other : others_) other->start();
}

void KillWorld::wait_for_progress(std::size_t each) {
  std::vector<std::size_t> goals;
  for (const auto& sender : senders_) goals.push_back(sender->done() + each);
  const std::int64_t deadline = now_ms() + 3 * kPatience.count();
  for (std::size_t i = 0; i < senders_.size();) {
    if (senders_[i]->done() >= goals[i]) {
      ++i;
      continue;
    }
    broker_.expect_running();
    if (now_ms() > deadline) {
      keep_history();
      throw std::runtime_error(senders_[i]->who() + " gets no further " + senders_[i]->fatal());
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
}

void KillWorld::round() {
  wait_for_progress(static_cast<std::size_t>(10 + below(80)));
  std::this_thread::sleep_for(milliseconds(below(120)));
  end_and_start();
}

void KillWorld::faulty_round() {
  wait_for_progress(static_cast<std::size_t>(10 + below(40)));
  faults_->set(draw_faults());
  ++faulty_;
  std::this_thread::sleep_for(milliseconds(100 + below(500)));
  strikes_ += faults_->strikes(0) + faults_->strikes(1);
  // While it lasts or after it is over; a failed write or sync is over with a restart only.
  const bool before_the_end = below(2) == 0;
  if (before_the_end) faults_->clear();
  std::this_thread::sleep_for(milliseconds(below(300)));
  end_and_start();
}

/// One or two kinds of trouble, on some or all of the disk.
std::vector<FaultRule> KillWorld::draw_faults() {
  static const char* const kPlaces[] = {"*/channels/*",
                                        "*/channels/kafka.plain*/*",
                                        "*/channels/kafka.synced*/*",
                                        "*/channels/*.log",
                                        "*/reserved/*",
                                        "*/data/*"};
  std::vector<FaultRule> rules;
  for (int i = 0; i <= below(2); ++i) {
    FaultRule rule;
    rule.pattern = kPlaces[below(6)];
    rule.after = below(30);
    rule.times = below(2) == 0 ? -1 : 1 + below(20);
    switch (below(5)) {
      case 0:  // the disk is full
      case 1:
        rule.operations = "write,allocate,open,mkdir,rename";
        rule.error = below(4) == 0 ? EDQUOT : ENOSPC;
        rule.take = below(200);
        break;
      case 2:
        rule.operations = "sync";
        break;
      case 3:
        rule.operations = "write";
        rule.take = below(200);
        break;
      default:
        rule.operations = "read";
    }
    rules.push_back(rule);
  }
  return rules;
}

void KillWorld::end_and_start() {
  const bool kill = below(6) != 0;
  if (kill) {
    broker_.kill9();
  } else {
    const int code = broker_.terminate();
    if (!faults_) {
      EXPECT_EQ(code, 0);
    }
  }
  ++(kill ? kills_ : stops_);
  history_.add({.kind = Kind::kStopped, .source = kill ? "killed" : "stopped"});
  if (faults_) faults_->clear();
  broker_.start();
  history_.add({.kind = Kind::kStarted});
  EXPECT_EQ(broker_.start_figure("broken"), 0);
}

std::string KillWorld::keep_history() const {
  const auto file = std::filesystem::temp_directory_path() /
                    ("kanal-history-" + std::to_string(::getpid()) + ".txt");
  write_history(file, history_.events());
  return file;
}

void KillWorld::finish() {
  wait_for_progress(10);
  for (const auto& other : others_) other->stop();
  for (const auto& sender : senders_) {
    sender->stop();
    EXPECT_EQ(sender->fatal(), "");
  }
  look_at_everything(broker_.address(), history_, topics_);
  const Events events = history_.events();
  const auto violations = check(events);
  std::size_t sent = 0, read = 0, commits = 0;
  for (const Event& event : events) {
    sent += event.kind == Kind::kProduce && event.answer == Answer::kOk ? 1 : 0;
    read += event.kind == Kind::kRead || event.kind == Kind::kFinal ? 1 : 0;
    commits += event.kind == Kind::kCommit && event.answer == Answer::kOk ? 1 : 0;
  }
  std::printf(
      "  %d kills, %d stops, %d with faults (%llu struck), %zu records acknowledged, "
      "%zu read, %zu offsets committed, %zu events\n",
      kills_, stops_, faulty_, static_cast<unsigned long long>(strikes_), sent, read, commits,
      events.size());
  EXPECT_EQ(broker_.terminate(), 0);
  const char* kept = variable("HISTORY_FILE");
  if (kept != nullptr) write_history(kept, events);
  if (violations.empty()) return;
  for (std::size_t i = 0; i < std::min<std::size_t>(violations.size(), 20); ++i)
    ADD_FAILURE() << violations[i].rule << ": " << violations[i].text;
  ADD_FAILURE() << violations.size() << " violations, the history is in " << keep_history();
}

}  // namespace kanal::e2e
