// What clients did and saw, in one order: each call with the moment it began and the moment it was
// answered. Recorded by many threads, checked afterwards (checker.hpp), kept as a text file of one
// line an event, so that a history that breaks a promise can be looked at and checked again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace kanal::e2e {

enum class Kind : std::uint8_t {
  kTopic,      // topic, source: what it promises (see checker.hpp)
  kProducer,   // who, source: what it promises
  kProduce,    // who sent `number` to topic and partition; offset where the answer told one
  kRead,       // who read the record `number` of `source` at `offset`
  kFinal,      // the same, of the last look at everything
  kBounds,     // number: the log's start, offset: its end
  kTrim,       // DeleteRecords below `number`; offset: the start that was answered
  kCommit,     // group `who` commits `offset`
  kCommitted,  // group `who` has `offset` committed (-1: none)
  kResumed,    // a member of group `who` got the partition and began to read at `offset`
  kCreate,     // of a topic, once for each name
  kDelete,
  kListed,   // number: whether the topic is there (1) or not (0)
  kAlter,    // a config of the topic is set to `number`, which only ever grows
  kConfig,   // … and seen
  kStopped,  // the broker ended, source: how
  kStarted,
};

enum class Answer : std::uint8_t {
  kOk,
  kRefused,  // it was not done
  kUnknown,  // it was done or not
};

struct Event {
  Kind kind = Kind::kTopic;
  Answer answer = Answer::kOk;
  std::int64_t begin = 0, end = 0;  // moments; they count up over the whole history
  std::string who = {}, topic = {}, source = {}, key = {};
  int partition = 0;
  std::int64_t number = -1, offset = -1;
};
using Events = std::vector<Event>;

class History {
 public:
  /// The next moment: taken before a call is made.
  std::int64_t now();
  /// `event.begin` was taken before; the end is now, unless it is set.
  void add(Event event);
  [[nodiscard]] Events events() const;
  /// Topics that somebody asked to be made, the newest `count`.
  [[nodiscard]] std::vector<std::string> made(std::size_t count = SIZE_MAX) const;

 private:
  mutable std::mutex mutex_;
  std::int64_t moment_ = 0;
  Events events_;
  std::vector<std::string> made_;
};

void write_history(const std::filesystem::path& file, const Events& events);
/// Throws where the file is none.
Events read_history(const std::filesystem::path& file);
std::string to_string(const Event& event);

}  // namespace kanal::e2e
