#include "checker.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace kanal::e2e {
namespace {

using Partition = std::pair<std::string, int>;
using Identity = std::pair<std::string, std::int64_t>;  // who sent it, number

std::string name(const Identity& record) {
  return record.first + "/" + std::to_string(record.second);
}

struct Log {
  std::map<std::int64_t, Identity> seen;              // by offset, by whomever
  std::map<std::int64_t, Identity> last;              // by the last look
  std::map<Identity, std::set<std::int64_t>> places;  // where a record was seen or acknowledged
  std::map<Identity, const Event*> sent;
  std::map<std::int64_t, const Event*> acknowledged;  // by offset
  std::vector<const Event*> unplaced;                 // acknowledged, the answer told no offset
  std::vector<const Event*> bounds, trims;
};

class Check {
 public:
  explicit Check(const Events& events) : events_(events) {}
  std::vector<Violation> run();

 private:
  void sort_out();
  void note_read(const Event& event);
  void check_log(const Partition& where, const Log& log);
  void check_kept(const Partition& where, const Log& log);
  void check_compacted(const Partition& where, const Log& log);
  void check_order(const Partition& where, const Log& log);
  void check_bounds(const Partition& where, const Log& log);
  void check_readers();
  void check_commits();
  void check_topics();
  void check_configs();

  [[nodiscard]] std::int64_t final_start(const Log& log) const {
    return log.bounds.empty() ? 0 : log.bounds.back()->number;
  }
  [[nodiscard]] const std::string& promise_of(const std::string& topic) const {
    static const std::string kPlain = "plain";
    const auto found = topics_.find(topic);
    return found == topics_.end() ? kPlain : found->second;
  }
  [[nodiscard]] bool keeps_all(const std::string& topic) const {
    return promise_of(topic) == "plain" || promise_of(topic) == "settling";
  }
  void broken(const std::string& rule, const std::string& text) {
    if (counts_[rule]++ < 100) violations_.push_back({rule, text});
  }
  static std::string at(const Partition& where, std::int64_t offset) {
    return where.first + "-" + std::to_string(where.second) + "@" + std::to_string(offset);
  }

  const Events& events_;
  std::map<std::string, std::string> topics_, producers_;
  std::map<Partition, Log> logs_;
  std::map<std::string, int> counts_;
  std::vector<Violation> violations_;
};

/// The largest value answered before a moment, of calls in the order of their answers.
class Floor {
 public:
  void add(std::int64_t moment, std::int64_t value) { values_.emplace_back(moment, value); }
  void finish() {
    std::ranges::sort(values_);
    for (std::size_t i = 1; i < values_.size(); ++i)
      values_[i].second = std::max(values_[i].second, values_[i - 1].second);
  }
  [[nodiscard]] std::int64_t before(std::int64_t moment) const {
    const auto after = std::ranges::lower_bound(values_, std::pair(moment, INT64_MIN));
    return after == values_.begin() ? INT64_MIN : (after - 1)->second;
  }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> values_;
};

std::vector<Violation> Check::run() {
  sort_out();
  for (const auto& [where, log] : logs_) check_log(where, log);
  check_readers();
  check_commits();
  check_topics();
  check_configs();
  return std::move(violations_);
}

void Check::sort_out() {
  for (const Event& event : events_) {
    if (event.kind == Kind::kTopic) topics_[event.topic] = event.source;
    if (event.kind == Kind::kProducer) producers_[event.who] = event.source;
    if (event.kind == Kind::kProduce)
      logs_[{event.topic, event.partition}].sent[{event.who, event.number}] = &event;
  }
  for (const Event& event : events_) {
    Log& log = logs_[{event.topic, event.partition}];
    if (event.kind == Kind::kRead || event.kind == Kind::kFinal) note_read(event);
    if (event.kind == Kind::kBounds) log.bounds.push_back(&event);
    if (event.kind == Kind::kTrim && event.answer == Answer::kOk) log.trims.push_back(&event);
    if (event.kind != Kind::kProduce || event.answer != Answer::kOk) continue;
    if (event.offset < 0) {
      log.unplaced.push_back(&event);
      continue;
    }
    const auto [held, fresh] = log.acknowledged.emplace(event.offset, &event);
    if (!fresh) {
      broken("moved", at({event.topic, event.partition}, event.offset) + " was reported for " +
                          name({held->second->who, held->second->number}) + " and for " +
                          name({event.who, event.number}));
    }
    log.places[{event.who, event.number}].insert(event.offset);
  }
}

void Check::note_read(const Event& event) {
  const Partition where{event.topic, event.partition};
  Log& log = logs_[where];
  const Identity record{event.source, event.number};
  const auto sent = log.sent.find(record);
  if (sent == log.sent.end()) {
    broken("ghost", at(where, event.offset) + " holds what nobody sent: " + name(record));
  } else if (sent->second->answer == Answer::kRefused) {
    broken("ghost", at(where, event.offset) + " holds what was refused: " + name(record));
  }
  const auto [held, fresh] = log.seen.emplace(event.offset, record);
  if (!fresh && held->second != record) {
    broken("changed",
           at(where, event.offset) + " held " + name(held->second) + ", then " + name(record));
  }
  log.places[record].insert(event.offset);
  if (event.kind == Kind::kFinal) log.last.emplace(event.offset, record);
}

void Check::check_log(const Partition& where, const Log& log) {
  for (const auto& [offset, event] : log.acknowledged) {
    const auto seen = log.seen.find(offset);
    const Identity record{event->who, event->number};
    if (seen != log.seen.end() && seen->second != record) {
      broken("moved", at(where, offset) + " was reported to hold " + name(record) + " and holds " +
                          name(seen->second));
    }
  }
  for (const auto& [record, offsets] : log.places) {
    const auto producer = producers_.find(record.first);
    if (producer == producers_.end() || offsets.size() < 2) continue;
    const bool repeats = producer->second == "repeating" || producer->second == "eventual";
    if (!repeats && promise_of(where.first) != "settling") {
      broken("doubled", name(record) + " is at " + at(where, *offsets.begin()) + " and at " +
                            at(where, *offsets.rbegin()));
    }
  }
  check_order(where, log);
  check_bounds(where, log);
  if (promise_of(where.first) == "compacted")
    check_compacted(where, log);
  else
    check_kept(where, log);
}

/// Everything acknowledged or shown at or behind the start is there at the end, without a gap.
void Check::check_kept(const Partition& where, const Log& log) {
  const std::int64_t start = final_start(log);
  for (const auto& [offset, event] : log.acknowledged) {
    if (offset >= start && !log.last.contains(offset)) {
      broken("lost",
             at(where, offset) + ", acknowledged, is gone: " + name({event->who, event->number}));
    }
  }
  for (const auto& [offset, record] : log.seen) {
    if (offset >= start && !log.last.contains(offset))
      broken("lost", at(where, offset) + ", once shown, is gone: " + name(record));
  }
  if (start == 0) {
    for (const Event* event : log.unplaced) {
      if (!log.places.contains({event->who, event->number}))
        broken("lost", "acknowledged and nowhere: " + name({event->who, event->number}));
    }
  }
  std::int64_t next = start;
  for (const auto& [offset, record] : log.last) {
    if (offset < start) {
      broken("start", at(where, offset) + " was read below the start " + std::to_string(start));
      continue;
    }
    if (offset != next) broken("gap", at(where, offset) + " follows " + std::to_string(next - 1));
    next = offset + 1;
  }
  if (!log.bounds.empty() && log.bounds.back()->offset != next) {
    broken("gap", where.first + " ends at " + std::to_string(log.bounds.back()->offset) +
                      " but its last record is " + std::to_string(next - 1));
  }
}

/// What is gone has a later record of its key that is there.
void Check::check_compacted(const Partition& where, const Log& log) {
  std::map<std::string, std::int64_t> newest;
  const auto key_of = [&](const Identity& record) {
    const auto sent = log.sent.find(record);
    return sent == log.sent.end() ? std::string() : sent->second->key;
  };
  for (const auto& [offset, record] : log.last) newest[key_of(record)] = offset;
  const auto look = [&](std::int64_t offset, const Identity& record, const char* how) {
    if (log.last.contains(offset)) return;
    const auto later = newest.find(key_of(record));
    if (later == newest.end() || later->second < offset)
      broken("lost",
             at(where, offset) + ", " + how + ", is gone and has no later one: " + name(record));
  };
  for (const auto& [offset, event] : log.acknowledged)
    look(offset, {event->who, event->number}, "acknowledged");
  for (const auto& [offset, record] : log.seen) look(offset, record, "once shown");
}

/// A producer's records lie in the order in which it sent them; repeats don't count.
void Check::check_order(const Partition& where, const Log& log) {
  std::map<std::string, std::int64_t> newest;
  std::map<std::int64_t, Identity> all = log.seen;
  for (const auto& [offset, event] : log.acknowledged)
    all.emplace(offset, Identity{event->who, event->number});
  for (const auto& [offset, record] : all) {
    const auto& [who, number] = record;
    const auto places = log.places.find(record);
    const bool first = places == log.places.end() || *places->second.begin() == offset;
    const auto before = newest.find(who);
    const auto producer = producers_.find(who);
    if (producer != producers_.end() && producer->second == "eventual") continue;
    if (first && before != newest.end() && number < before->second) {
      broken("reordered", at(where, offset) + " holds " + name(record) + " behind " +
                              name({who, before->second}));
    }
    auto& largest = newest[who];
    largest = std::max(largest, number);
  }
}

void Check::check_bounds(const Partition& where, const Log& log) {
  Floor ends, starts;
  for (const auto& [offset, event] : log.acknowledged) ends.add(event->end, offset + 1);
  for (const Event* trim : log.trims) starts.add(trim->end, trim->offset);
  for (const Event* look : log.bounds) {
    ends.add(look->end, look->offset);
    starts.add(look->end, look->number);
  }
  ends.finish();
  starts.finish();
  for (const Event* look : log.bounds) {
    if (look->offset < ends.before(look->begin)) {
      broken("end", where.first + " ends at " + std::to_string(look->offset) + " after " +
                        std::to_string(ends.before(look->begin)));
    }
    if (look->number < starts.before(look->begin)) {
      broken("start", where.first + " starts at " + std::to_string(look->number) + " after " +
                          std::to_string(starts.before(look->begin)));
    }
    if (keeps_all(where.first) && look->number != 0)
      broken("start", where.first + " lost its first " + std::to_string(look->number));
  }
}

/// Each reader goes forward; without a gap where nothing is ever removed.
void Check::check_readers() {
  std::map<std::tuple<std::string, std::string, int>, std::int64_t> positions;
  for (const Event& event : events_) {
    if (event.kind != Kind::kRead) continue;
    const Partition where{event.topic, event.partition};
    const auto [held, fresh] =
        positions.emplace(std::tuple(event.who, event.topic, event.partition), event.offset);
    if (fresh) continue;
    const bool plain = keeps_all(event.topic);
    if (event.offset <= held->second || (plain && event.offset != held->second + 1)) {
      broken("reader", event.who + " read " + at(where, event.offset) + " after " +
                           std::to_string(held->second));
    }
    held->second = event.offset;
  }
}

void Check::check_commits() {
  using Commits = std::tuple<std::string, std::string, int>;
  std::map<Commits, Floor> floors;
  std::map<Commits, std::map<std::int64_t, std::int64_t>> asked;  // offset: first asked at
  const auto key = [](const Event& event) {
    return Commits(event.who, event.topic, event.partition);
  };
  for (const Event& event : events_) {
    if (event.kind == Kind::kCommit && event.answer == Answer::kOk)
      floors[key(event)].add(event.end, event.offset);
    if (event.kind == Kind::kCommitted && event.offset >= 0)
      floors[key(event)].add(event.end, event.offset);
    if (event.kind == Kind::kCommit) {
      auto [held, fresh] = asked[key(event)].emplace(event.offset, event.begin);
      held->second = std::min(held->second, event.begin);
    }
  }
  for (auto& [group, floor] : floors) floor.finish();
  for (const Event& event : events_) {
    if (event.kind != Kind::kCommitted && event.kind != Kind::kResumed) continue;
    const auto floor = floors.find(key(event));
    const std::int64_t least =
        floor == floors.end() ? INT64_MIN : floor->second.before(event.begin);
    const Partition where{event.topic, event.partition};
    if (event.offset < least) {
      broken("commit", event.who + " is back at " + at(where, event.offset) + " after " +
                           std::to_string(least));
    }
    if (event.kind == Kind::kCommitted && event.offset >= 0) {
      const auto& offsets = asked[key(event)];
      const auto found = offsets.find(event.offset);
      if (found == offsets.end() || found->second > event.end)
        broken("commit", event.who + " is at " + at(where, event.offset) + ", never committed");
    }
  }
}

void Check::check_topics() {
  struct Life {
    const Event* made = nullptr;
    const Event* gone = nullptr;
  };
  std::map<std::string, Life> lives;
  for (const Event& event : events_) {
    if (event.kind == Kind::kCreate) lives[event.topic].made = &event;
    if (event.kind == Kind::kDelete) lives[event.topic].gone = &event;
  }
  for (const Event& event : events_) {
    if (event.kind != Kind::kListed) continue;
    const auto& [made, gone] = lives[event.topic];
    const bool surely_made =
        made != nullptr && made->answer == Answer::kOk && made->end < event.begin;
    const bool perhaps_gone =
        gone != nullptr && gone->begin < event.end && gone->answer != Answer::kRefused;
    const bool surely_gone =
        gone != nullptr && gone->answer == Answer::kOk && gone->end < event.begin;
    const bool perhaps_made =
        made != nullptr && made->begin < event.end && made->answer != Answer::kRefused;
    if (event.number == 0 && surely_made && !perhaps_gone)
      broken("topic", event.topic + " was made and is gone");
    if (event.number == 1 && (surely_gone || !perhaps_made))
      broken("topic", event.topic + " was deleted or never made, and is there");
  }
}

void Check::check_configs() {
  std::map<std::string, Floor> floors;
  std::map<std::string, std::set<std::int64_t>> asked;
  for (const Event& event : events_) {
    if (event.kind == Kind::kAlter) asked[event.topic].insert(event.number);
    const bool sure =
        (event.kind == Kind::kAlter && event.answer == Answer::kOk) || event.kind == Kind::kConfig;
    if (sure) floors[event.topic].add(event.end, event.number);
  }
  for (auto& [topic, floor] : floors) floor.finish();
  for (const Event& event : events_) {
    if (event.kind != Kind::kConfig) continue;
    if (event.number < floors[event.topic].before(event.begin) ||
        !asked[event.topic].contains(event.number)) {
      broken("config", event.topic + " is back at " + std::to_string(event.number));
    }
  }
}

}  // namespace

std::vector<Violation> check(const Events& events) {
  return Check(events).run();
}

}  // namespace kanal::e2e
