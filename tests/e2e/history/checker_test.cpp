// The checker itself: a history recorded from a broker that was killed breaks nothing; with one lie
// planted in it, wherever that is, it does.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "checker.hpp"

namespace kanal::e2e {
namespace {

std::set<std::string> rules_broken(const Events& events) {
  std::set<std::string> rules;
  for (const Violation& violation : check(events)) rules.insert(violation.rule);
  return rules;
}

class Planted : public testing::Test {
 protected:
  Planted() : sound_(read_history(RECORDED_HISTORY)) {
    for (const Event& event : sound_) {
      if (event.kind == Kind::kTopic) promises_[event.topic] = event.source;
      if (event.kind == Kind::kProducer) producers_[event.who] = event.source;
    }
  }
  using Pick = std::function<bool(const Event&)>;
  /// Plants a lie at some of the events that `pick` takes; each has to be found by one of `rules`.
  void expect_found(const std::set<std::string>& rules, const Pick& pick,
                    const std::function<void(Events&, std::size_t)>& lie) {
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < sound_.size(); ++i) {
      if (pick(sound_[i])) places.push_back(i);
    }
    ASSERT_FALSE(places.empty()) << "the recorded history has no such event";
    std::mt19937 dice(1);
    std::ranges::shuffle(places, dice);
    for (std::size_t i = 0; i < std::min<std::size_t>(places.size(), 12); ++i) {
      Events events = sound_;
      lie(events, places[i]);
      const auto found = rules_broken(events);
      EXPECT_TRUE(
          std::ranges::any_of(rules, [&](const auto& rule) { return found.contains(rule); }))
          << "not found, planted at line " << places[i] + 1 << ": " << to_string(sound_[places[i]]);
    }
  }
  [[nodiscard]] bool is_plain(const Event& event) const {
    const auto found = promises_.find(event.topic);
    return found != promises_.end() && found->second == "plain";
  }
  [[nodiscard]] static bool is(const Event& event, Kind kind) {
    return event.kind == kind && event.answer == Answer::kOk;
  }
  /// Takes the last look's record of the same place away.
  static void forget(Events& events, const Event& place) {
    std::erase_if(events, [&](const Event& event) {
      return (event.kind == Kind::kFinal || event.kind == Kind::kRead) &&
             event.topic == place.topic && event.partition == place.partition &&
             event.offset == place.offset;
    });
  }

  const Events sound_;
  std::map<std::string, std::string> promises_, producers_;
};

TEST_F(Planted, TheRecordedHistoryIsSound) {
  for (const Violation& violation : check(sound_))
    ADD_FAILURE() << violation.rule << ": " << violation.text;
  EXPECT_GT(std::ranges::count(sound_, Kind::kStopped, &Event::kind), 0);
}

TEST_F(Planted, AnAcknowledgedRecordThatIsGone) {
  expect_found(
      {"lost"},
      [&](const Event& event) {
        return is(event, Kind::kProduce) && is_plain(event) && event.offset >= 0;
      },
      [](Events& events, std::size_t at) { forget(events, Event(events[at])); });
}

TEST_F(Planted, ATailThatIsGone) {
  expect_found(
      {"lost", "end"},
      [&](const Event& event) { return is(event, Kind::kFinal) && is_plain(event); },
      [](Events& events, std::size_t at) {
        const Event from = events[at];
        std::erase_if(events, [&](const Event& event) {
          return event.kind == Kind::kFinal && event.topic == from.topic &&
                 event.partition == from.partition && event.offset >= from.offset;
        });
        for (Event& event : events) {
          if (event.kind == Kind::kBounds && event.begin > from.begin &&
              event.topic == from.topic && event.partition == from.partition) {
            event.offset = from.offset;
          }
        }
      });
}

TEST_F(Planted, TheLastRecordOfAKeyThatIsGoneFromACompactedTopic) {
  expect_found(
      {"lost"},
      [&](const Event& event) {
        if (!is(event, Kind::kProduce) || event.offset < 0 || event.topic != "compacted")
          return false;
        return std::ranges::none_of(sound_, [&](const Event& other) {
          return is(other, Kind::kProduce) && other.topic == event.topic &&
                 other.key == event.key && other.partition == event.partition &&
                 other.offset > event.offset;
        });
      },
      [](Events& events, std::size_t at) {
        const Event gone = events[at];
        std::set<std::pair<std::string, std::int64_t>> same_key;
        for (const Event& event : events) {
          if (event.kind == Kind::kProduce && event.topic == gone.topic && event.key == gone.key &&
              event.partition == gone.partition) {
            same_key.emplace(event.who, event.number);
          }
        }
        std::erase_if(events, [&](const Event& event) {
          return event.kind == Kind::kFinal && event.topic == gone.topic &&
                 event.partition == gone.partition && event.offset >= gone.offset &&
                 same_key.contains({event.source, event.number});
        });
      });
}

TEST_F(Planted, AnIdempotentProducersRecordThatIsThereTwice) {
  expect_found(
      {"doubled"},
      [&](const Event& event) {
        const auto producer = producers_.find(event.source);
        return is(event, Kind::kFinal) && producer != producers_.end() &&
               producer->second == "idempotent";
      },
      [](Events& events, std::size_t at) {
        Event again = events[at];
        for (const Event& event : events) {
          if (event.kind == Kind::kFinal && event.topic == again.topic &&
              event.partition == again.partition) {
            again.offset = std::max(again.offset, event.offset);
          }
        }
        ++again.offset;
        events.push_back(again);
      });
}

TEST_F(Planted, TwoRecordsOfAProducerInTheWrongOrder) {
  expect_found(
      {"reordered", "moved", "changed"},
      [&](const Event& event) { return is(event, Kind::kFinal) && is_plain(event); },
      [](Events& events, std::size_t at) {
        const Event first = events[at];
        const auto is_next = [&](const Event& event) {
          return event.kind == Kind::kFinal && event.topic == first.topic &&
                 event.partition == first.partition && event.source == first.source &&
                 event.number > first.number;
        };
        const auto next = std::ranges::find_if(events, is_next);
        const Event second = next == events.end() ? events[at - 1] : *next;
        for (Event& event : events) {
          if ((event.kind != Kind::kFinal && event.kind != Kind::kRead) ||
              event.topic != first.topic || event.partition != first.partition) {
            continue;
          }
          if (event.offset == first.offset) {
            event.source = second.source, event.number = second.number;
          } else if (event.offset == second.offset) {
            event.source = first.source, event.number = first.number;
          }
        }
      });
}

TEST_F(Planted, AWrongOffsetInAnAnswer) {
  expect_found(
      {"moved", "doubled", "lost"},
      [&](const Event& event) {
        return is(event, Kind::kProduce) && is_plain(event) && event.offset >= 0;
      },
      [](Events& events, std::size_t at) { events[at].offset += 1; });
}

TEST_F(Planted, ARecordThatChanged) {
  expect_found(
      {"changed", "ghost", "moved", "doubled", "reordered"},
      [&](const Event& event) { return is(event, Kind::kRead) && is_plain(event); },
      [](Events& events, std::size_t at) { events[at].number += 1; });
}

TEST_F(Planted, ARecordThatNobodySent) {
  expect_found(
      {"ghost"}, [](const Event& event) { return is(event, Kind::kRead); },
      [](Events& events, std::size_t at) { events[at].source = "nobody"; });
}

TEST_F(Planted, ARecordThatWasRefused) {
  expect_found(
      {"ghost"}, [](const Event& event) { return is(event, Kind::kFinal); },
      [](Events& events, std::size_t at) {
        const Event read = events[at];
        for (Event& event : events) {
          if (event.kind == Kind::kProduce && event.who == read.source &&
              event.number == read.number && event.topic == read.topic &&
              event.partition == read.partition) {
            event.answer = Answer::kRefused;
            event.offset = -1;
          }
        }
      });
}

TEST_F(Planted, AGapBetweenTwoRecords) {
  expect_found(
      {"gap"}, [&](const Event& event) { return is(event, Kind::kFinal) && is_plain(event); },
      [](Events& events, std::size_t at) {
        const Event from = events[at];
        for (Event& event : events) {
          const bool has_offset = event.kind == Kind::kFinal || event.kind == Kind::kRead ||
                                  event.kind == Kind::kProduce || event.kind == Kind::kBounds;
          if (has_offset && event.topic == from.topic && event.partition == from.partition &&
              event.offset >= from.offset) {
            ++event.offset;
          }
        }
      });
}

TEST_F(Planted, AnEndThatMovedBack) {
  expect_found(
      {"end"},
      [&](const Event& event) {
        return event.kind == Kind::kBounds && event.offset > 1 &&
               std::ranges::any_of(sound_, [&](const Event& before) {
                 return is(before, Kind::kProduce) && before.topic == event.topic &&
                        before.partition == event.partition && before.end < event.begin &&
                        before.offset == event.offset - 1;
               });
      },
      [](Events& events, std::size_t at) { events[at].offset -= 1; });
}

TEST_F(Planted, AStartThatMovedBack) {
  expect_found(
      {"start"},
      [&](const Event& event) {
        return event.kind == Kind::kBounds && event.number > 0 &&
               std::ranges::any_of(sound_, [&](const Event& before) {
                 const std::int64_t start = before.kind == Kind::kTrim     ? before.offset
                                            : before.kind == Kind::kBounds ? before.number
                                                                           : -1;
                 return before.topic == event.topic && before.partition == event.partition &&
                        before.end < event.begin && start == event.number;
               });
      },
      [](Events& events, std::size_t at) { events[at].number -= 1; });
}

TEST_F(Planted, AReaderThatSkipsOrRepeats) {
  for (const int by : {-1, 1}) {
    expect_found(
        {"reader"},
        [&](const Event& event) {
          return is(event, Kind::kRead) && is_plain(event) && event.who == "reader" &&
                 event.offset > 0;
        },
        [by](Events& events, std::size_t at) { events[at].offset += by; });
  }
}

TEST_F(Planted, ACommittedOffsetThatMovedBackOrWasNeverCommitted) {
  expect_found(
      {"commit"},
      [&](const Event& event) {
        return event.kind == Kind::kCommitted && event.offset > 0 &&
               std::ranges::any_of(sound_, [&](const Event& before) {
                 return is(before, Kind::kCommit) && before.topic == event.topic &&
                        before.partition == event.partition && before.end < event.begin &&
                        before.offset == event.offset;
               });
      },
      [](Events& events, std::size_t at) { events[at].offset -= 1; });
  expect_found(
      {"commit"},
      [](const Event& event) { return event.kind == Kind::kCommitted && event.offset > 0; },
      [](Events& events, std::size_t at) { events[at].offset += 1'000'000; });
}

TEST_F(Planted, ATopicThatCameBackOrIsGone) {
  expect_found(
      {"topic"},
      [&](const Event& event) {
        return event.kind == Kind::kListed &&
               std::ranges::any_of(sound_,
                                   [&](const Event& before) {
                                     return is(before,
                                               event.number == 1 ? Kind::kCreate : Kind::kDelete) &&
                                            before.topic == event.topic && before.end < event.begin;
                                   }) &&
               std::ranges::none_of(sound_, [&](const Event& other) {
                 return other.kind == Kind::kDelete && event.number == 1 &&
                        other.topic == event.topic && other.begin < event.end;
               });
      },
      [](Events& events, std::size_t at) { events[at].number ^= 1; });
}

TEST_F(Planted, AConfigThatWentBack) {
  expect_found(
      {"config"},
      [&](const Event& event) {
        return event.kind == Kind::kConfig && std::ranges::any_of(sound_, [&](const Event& before) {
                 return is(before, Kind::kAlter) && before.end < event.begin &&
                        before.number == event.number;
               });
      },
      [](Events& events, std::size_t at) { events[at].number -= 1; });
}

}  // namespace
}  // namespace kanal::e2e
