// The live transactional ids: a slot each. One whose id is not known any more is marked dropped
// under its lock and then taken out; who finds a dropped slot looks again. Any thread.
#pragma once

#include "kanal/broker/guarded.hpp"
#include "kanal/broker/io_thread.hpp"
#include "kanal/coordinator/txn.hpp"
#include "slot_table.hpp"

#include <memory>
#include <optional>
#include <string>

namespace kanal::broker {

/// A parked request. The reply is written under the id's lock, then the event is posted.
struct TransactionWaiter {
  explicit TransactionWaiter(IoThread& io) : event(io) {}
  Event event;
  std::optional<coordinator::TransactionReply> reply;  // none when it is woken: the id failed
};

struct LiveTransaction {  // under the id's lock
  LiveTransaction(const std::string& id, const coordinator::TransactionSettings& settings)
      : machine(id, settings) {}

  SlotStatus status = SlotStatus::kUsable;
  std::optional<Time> due;  // that a timer is set for, or that a barrier runs for
  coordinator::Transaction machine;
  coordinator::WaiterId last_number = 0;  // of a command; never the same twice
  // Who waits for an end: one at most, since nothing else is admitted meanwhile.
  coordinator::WaiterId parked_as = 0;
  std::shared_ptr<TransactionWaiter> parked;
};

struct TransactionSlot {
  using Live = LiveTransaction;
  TransactionSlot(std::string name, const coordinator::TransactionSettings& settings)
      : id(std::move(name)), live(id, settings) {}
  const std::string id;
  Guarded<LiveTransaction, Rank::kTransaction> live;
  std::optional<Timers::Id> timer;  // on the id's home thread only
};
using TransactionSlotPtr = std::shared_ptr<TransactionSlot>;
using TransactionTable = SlotTable<TransactionSlot>;

}  // namespace kanal::broker
