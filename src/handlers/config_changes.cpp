#include "config_changes.hpp"

#include <charconv>
#include <map>
#include <set>

#include "authorize.hpp"
#include "kanal/base/logging.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using coordinator::ConfigAlteration;
using coordinator::ConfigOperation;
using coordinator::ConfigResourceType;

Result<void> check_settings(const std::vector<ConfigAlteration>& changes) {
  std::set<std::string_view> seen;
  for (const ConfigAlteration& change : changes) {
    if (!seen.insert(change.name).second) {
      return invalid_request("Error due to duplicate config keys");
    }
  }
  std::string without_value;
  for (const ConfigAlteration& change : changes) {
    if (change.value || change.operation == ConfigOperation::kDelete) continue;
    without_value.append(without_value.empty() ? "" : ", ").append(change.name);
  }
  if (without_value.empty()) return {};
  return invalid_request("Null value not supported for : " + without_value);
}

Result<void> check_node(Context& context, const std::string& name, std::string_view what) {
  const auto id = parse_node_id(name);
  if (!id) return invalid_request("Node id must be an integer, but it is: " + name.substr(0, 249));
  const std::int32_t own = context.broker.node_id().value();
  if (*id == own) return {};
  return invalid_request("Unexpected " + std::string(what) + std::to_string(own) +
                         ", but received " + std::to_string(*id));
}

bool has_unknown_operation(const std::vector<ConfigAlteration>& changes, int& number) {
  for (const ConfigAlteration& change : changes) {
    number = static_cast<int>(change.operation);
    if (!is_known(change.operation)) return true;
  }
  return false;
}

Result<void> check_level(const ConfigAlteration& change,
                         const std::map<std::string, std::string>& loggers) {
  const bool set = change.operation == ConfigOperation::kSet;
  if (!set && change.operation != ConfigOperation::kDelete) {
    if (is_known(change.operation)) {
      return invalid_request(
          std::string(change.operation == ConfigOperation::kAppend ? "APPEND" : "SUBTRACT") +
          " operation is not allowed for the BROKER_LOGGER resource");
    }
    return invalid_request("Unknown operation type " +
                           std::to_string(static_cast<int>(change.operation)) +
                           " is not allowed for the BROKER_LOGGER resource");
  }
  if (!loggers.contains(change.name)) {
    return fail(ErrorCode::INVALID_CONFIG,
                "Logger " + change.name.substr(0, 249) + " does not exist!");
  }
  if (set && !is_level_name(*change.value)) {
    return fail(ErrorCode::INVALID_CONFIG,
                "Cannot set the log level of " + change.name + " to " +
                    change.value->substr(0, 100) +
                    " as it is not a supported log level. Valid log levels are DEBUG, ERROR, "
                    "FATAL, INFO, TRACE, WARN");
  }
  if (!set && change.name == kRootLogger) {
    return invalid_request("Removing the log level of the root logger is not allowed");
  }
  return {};
}

Result<void> change_loggers(Context& context, const ResourceChange& resource, bool validate_only) {
  if (auto node = check_node(context, resource.name, "node id. Expected "); !node) return node;
  const auto loggers = logger_levels();
  for (const ConfigAlteration& change : resource.changes) {
    if (auto checked = check_level(change, loggers); !checked) return checked;
  }
  if (validate_only) return {};
  for (const ConfigAlteration& change : resource.changes) {
    const bool set = change.operation == ConfigOperation::kSet;
    if (set) set_logger_level(change.name, *change.value);
    if (!set) unset_logger_level(change.name);
    logger("server").warn("A log level was changed. logger={} level={}", change.name,
                          set ? *change.value : "unset");
  }
  return {};
}

bool authorized(const Context& context, const ResourceChange& resource, Error& error) {
  switch (coordinator::resource_type(resource.type)) {
    case ConfigResourceType::kTopic:
      error = {ErrorCode::TOPIC_AUTHORIZATION_FAILED, {}};
      return authorize(context, Operation::kAlterConfigs, ResourceType::kTopic, resource.name);
    case ConfigResourceType::kGroup:
      error = {ErrorCode::GROUP_AUTHORIZATION_FAILED, {}};
      return authorize(context, Operation::kAlterConfigs, ResourceType::kGroup, resource.name);
    default:
      error = {ErrorCode::CLUSTER_AUTHORIZATION_FAILED, {}};
      return authorize(context, Operation::kAlterConfigs, ResourceType::kCluster, kClusterName);
  }
}

/// What Kafka checks before it hands the change to its controller. True: done here already.
Result<bool> prepare(Context& context, const ChangeRequest& request,
                     const ResourceChange& resource) {
  if (auto fine = check_settings(resource.changes); !fine) return std::unexpected(fine.error());
  Error error;
  if (!authorized(context, resource, error)) return std::unexpected(std::move(error));
  const auto type = coordinator::resource_type(resource.type);
  if (type == ConfigResourceType::kBrokerLogger && !request.replace) {
    auto changed = change_loggers(context, resource, request.validate_only);
    if (!changed) return std::unexpected(changed.error());
    return true;
  }
  if (type == ConfigResourceType::kUnknown || type == ConfigResourceType::kBrokerLogger) {
    return invalid_request("Unknown resource type " + std::to_string(resource.type));
  }
  const bool broker = type == ConfigResourceType::kBroker;
  if (broker && !resource.name.empty()) {
    auto node = check_node(context, resource.name, "broker id, expected ");
    if (!node) return std::unexpected(node.error());
  }
  int number = 0;
  if (!has_unknown_operation(resource.changes, number)) return false;
  if (broker) return invalid_request("Unknown operations type " + std::to_string(number));
  return fail(ErrorCode::UNKNOWN_SERVER_ERROR);  // Kafka's controller knows no better
}

coordinator::CatalogCommand topic_command(const ChangeRequest& request, ResourceChange& resource) {
  if (!request.replace) {
    return coordinator::AlterTopicConfigs{resource.name, std::move(resource.changes),
                                          request.validate_only};
  }
  coordinator::SetTopicConfigs command{resource.name, {}, request.validate_only};
  for (ConfigAlteration& change : resource.changes) {
    command.overlay.push_back({std::move(change.name), std::move(change.value)});
  }
  return command;
}

}  // namespace

broker::Task<std::vector<Result<void>>> change_configs(Context& context, ChangeRequest request) {
  std::vector<Result<void>> outcomes(request.resources.size());
  std::map<std::pair<std::int8_t, std::string_view>, int> times;
  for (const auto& resource : request.resources) ++times[{resource.type, resource.name}];
  std::vector<coordinator::CatalogCommand> topics;
  std::vector<coordinator::AlterConfigs> others;
  std::vector<std::size_t> topic_at, other_at;
  for (std::size_t i = 0; i < request.resources.size(); ++i) {
    ResourceChange& resource = request.resources[i];
    if (times[{resource.type, resource.name}] > 1) {
      outcomes[i] = invalid_request("Each resource must appear at most once.");
      continue;
    }
    const auto prepared = prepare(context, request, resource);
    if (!prepared) outcomes[i] = std::unexpected(prepared.error());
    if (!prepared || *prepared) continue;
    const auto type = coordinator::resource_type(resource.type);
    if (type == ConfigResourceType::kTopic) {
      topics.push_back(topic_command(request, resource));
      topic_at.push_back(i);
    } else {
      others.push_back({type, resource.name, std::move(resource.changes), request.replace,
                        request.validate_only, nullptr});
      other_at.push_back(i);
    }
  }
  if (!topics.empty()) {
    auto replies = co_await context.broker.change_catalog(context, std::move(topics));
    for (std::size_t i = 0; i < replies.size(); ++i) {
      if (!replies[i]) outcomes[topic_at[i]] = std::unexpected(std::move(replies[i].error()));
    }
  }
  if (!others.empty()) {
    auto replies = co_await context.broker.change_configs(context, std::move(others));
    for (std::size_t i = 0; i < replies.size(); ++i) outcomes[other_at[i]] = std::move(replies[i]);
  }
  co_return outcomes;
}

std::optional<std::int32_t> parse_node_id(std::string_view text) {
  if (text.size() > 1 && text.front() == '+' && text[1] != '-') text.remove_prefix(1);
  std::int32_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return id;
}

}  // namespace kanal::handlers
