#include "config_driver.hpp"

#include "kanal/base/logging.hpp"

namespace kanal::broker {
namespace {

/// A client's word as it may stand in a log line.
std::string shown(std::string text) {
  constexpr std::size_t kLongest = 300;
  if (text.size() > kLongest) text.resize(kLongest);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  }
  return text;
}

}  // namespace

using coordinator::AlterConfigs;
using coordinator::ConfigResourceType;

ConfigDriver::ConfigDriver(reserved::Session& session, const Clock& clock, Config base)
    : session_(session), clock_(clock), base_(std::move(base)) {
  config_.store(base_);
  stored_.store(std::make_shared<const coordinator::DynamicConfigs>());
}

Result<coordinator::ClusterFacts> ConfigDriver::start(const coordinator::StartNode& node) {
  const std::lock_guard lock(mutex_);
  if (auto built = rebuild(); !built) return std::unexpected(built.error());
  auto effects = machine_.step(clock_.now(), node);
  if (!effects.replies.front()) return std::unexpected(effects.replies.front().error());
  auto stored = store_and_apply(session_, reserved::Kind::kCluster, machine_, effects.records,
                                reserved::Durability::kSynced);
  if (!stored) return std::unexpected(stored.error());
  publish(true);
  return std::move(*effects.replies.front());
}

std::vector<Result<void>> ConfigDriver::change(std::span<AlterConfigs> commands) {
  const std::lock_guard lock(mutex_);
  std::vector<Result<void>> replies;
  for (AlterConfigs& command : commands) {
    if (stale_) {
      if (auto built = rebuild(); !built) {
        logger("broker").error("Configs cannot be read back. reason={}", built.error().detail);
        replies.emplace_back(
            fail(ErrorCode::KAFKA_STORAGE_ERROR, "The change could not be stored."));
        continue;
      }
      publish(true);
    }
    replies.push_back(change_one(command));
  }
  return replies;
}

Result<void> ConfigDriver::change_one(AlterConfigs& command) {
  command.running = config_.load();
  auto effects = machine_.step(clock_.now(), command);
  if (!effects.replies.front()) return std::unexpected(effects.replies.front().error());
  if (effects.records.empty()) return {};
  auto stored = store_and_apply(session_, reserved::Kind::kCluster, machine_, effects.records,
                                reserved::Durability::kSynced);
  if (!stored) {
    logger("broker").error("A change of configs could not be stored. reason={}",
                           stored.error().detail);
    stale_ = true;
    return fail(ErrorCode::KAFKA_STORAGE_ERROR, "The change could not be stored.");
  }
  logger("broker").info("Configs changed. type={} name={} settings={}",
                        static_cast<int>(command.type), shown(command.name),
                        machine_.configs().of(command.type, command.name).size());
  publish(command.type == ConfigResourceType::kBroker);
  return {};
}

void ConfigDriver::listen(Listener listener) {
  const std::lock_guard lock(mutex_);
  listener(config_.load());
  listeners_.push_back(std::move(listener));
}

Result<void> ConfigDriver::rebuild() {
  coordinator::ClusterState machine;
  if (auto replayed = replay_into(session_, reserved::Kind::kCluster, machine); !replayed)
    return replayed;
  machine_ = std::move(machine);
  stale_ = false;
  return {};
}

void ConfigDriver::publish(bool broker_changed) {
  stored_.store(std::make_shared<const coordinator::DynamicConfigs>(machine_.configs()));
  if (!broker_changed) return;
  coordinator::InForce next = coordinator::in_force(*base_, machine_.configs());
  for (const auto& ignored : next.ignored) {
    logger("broker").error("A stored config is not in force. name={} reason=\"{}\"",
                           shown(ignored.name), shown(ignored.reason));
  }
  const auto config = std::make_shared<const coordinator::BrokerConfig>(std::move(next.config));
  config_.store(config);
  for (const Listener& listener : listeners_) listener(config);
}

}  // namespace kanal::broker
