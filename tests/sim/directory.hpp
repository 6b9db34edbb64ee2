// The topics that there have to be. A topic is present or absent once the broker has acknowledged
// it, whatever happens then; while a change is under way or its outcome is unknown, it is unsure
// and both will do. One actor changes a topic. One thread.
#pragma once

#include "dice.hpp"
#include "kanal/base/ids.hpp"
#include "policy.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kanal::sim {

struct TopicFacts {
  std::string name;
  Uuid id;
  std::int32_t partitions = 0;
  bool acks_after_sync = false;
  bool keyed = false;  // its records have keys
  Policy policy;       // it was made with
};

class Directory {
 public:
  enum class State { kAbsent, kPresent, kUnsure };
  struct Entry {
    State state = State::kAbsent;
    TopicFacts facts;           // while present; what was asked for while unsure
    std::uint64_t version = 0;  // counts changes
    bool eternal = false;       // never deleted, so its name means one topic for good
  };

  /// One that is never deleted is named, not numbered, by old versions of requests.
  void add(const std::string& name, bool eternal) { entries_[name].eternal = eternal; }
  void set(const std::string& name, State state, const TopicFacts& facts = {}) {
    Entry& entry = entries_[name];
    entry.state = state;
    entry.facts = facts;
    entry.facts.name = name;
    ++entry.version;
  }
  [[nodiscard]] const Entry& at(const std::string& name) const { return entries_.at(name); }
  [[nodiscard]] const std::map<std::string, Entry>& entries() const noexcept { return entries_; }

  /// Any present one.
  [[nodiscard]] std::optional<Entry> pick(Dice& dice) const {
    std::vector<const Entry*> present;
    for (const auto& [name, entry] : entries_) {
      if (entry.state == State::kPresent) present.push_back(&entry);
    }
    if (present.empty()) return std::nullopt;
    return *dice.pick(present);
  }
  /// Whether the topic is there for sure, and since when: the same version before and after a
  /// request says that it was there all the time.
  [[nodiscard]] std::optional<std::uint64_t> certain(const TopicFacts& topic) const {
    const Entry& entry = entries_.at(topic.name);
    if (entry.state != State::kPresent || entry.facts.id != topic.id) return std::nullopt;
    return entry.version;
  }
  /// Whether it was deleted, for sure.
  [[nodiscard]] bool gone(const TopicFacts& topic) const {
    const Entry& entry = entries_.at(topic.name);
    if (entry.state == State::kUnsure) return false;
    return entry.state == State::kAbsent || entry.facts.id != topic.id;
  }

 private:
  std::map<std::string, Entry> entries_;
};

}  // namespace kanal::sim
