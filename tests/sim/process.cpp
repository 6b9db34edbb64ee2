#include "process.hpp"

#include <algorithm>

#include "network.hpp"

namespace kanal::sim {
namespace {

constexpr int kTurnsToEnd = 10'000;

}  // namespace

Process::Process(Computer& computer, const ProcessPlan& plan, Dice dice)
    : computer_(computer),
      life_(std::make_shared<Life>(computer.strikes)),
      trouble_(std::make_shared<StoreTrouble>()),
      dice_(dice.fork()),
      files_(process_files(computer.disk, {life_, dice.fork(), plan.mutant})),
      helpers_(computer.clock, dice.fork()),
      io_(computer.clock, 0),
      started_(computer.clock.now()) {
  if (plan.dies_after) life_->die_after(*plan.dies_after);
}

Result<std::unique_ptr<Process>> Process::start(Computer& computer, const ProcessPlan& plan,
                                                Dice dice) {
  std::unique_ptr<Process> process(new Process(computer, plan, dice.fork()));
  Process& self = *process;
  const Fittings fittings{self.life_, dice.fork(), plan.mutant};
  const auto open_store = [&](const std::string&) -> Result<std::unique_ptr<reserved::Store>> {
    return process_store(computer.store, fittings, self.trouble_);
  };
  const broker::Foundations foundations{*self.files_, self.helpers_, computer.clock, self.dice_,
                                        open_store};
  broker::BrokerOptions options{.data_dir = "/data",
                                .kafka = plan.kafka,
                                .max_open_log_files = 8,
                                .journal_bytes = 128 << 10};
  auto broker = broker::Broker::start(foundations, options, self.report_);
  if (!broker) return std::unexpected(std::move(broker.error()));
  self.broker_ = std::move(*broker);
  self.broker_->attach(self.io_);
  self.tick_later();
  return process;
}

Process::~Process() {
  helpers_.drop_all();
  broker_.reset();
  helpers_.drop_all();
}

void Process::tick_later() {
  auto on_time = [this] {
    if (dead()) return;
    broker_->tick();
    tick_later();
  };
  io_.add_timer(computer_.clock.now() + std::chrono::seconds(1), std::move(on_time));
}

bool Process::turn() {
  bool ran = io_.poll();
  if (dead()) return true;
  ran |= helpers_.run_one();
  return ran;
}

std::optional<Time> Process::next_timer() const {
  const auto timer = io_.next_timer();
  const auto helper = helpers_.next();
  if (!timer || !helper) return timer ? timer : helper;
  return std::min(*timer, *helper);
}

bool Process::release() {
  cancel_requests();
  broker_->release_parked();
  return end_requests();
}

/// In the order they came; release_parked() goes by where they lie in memory.
void Process::cancel_requests() {
  for (const auto& call : running_) call->cancel();
}

bool Process::end_requests() {
  for (int i = 0; i < kTurnsToEnd && !running_.empty(); ++i) {
    io_.poll();
    helpers_.run_all();
    cancel_requests();
  }
  return running_.empty();
}

Result<void> Process::stop() {
  auto stopped = broker_->stop(computer_.clock.now() + std::chrono::seconds(5));
  helpers_.run_all();
  return stopped;
}

bool Process::bury() {
  life_->kill();
  cancel_requests();
  broker_->release_parked();
  return end_requests();
}

void Process::add_running(const std::shared_ptr<Call>& call) {
  running_.push_back(call);
}

void Process::remove_running(const std::shared_ptr<Call>& call) {
  std::erase(running_, call);
}

}  // namespace kanal::sim
