// Consumers of records: long polls over some partitions, with and without sessions, and the audit
// that reads everything.
#include <algorithm>

#include "actors.hpp"
#include "client.hpp"

namespace kanal::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t kAmple = 1 << 20;

struct Reading {  // of one partition
  Directory::Entry topic;
  std::int32_t index = 0;
  std::int64_t position = 0;
  // Of the request under way:
  std::int64_t asked = -1, floor = 0;
  std::int32_t max_bytes = kAmple;
  std::optional<std::uint64_t> certain;
  bool gone = false, was_answered = false;

  [[nodiscard]] LogKey log() const { return {topic.facts.id, index}; }
};
using Plan = std::vector<Reading>;

/// The plan's readings go into the request; what every answer is held against is remembered.
wire::FetchRequest make_request(World& world, Plan& plan, bool by_name) {
  wire::FetchRequest request;
  request.max_bytes = kAmple;
  for (Reading& reading : plan) {
    reading.asked = reading.position;
    reading.floor = world.records().must_show(reading.log());
    reading.certain = world.topics().certain(reading.topic.facts);
    reading.gone = world.topics().gone(reading.topic.facts);
    reading.was_answered = false;
    auto& topic = request.topics.emplace_back();
    if (by_name)
      topic.topic = reading.topic.facts.name;
    else
      topic.topic_id = reading.topic.facts.id;
    auto& partition = topic.partitions.emplace_back();
    partition.partition = PartitionIndex(reading.index);
    partition.fetch_offset = Offset(reading.position);
    partition.partition_max_bytes = reading.max_bytes;
  }
  return request;
}

void take_partition(World& world, Plan& plan, Reading& reading,
                    const wire::FetchResponse::Topic::Partition& partition) {
  reading.was_answered = true;
  const RecordLedger::Found found{.position = reading.asked,
                                  .floor = reading.floor,
                                  .high_watermark = partition.high_watermark.value(),
                                  .log_start = partition.log_start_offset.value(),
                                  .may_be_empty = plan.size() > 1 && reading.max_bytes < kAmple,
                                  .was_deleted = reading.gone};
  switch (partition.error_code) {
    case ErrorCode::NONE: {
      const Bytes records = partition.records.inline_bytes;
      reading.position = world.records().read(reading.log(), found, records);
      return;
    }
    case ErrorCode::OFFSET_OUT_OF_RANGE:
      world.records().out_of_range(reading.log(), found);
      reading.position = world.records().safe_start(reading.log());
      return;
    case ErrorCode::UNKNOWN_TOPIC_OR_PARTITION:
    case ErrorCode::UNKNOWN_TOPIC_ID:
    case ErrorCode::INCONSISTENT_TOPIC_ID:
      reading.position = -1;  // to be planned anew
      if (!reading.certain || world.topics().certain(reading.topic.facts) != reading.certain)
        return;
      break;
    case ErrorCode::KAFKA_STORAGE_ERROR:
      if (world.troubled()) return;
      break;
    default:
      break;
  }
  world.violate(fmt::format("Fetch of {}~{} is answered {}", reading.topic.facts.name,
                            reading.index, name(partition.error_code)));
}

struct Manner {
  bool by_name = false;
  bool incremental = false;  // of a session: it leaves out what has nothing new
};

void take_answer(World& world, Plan& plan, const wire::FetchResponse& response, Manner manner) {
  for (const auto& topic : response.responses) {
    for (const auto& partition : topic.partitions) {
      const auto at = std::ranges::find_if(plan, [&](const Reading& reading) {
        return reading.index == partition.partition_index.value() &&
               (manner.by_name ? reading.topic.facts.name == topic.topic
                               : reading.topic.facts.id == topic.topic_id);
      });
      if (at == plan.end()) {
        world.violate("Fetch answers a partition that was not asked for");
        return;
      }
      take_partition(world, plan, *at, partition);
    }
  }
  for (const Reading& reading : plan) {
    if (reading.was_answered) continue;
    if (!manner.incremental) world.violate("Fetch does not answer a partition");
    if (reading.certain && reading.asked < reading.floor && reading.max_bytes == kAmple) {
      world.violate(
          fmt::format("a session shows nothing of {}~{} at {}, records up to {} are there",
                      reading.topic.facts.name, reading.index, reading.asked, reading.floor));
    }
  }
}

class Fetcher {
 public:
  Fetcher(World& world, const std::string& name)
      : world_(world), dice_(world.fork_dice()), link_{world, name, nullptr} {}

  broker::Task<void> run() {
    while (world_.running()) {
      if (!link_.up()) {
        session_id_ = 0;
        co_await world_.sleep(100ms);
        continue;
      }
      if (dice_.one_in(40)) make_plan();
      plan_ = std::make_shared<Plan>(*plan_);  // an earlier answer may still come to the old one
      if (std::erase_if(*plan_, [](const Reading& reading) { return reading.position < 0; }) > 0)
        session_id_ = 0;
      if (plan_->empty()) make_plan();
      if (plan_->empty()) {
        co_await world_.sleep(100ms);
        continue;
      }
      co_await fetch_once();
      const auto longest = static_cast<int>(world_.profile().produce_pause / 1ms);
      const Duration pause = dice_.percent(40) ? Duration{} : dice_.milliseconds(0, longest);
      co_await world_.sleep(pause);
    }
  }

 private:
  void make_plan() {
    plan_ = std::make_shared<Plan>();
    session_id_ = 0;
    in_sessions_ = dice_.percent(50);
    by_name_ = dice_.percent(30);
    const int count = dice_.between(1, 3);
    for (int i = 0; i < count; ++i) {
      const auto topic = world_.topics().pick(dice_);
      if (!topic || (by_name_ && !topic->eternal)) continue;
      Reading reading;
      reading.topic = *topic;
      reading.index = dice_.between(0, topic->facts.partitions - 1);
      const auto same = [&](const Reading& other) { return other.log() == reading.log(); };
      if (std::ranges::any_of(*plan_, same)) continue;
      const RecordLedger::Range range = world_.records().range(reading.log());
      const std::int64_t start = world_.records().safe_start(reading.log());
      reading.position = start;
      if (dice_.percent(60) && range.end > start) {
        reading.position += static_cast<std::int64_t>(
            dice_.below(static_cast<std::uint64_t>(range.end - start) + 1));
      }
      if (dice_.percent(30)) reading.max_bytes = dice_.between(100, 5'000);
      plan_->push_back(reading);
    }
  }

  broker::Task<void> fetch_once() {
    wire::FetchRequest request = make_request(world_, *plan_, by_name_);
    request.max_wait = std::chrono::milliseconds(dice_.percent(50) ? 500 : dice_.between(0, 5'000));
    request.min_bytes = dice_.percent(80) ? 1 : dice_.between(0, 2'000);
    if (in_sessions_) {
      request.session_id = session_id_;
      request.session_epoch = session_id_ == 0 ? 0 : ++session_epoch_;
    }
    const auto version = static_cast<std::int16_t>(
        by_name_ ? dice_.between(in_sessions_ ? 7 : 4, 12) : dice_.between(13, 18));
    const Ask how{version};
    const Manner manner{by_name_, session_id_ != 0};
    const std::function<void(wire::FetchResponse&)> seen = [this, plan = plan_,
                                                            manner](wire::FetchResponse& response) {
      if (response.error_code == ErrorCode::NONE) {
        take_answer(world_, *plan, response, manner);
      } else if (!manner.incremental) {  // sessions may be forgotten
        world_.violate(fmt::format("Fetch is answered {}", name(response.error_code)));
      }
    };
    const auto call = co_await ask<wire::FetchResponse>(link_, request, how, seen);
    const bool failed = call == nullptr || call->response.error_code != ErrorCode::NONE;
    if (failed) {
      session_id_ = 0;
    } else if (in_sessions_ && session_id_ != call->response.session_id) {
      session_id_ = call->response.session_id;
      session_epoch_ = 0;
    }
  }

  World& world_;
  Dice dice_;
  Link link_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
  bool in_sessions_ = false, by_name_ = false;
  std::int32_t session_id_ = 0, session_epoch_ = 0;
};

class Auditor {
  static constexpr int kMostTries = 10'000;

 public:
  explicit Auditor(World& world) : world_(world), link_{world, "auditor", nullptr} {}

  broker::Task<void> run() {
    for (const auto& [name, entry] : world_.topics().entries()) {
      if (entry.state != Directory::State::kPresent) continue;
      for (std::int32_t index = 0; index < entry.facts.partitions; ++index) {
        co_await read_all(entry, index);
      }
    }
  }

 private:
  broker::Task<void> read_all(const Directory::Entry& topic, std::int32_t index) {
    auto plan = std::make_shared<Plan>(1);
    Reading& reading = plan->front();
    reading.topic = topic;
    reading.index = index;
    reading.position = world_.records().safe_start(reading.log());
    int unanswered = 0;
    while (!world_.aborting() && !world_.hurts() && reading.position >= 0 &&
           reading.position < world_.records().must_show(reading.log())) {
      if (!link_.up()) {
        co_await world_.sleep(100ms);
        continue;
      }
      if (++unanswered > kMostTries) {
        world_.violate(fmt::format("{}~{} cannot be read", topic.facts.name, index));
        co_return;
      }
      const wire::FetchRequest request = make_request(world_, *plan, false);
      const Ask how{13};
      const std::function<void(wire::FetchResponse&)> seen = [this,
                                                              plan](wire::FetchResponse& response) {
        take_answer(world_, *plan, response, Manner());
      };
      const std::int64_t before = reading.position;
      co_await ask<wire::FetchResponse>(link_, request, how, seen);
      if (reading.position != before) unanswered = 0;
    }
  }

  World& world_;
  Link link_;
};

}  // namespace

broker::Task<void> fetch(World& world, std::string name) {
  const auto actor = world.keep<Fetcher>(name);
  co_await actor->run();
}

broker::Task<void> audit(World& world) {
  const auto actor = world.keep<Auditor>();
  co_await actor->run();
}

}  // namespace kanal::sim
