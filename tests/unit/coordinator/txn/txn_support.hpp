// For tests of the transaction machine: one transactional id with its records kept, as a driver
// without a disk would keep them, clocks to move by hand, and requests in one line. Markers are
// written at once unless a test holds them back.
#pragma once

#include "kanal/coordinator/txn.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kanal::coordinator {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr auto k1 = TransactionVersion::k1;
constexpr auto k2 = TransactionVersion::k2;

struct Identity {
  std::int64_t id = -1;
  int epoch = -1;
  friend bool operator==(const Identity&, const Identity&) = default;
};
struct Answer {
  ErrorCode error = ErrorCode::NONE;
  Identity identity;
  friend bool operator==(const Answer&, const Answer&) = default;
};
inline void PrintTo(const Answer& answer, std::ostream* to) {
  *to << name(answer.error) << " " << answer.identity.id << "/" << answer.identity.epoch;
}
inline Answer refused(ErrorCode error) {
  return {error, {}};
}
inline Answer granted(Identity identity) {
  return {ErrorCode::NONE, identity};
}

using Partitions = std::vector<TransactionPartition>;
inline Partitions partitions(std::string_view topic, std::initializer_list<std::int32_t> numbers) {
  Partitions all;
  for (const std::int32_t number : numbers) all.push_back({topic, PartitionIndex(number)});
  return all;
}
inline const Partitions kOrders0 = partitions("orders", {0});

class LiveTransaction {
 public:
  explicit LiveTransaction(std::string id = "t")
      : machine_(std::make_unique<Transaction>(std::move(id), settings)) {}
  LiveTransaction(const LiveTransaction&) = delete;
  LiveTransaction& operator=(const LiveTransaction&) = delete;

  // Requests. -1/-1 names no producer id.
  Answer init(Identity expected = {}, bool knows_fenced = true) {
    InitProducerIdCommand command;
    command.timeout = seconds{60};
    command.producer_id = ProducerId(expected.id);
    command.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(expected.epoch));
    command.knows_fenced = knows_fenced;
    return run(command);
  }
  Answer init_with(milliseconds timeout) {
    InitProducerIdCommand command;
    command.timeout = timeout;
    return run(command);
  }
  Answer init_raw(const InitProducerIdCommand& command) { return run(command); }
  ErrorCode add(Identity producer, const Partitions& partitions = kOrders0,
                TransactionVersion version = k1, bool knows_fenced = true) {
    AddToTransactionCommand command;
    command.producer_id = ProducerId(producer.id);
    command.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(producer.epoch));
    command.partitions = partitions;
    command.version = version;
    command.knows_fenced = knows_fenced;
    return run(std::move(command)).error;
  }
  ErrorCode add_group(Identity producer, std::string_view group, TransactionVersion version = k1,
                      bool knows_fenced = true) {
    AddToTransactionCommand command;
    command.producer_id = ProducerId(producer.id);
    command.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(producer.epoch));
    command.group = group;
    command.version = version;
    command.knows_fenced = knows_fenced;
    return run(std::move(command)).error;
  }
  Answer end(Identity producer, bool commit, TransactionVersion version = k1,
             bool knows_fenced = true) {
    EndTransactionCommand command;
    command.producer_id = ProducerId(producer.id);
    command.producer_epoch = ProducerEpoch(static_cast<std::int16_t>(producer.epoch));
    command.commit = commit;
    command.version = version;
    command.knows_fenced = knows_fenced;
    return run(command);
  }
  Answer commit(Identity producer, TransactionVersion version = k1) {
    return end(producer, true, version);
  }
  Answer abort(Identity producer, TransactionVersion version = k1) {
    return end(producer, false, version);
  }
  ErrorCode verify(Identity producer, std::string_view topic = "orders", std::int32_t index = 0) {
    return machine_->verify(ProducerId(producer.id),
                            ProducerEpoch(static_cast<std::int16_t>(producer.epoch)),
                            {topic, PartitionIndex(index)});
  }
  ErrorCode verify_group(Identity producer, std::string_view group) {
    return machine_->verify_group(ProducerId(producer.id),
                                  ProducerEpoch(static_cast<std::int16_t>(producer.epoch)), group);
  }
  void expire() { run(ExpireTransactionalId{}); }
  void pass_time() { run(PassTime{}); }

  // Markers
  /// From now on they wait for write_markers().
  void hold_markers() { hold_ = true; }
  [[nodiscard]] bool has_markers() const { return !held_.empty(); }
  WriteMarkers write_markers() {
    const WriteMarkers markers = held_.at(0);
    held_.erase(held_.begin());
    written_.push_back(markers);
    tell_written(markers.end);
    return markers;
  }
  void tell_written(WaiterId end) { run(MarkersWritten{end}); }
  void tell_delayed() { tell_delayed(held_.at(0).end); }
  void tell_delayed(WaiterId end) { run(MarkersDelayed{end}); }
  [[nodiscard]] const std::vector<WriteMarkers>& written() const { return written_; }

  /// Moves the clocks; a deadline in between is met at its time.
  void pass(milliseconds time) {
    const Time until = now_ + time;
    while (machine_->next_deadline() && *machine_->next_deadline() <= until) {
      advance_to(std::max(now_, *machine_->next_deadline()));
      pass_time();
    }
    advance_to(until);
  }
  void set_wall(Timestamp wall) { wall_ = wall; }

  /// What came after the request's own step: an end is answered when it is complete.
  [[nodiscard]] bool answered() const { return answered_; }
  [[nodiscard]] const Answer& last() const { return last_; }

  /// A machine made from the records alone, as after kill -9; no step since.
  [[nodiscard]] std::unique_ptr<Transaction> replayed() const {
    auto machine = std::make_unique<Transaction>(machine_->id(), settings);
    for (const Buffer& body : stored_) {
      EXPECT_TRUE(machine->apply({machine_->id(), body}));
    }
    return machine;
  }
  /// Goes on from the records alone.
  void restart() {
    machine_ = replayed();
    held_.clear();
    take(machine_->loaded(now_, wall_, ++number_));
  }
  /// The next step's record cannot be stored: the driver reads the machine anew.
  void fail_next_store() { fail_ = true; }
  void roll() { stored_ = machine_->snapshot(machine_->id()); }

  [[nodiscard]] const Transaction& machine() const { return *machine_; }
  [[nodiscard]] TransactionState state() const { return machine_->facts().state; }
  [[nodiscard]] Identity identity() const {
    return {machine_->facts().producer_id.value(), machine_->facts().producer_epoch.value()};
  }
  [[nodiscard]] const std::vector<Buffer>& stored() const { return stored_; }
  [[nodiscard]] std::int64_t ids_taken() const { return next_id_ - kFirstId; }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] Timestamp wall() const { return wall_; }
  [[nodiscard]] std::size_t records_of_last_step() const { return records_; }

  /// As if it had had so many epochs: puts the record there, as read from a disk.
  void start_with(const Buffer& record) {
    stored_ = {record};
    restart();
  }

  static constexpr std::int64_t kFirstId = 1'000;
  TransactionSettings settings;

 private:
  template <class What>
  Answer run(What what) {
    TransactionCommand command{
        .waiter = ++number_, .wall = wall_, .fresh = kNoProducerId, .what = std::move(what)};
    if (machine_->needs_producer_id(command)) command.fresh = ProducerId(next_id_++);
    answered_ = false;
    last_ = {};
    take(machine_->step(now_, command));
    return last_;
  }
  void take(const Transaction::Effects& effects) {
    EXPECT_LE(effects.records.size(), 1U) << "all of a step is stored, or nothing";
    if (std::exchange(fail_, false) && !effects.records.empty()) return restart();
    for (const Record& record : effects.records) {
      EXPECT_EQ(record.key, machine_->id());
      if (record.ends_channel()) {
        stored_.clear();
      } else {
        stored_.push_back(record.body);
      }
      const auto applied = machine_->apply(record);
      EXPECT_TRUE(applied) << (applied ? "" : applied.error().detail);
    }
    records_ = effects.records.size();
    for (const TransactionReply& reply : effects.replies) {
      answered_ = true;
      last_ = {reply.error, {reply.producer_id.value(), reply.producer_epoch.value()}};
    }
    EXPECT_LE(effects.replies.size(), 1U);
    for (const WriteMarkers& markers : effects.actions) {
      held_.push_back(markers);
      if (!hold_) write_markers();
    }
  }
  void advance_to(Time time) {
    wall_ = wall_ + std::chrono::duration_cast<milliseconds>(time - now_).count();
    now_ = time;
  }

  std::unique_ptr<Transaction> machine_;
  std::vector<Buffer> stored_;
  std::vector<WriteMarkers> held_, written_;
  bool hold_ = false, answered_ = false, fail_ = false;
  Answer last_;
  std::size_t records_ = 0;
  WaiterId number_ = 0;
  std::int64_t next_id_ = kFirstId;
  Time now_{seconds{1'000}};
  Timestamp wall_{1'700'000'000'000};
};

}  // namespace kanal::coordinator
