#include "world.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <cstdio>

#include "actors.hpp"
#include "kanal/broker/groups.hpp"

namespace kanal::sim {
namespace {

using namespace std::chrono_literals;
using Death = RecordLedger::Death;

constexpr auto kLongestEnd = 20min;  // of virtual time, from the last step to the last answer
constexpr auto kAfterTrouble = 60s;  // what a fault may still explain
constexpr int kTurnsToAbort = 100'000;

/// FNV-1a over 64-bit words where it can.
std::uint64_t fold_bytes(std::uint64_t digest, Bytes bytes) noexcept {
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    digest = (digest ^ static_cast<std::uint64_t>(load_be<std::int64_t>(bytes.data() + at))) *
             0x100000001b3ULL;
  }
  for (; at < bytes.size(); ++at) {
    digest = (digest ^ static_cast<std::uint64_t>(bytes[at])) * 0x100000001b3ULL;
  }
  return digest;
}

std::string hex(Bytes bytes) {
  std::string text;
  for (const std::byte each : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(each));
  return text;
}

/// What a restart without a power cut has to bring back: each group's offsets, topic by topic, and
/// the members of a generation that has its assignments (of no topic).
StoredGroups stored_groups(broker::Broker& broker) {
  StoredGroups all;
  broker.groups().for_each([&](const coordinator::Group& group) {
    group.for_each_offset(
        [&](std::string_view, PartitionIndex index, const coordinator::CommittedOffset& offset) {
          all[{"the offsets of " + group.id(), offset.topic_id}] +=
              fmt::format("~{}={}/{}/{}@{} ", index.value(), offset.offset.value(),
                          offset.leader_epoch.value(), offset.metadata, offset.committed.value());
        });
    if (group.state() != coordinator::GroupState::kStable) return;
    std::string& members = all[{"the members of " + group.id(), Uuid()}];
    for (const auto& member : group.describe().members) {
      members += fmt::format("{}:{}:{} ", member.member_id, hex(member.member_metadata),
                             hex(member.member_assignment));
    }
  });
  return all;
}

}  // namespace

World::World(const RunOptions& options)
    : options_(options),
      dice_(mix(options.seed + 1)),
      network_dice_(dice_.fork()),
      profile_(options.short_run ? make_short_profile(dice_.fork()) : make_profile(dice_.fork())),
      client_io_(computer_.clock, 1),
      records_([this](const std::string& what) { violate(what); },
               [this] { return clock().wall(); }),
      groups_([this](const std::string& what) { violate(what); }, [this] { return group_now(); },
              [this] { return troubled(); }),
      offsets_([this](const std::string& what) { violate(what); }),
      tamper_(options.mutant, dice_.fork()) {
  computer_.strikes.planned = options.strike;
}

World::~World() = default;

RunResult World::run() {
  trace("seed={} steps={} {}", options_.seed, options_.steps, describe(profile_));
  boot();
  start_actors();
  run_until_actors_end("an actor");
  if (!violation_) final_audit();
  if (violation_) abort();
  RunResult result{violation_,
                   steps_,
                   digest_,
                   starts_,
                   records_.records_acknowledged(),
                   computer_.clock.elapsed(),
                   computer_.strikes.changes,
                   computer_.strikes.struck};
  return result;
}

// Actors

broker::Task<void> World::sleep(Duration time) {
  if (aborting_) co_return;
  broker::Event event(client_io_);
  sleepers_.insert(&event);
  co_await event.wait_until(clock().now() + time);
  sleepers_.erase(&event);
}

void World::spawn(broker::Task<void> actor) {
  ++actors_;
  auto counted = [](World& world, broker::Task<void> held) -> broker::Task<void> {
    co_await std::move(held);
    --world.actors_;
  };
  boost::asio::co_spawn(client_io_.context(), counted(*this, std::move(actor)),
                        boost::asio::detached);
}

ConnectionPtr World::connect(const std::string& client_id) {
  if (process_ == nullptr || process_->dead() || aborting_) return nullptr;
  auto connection = std::make_shared<Connection>(*this, *process_, client_id);
  std::erase_if(connections_, [](const auto& weak) {
    const auto open = weak.lock();
    return open == nullptr || open->closed();
  });
  connections_.push_back(connection);
  return connection;
}

void World::violate(const std::string& what) {
  if (violation_) return;
  violation_ = fmt::format("after {} steps, {} ms: {}", steps_,
                           clock().elapsed() / std::chrono::milliseconds(1), what);
  trace("VIOLATION {}", what);
}

void World::print_trace(const std::string& line) const {
  std::printf("%10.3f %7llu  %s\n", std::chrono::duration<double>(clock().elapsed()).count(),
              static_cast<unsigned long long>(steps_), line.c_str());
}

void World::check_producer_id(ProducerId id) {
  if (!producer_ids_.insert(id).second) {
    violate(fmt::format("producer id {} is given out twice", id.value()));
  }
}

bool World::hurts() const noexcept {
  return in_trouble_ || computer_.strikes.hurts;
}

bool World::troubled() const noexcept {
  return hurts() || clock().now() < trouble_until_;
}

void World::set_trouble() noexcept {
  in_trouble_ = true;
}

void World::end_trouble() noexcept {
  if (!hurts()) return;
  in_trouble_ = computer_.strikes.hurts = false;
  trouble_until_ = clock().now() + kAfterTrouble;
}

// The loop

void World::run_until_actors_end(const char* whose) {
  std::optional<Time> last;
  while (actors_ > 0 && !violation_) {
    turn();
    if (running()) continue;
    if (!last) last = clock().now() + kLongestEnd;
    if (clock().now() > *last) violate(fmt::format("a request of {} does not end", whose));
  }
}

bool World::turn() {
  bool ran = client_io_.poll();
  if (stalled_until_ != Time{} && clock().now() >= stalled_until_) end_stall();
  const bool stalled = clock().now() < stalled_until_;
  if (process_ != nullptr && !stalled) {
    ran |= process_->turn();
    note_strike();
    if (process_->dead()) {
      mourn();
      return true;
    }
  }
  if (!ran) jump();
  return ran;
}

/// A power cut takes the power. An error hurts until the process ends, and the power goes with it:
/// what a failed sync did not write is gone then, whatever later syncs said. A full disk has room
/// again at once.
void World::note_strike() {
  Strikes& strikes = computer_.strikes;
  if (!strikes.hurts) return;
  if (options_.strike.kind != Strike::Kind::kFull) power_fails_ = true;
  if (options_.strike.kind == Strike::Kind::kPowerCut) strikes.hurts = false;
}

void World::jump() {
  std::optional<Time> next = client_io_.next_timer();
  const auto sooner = [&next](const std::optional<Time>& other) {
    if (other && (!next || *other < *next)) next = other;
  };
  if (clock().now() < stalled_until_) {
    sooner(stalled_until_);
  } else if (process_ != nullptr) {
    sooner(process_->next_timer());
  }
  if (!next) return violate("nothing is left to happen, and somebody waits");
  computer_.clock.advance_to(*next);
}

// The broker's lives

void World::boot_later(Duration downtime) {
  client_io_.add_timer(clock().now() + downtime, [this] { boot(); });
}

void World::boot() {
  if (aborting_) return;
  const auto dies_after = std::exchange(next_dies_after_, std::nullopt);
  const bool was_struck = computer_.strikes.struck;
  auto started =
      Process::start(computer_, {profile_.kafka, options_.mutant, dies_after}, dice_.fork());
  count_step();
  if (!started) {
    const bool hit = computer_.strikes.struck && !was_struck;
    if (!dies_after && !hit) {
      return violate("the broker does not start: " + started.error().detail);
    }
    trace("dies while it starts: {}", started.error().detail);
    if (hit) note_strike();
    end_trouble();
    last_death_ = std::max(last_death_, power_fails_ ? Death::kPowerCut : Death::kKill);
    if (std::exchange(power_fails_, false)) cut_power();
    return boot_later(100ms);
  }
  process_ = std::move(*started);
  note_strike();
  if (process_->dead()) return mourn();
  ++starts_;
  process_->helpers().set_delay(profile_.disk_delay);
  after_start(std::exchange(last_death_, Death::kCleanStop));
}

void World::after_start(Death death) {
  const broker::StartReport& report = process_->report();
  trace("started: topics={} partitions={} recovered={} broken={} cut_bytes={} epoch={}",
        report.topics, report.partitions, report.recovered, report.broken, report.cut_bytes,
        process_->broker().leader_epoch().value());
  if (report.broken > 0) {
    if (!troubled()) return violate(fmt::format("{} partitions do not open", report.broken));
    last_death_ = death;  // they will next time, and are looked at then
  }
  const std::int32_t epoch = process_->broker().leader_epoch().value();
  if (epoch <= last_epoch_) violate(fmt::format("leader epoch {} after {}", epoch, last_epoch_));
  last_epoch_ = epoch;
  for (const auto& [name, entry] : topics_.entries()) survey_topic(entry, death);
  groups_.started();
  offsets_.synced();  // the leader epoch was, and with it all before it
  if (const auto before = std::exchange(groups_before_, std::nullopt)) compare_groups(*before);
}

/// Replay equals life, as far as it is stored.
void World::compare_groups(const StoredGroups& before) {
  StoredGroups now = stored_groups(process_->broker());
  const auto topics = process_->broker().topics();
  for (const auto& [what, state] : before) {
    // A topic whose deletion was stored takes its offsets along.
    if (!what.second.is_zero() && topics->find(what.second) == nullptr) continue;
    if (now[what] != state)
      violate(what.first + " were '" + state + "' and are '" + now[what] + "' after a restart");
  }
}

void World::survey_topic(const Directory::Entry& entry, Death death) {
  const auto topic = process_->broker().topics()->find(entry.facts.name);
  if (entry.state == Directory::State::kAbsent && topic != nullptr) {
    return violate("the deleted topic " + entry.facts.name + " is back after a restart");
  }
  if (entry.state == Directory::State::kPresent) {
    if (topic == nullptr) return violate("topic " + entry.facts.name + " is lost by a restart");
    if (topic->id() != entry.facts.id) {
      return violate("topic " + entry.facts.name + " has another id after a restart");
    }
  }
  if (topic == nullptr || topic->id() != entry.facts.id) return;
  if (static_cast<std::int32_t>(topic->partitions.size()) < entry.facts.partitions) {
    return violate("topic " + entry.facts.name + " has lost partitions by a restart");
  }
  for (const auto& partition : topic->partitions) {
    const auto marks = partition->with_log([](log::Partition& log) { return log.watermarks(); });
    if (!marks) {
      if (troubled()) continue;
      violate("a partition of " + entry.facts.name + " is not readable: " + marks.error().detail);
      continue;
    }
    records_.survived({topic->id(), partition->id().partition.value()},
                      {marks->log_start.value(), marks->high_watermark.value()}, death);
  }
}

void World::mourn() {
  end_process(std::exchange(power_fails_, false) ? Death::kPowerCut : Death::kKill,
              std::exchange(next_downtime_, Duration(200ms)));
}

void World::end_process(Death death, Duration downtime) {
  trace("the broker is gone: {}", death == Death::kCleanStop ? "stopped"
                                  : death == Death::kKill    ? "killed"
                                                             : "power cut");
  for (const auto& weak : connections_) {
    if (const auto connection = weak.lock()) connection->close();
  }
  if (!process_->bury()) violate("a request does not end when the broker goes");
  for (const auto& weak : connections_) {
    if (const auto connection = weak.lock()) connection->abandon();
  }
  connections_.clear();
  process_.reset();
  computer_.disk.clear_faults();
  computer_.disk.set_capacity(std::nullopt);
  end_trouble();
  end_stall();
  groups_.died(Death::kKill);
  offsets_.died(Death::kKill);
  if (death == Death::kPowerCut) cut_power();
  last_death_ = std::max(last_death_, death);
  if (!aborting_) boot_later(downtime);
}

void World::cut_power() {
  ++power_cuts_;
  groups_before_.reset();
  computer_.power_cut(dice_);
  groups_.died(Death::kPowerCut);
  offsets_.died(Death::kPowerCut);
}

void World::stop_cleanly(Duration downtime) {
  if (process_ == nullptr) return;
  stopping_ = true;
  if (!process_->release()) violate("a request does not end when the broker stops");
  for (const auto& weak : connections_) {
    if (const auto connection = weak.lock()) connection->close();
  }
  stopping_ = false;
  if (!troubled()) groups_before_ = stored_groups(process_->broker());
  const Result<void> stopped = process_->stop();
  note_strike();
  if (process_->dead()) {
    next_downtime_ = downtime;
    return mourn();
  }
  if (!stopped && !troubled()) violate("the stop was not clean: " + stopped.error().detail);
  if (stopped && !troubled()) {
    records_.stopped_cleanly();
    offsets_.synced();
  }
  const bool cut = std::exchange(power_fails_, false);
  end_process(cut ? Death::kPowerCut : stopped ? Death::kCleanStop : Death::kKill, downtime);
}

void World::kill(bool power_cut, Duration downtime) {
  if (process_ == nullptr) return;
  if (!power_cut && !power_fails_ && !troubled())
    groups_before_ = stored_groups(process_->broker());
  process_->life().kill();
  power_fails_ |= power_cut;
  next_downtime_ = downtime;
  mourn();
}

void World::stall(Duration time) {
  end_stall();
  stalled_since_ = clock().now();
  stalled_until_ = stalled_since_ + time;
  slow_until_ = std::max(slow_until_, stalled_until_ + kAfterTrouble);
}

void World::end_stall() {
  if (stalled_until_ == Time{}) return;
  stalled_ += std::min(clock().now(), stalled_until_) - stalled_since_;
  stalled_until_ = {};
}

Time World::group_now() const noexcept {
  if (stalled_until_ == Time{}) return clock().now() - stalled_;
  return stalled_since_ - stalled_;
}

// The network

Call::Fate World::roll_fate() {
  if (!running() || network_dice_.below(10'000) >= static_cast<unsigned>(profile_.lost_per_10000)) {
    return Call::Fate::kArrives;
  }
  return network_dice_.percent(50) ? Call::Fate::kRequestIsLost : Call::Fate::kAnswerIsLost;
}

void World::check_limit(const Call& call) {
  if (aborting_ || troubled() || slow() || clock().now() <= call.limit()) return;
  violate(fmt::format("{} is open for {} ms", call.name(),
                      (clock().now() - call.begun()) / std::chrono::milliseconds(1)));
}

void World::fold(std::uint64_t number, Bytes answer) noexcept {
  digest_ = fold_bytes(digest_ ^ (number * 0x9e3779b97f4a7c15ULL), answer);
}

void World::close_connections(int percent) {
  const auto open = connections_;
  for (const auto& weak : open) {
    if (const auto connection = weak.lock(); connection && dice_.percent(percent)) {
      connection->close();
    }
  }
}

// Beginning and end

std::string World::group_id(int number) {
  static constexpr const char* kNames[] = {"group", "a/group.of~odd name", "Gruppe \xc3\xbc"};
  return fmt::format("{}-{}", kNames[number % 3], number);
}

void World::start_actors() {
  for (int i = 0; i < profile_.topics + profile_.eternal_topics; ++i) {
    const bool eternal = i < profile_.eternal_topics;
    const std::string name = fmt::format("{}-{}", eternal ? "eternal" : "topic", i);
    topics_.add(name, eternal);
    topics_.set(name, Directory::State::kAbsent);
    spawn(change_topic(*this, name));
  }
  for (int i = 0; i < profile_.idempotent_producers; ++i) {
    spawn(produce(*this, fmt::format("idempotent-{}", i), true));
  }
  for (int i = 0; i < profile_.plain_producers; ++i) {
    spawn(produce(*this, fmt::format("plain-{}", i), false));
  }
  for (int i = 0; i < profile_.fetchers; ++i) spawn(fetch(*this, fmt::format("fetcher-{}", i)));
  spawn(seek(*this));
  for (int i = 0; i < profile_.groups; ++i) {
    const GroupPlan plan{group_id(i), profile_.times, profile_.static_groups > i};
    groups_.add(plan.id, plan.times);
    for (int k = 0; k < profile_.members; ++k) {
      spawn(be_member(*this, fmt::format("member-{}-{}", i, k), plan));
    }
  }
  spawn(watch_groups(*this));
  spawn(commit_alone(*this, "alone"));
  spawn(profile_.scripted ? follow_script(*this) : break_things(*this));
}

void World::final_audit() {
  ending_ = true;
  if (process_ != nullptr && troubled()) stop_cleanly(Duration(1ms));
  for (const bool again : {false, true}) {
    if (process_ != nullptr && again) {
      const Duration soon = 1ms;
      if (profile_.scripted || (profile_.power_cuts && dice_.percent(40))) {
        kill(true, soon);
      } else if (profile_.deaths && dice_.percent(60)) {
        kill(false, soon);
      } else {
        stop_cleanly(soon);
      }
    }
    next_dies_after_.reset();
    do {  // until no strike falls into it
      while (process_ == nullptr && !violation_) turn();
      if (process_ != nullptr && troubled()) {  // a log may not have opened
        stop_cleanly(1ms);
        while (process_ == nullptr && !violation_) turn();
      }
      if (violation_) return;
      end_trouble();
      spawn(audit(*this));
      run_until_actors_end("the audit");
      if (violation_) return;
    } while (hurts());
  }
  if (process_ != nullptr && troubled()) end_trouble();
  stop_cleanly(1ms);
  abort();
}

void World::abort() {
  ending_ = aborting_ = true;
  if (process_ != nullptr) {
    process_->life().kill();
    end_process(Death::kKill, {});
  }
  for (int i = 0; i < kTurnsToAbort && actors_ > 0; ++i) {
    for (broker::Event* sleeper : sleepers_) sleeper->fire();
    for (const auto& call : swallowed_) call->event().fire();
    client_io_.poll();
  }
  CHECK(actors_ == 0, "every actor ends when its waits do");
}

}  // namespace kanal::sim
