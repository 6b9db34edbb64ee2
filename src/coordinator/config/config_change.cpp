#include "kanal/coordinator/config_change.hpp"

#include <algorithm>

namespace kanal::coordinator {
namespace {

constexpr std::size_t kMaxValue = 32'767;

/// Java's split at commas: empty pieces at the end are dropped, but an empty text is one piece.
std::vector<std::string> pieces(std::string_view text) {
  std::vector<std::string> found;
  std::string_view left = text;
  while (true) {
    const auto comma = left.find(',');
    found.emplace_back(left.substr(0, comma));
    if (comma == std::string_view::npos) break;
    left.remove_prefix(comma + 1);
  }
  while (found.size() > 1 && found.back().empty()) found.pop_back();
  if (found.size() == 1 && found.back().empty() && !text.empty()) found.clear();
  return found;
}

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) text.append(i ? "," : "").append(items[i]);
  return text;
}

std::string changed_list(std::string_view before, const ConfigAlteration& change) {
  std::vector<std::string> items = pieces(before);
  std::erase_if(items, [](const std::string& item) { return item.empty(); });
  for (const std::string& item : pieces(*change.value)) {
    const auto found = std::ranges::find(items, item);
    if (change.operation == ConfigOperation::kAppend && found == items.end()) items.push_back(item);
    if (change.operation == ConfigOperation::kSubtract && found != items.end()) items.erase(found);
  }
  return joined(items);
}

Error not_a_list(const ConfigAlteration& change) {
  const bool append = change.operation == ConfigOperation::kAppend;
  return {ErrorCode::INVALID_CONFIG, std::string("Can't ") + (append ? "APPEND" : "SUBTRACT") +
                                         " to key " + change.name +
                                         " because its type is not LIST."};
}

}  // namespace

ConfigResourceType resource_type(std::int8_t number) noexcept {
  switch (number) {
    case 2:
      return ConfigResourceType::kTopic;
    case 4:
      return ConfigResourceType::kBroker;
    case 8:
      return ConfigResourceType::kBrokerLogger;
    case 16:
      return ConfigResourceType::kClientMetrics;
    case 32:
      return ConfigResourceType::kGroup;
    default:
      return ConfigResourceType::kUnknown;
  }
}

Result<ConfigMap> altered(ConfigMap overlay, std::span<const ConfigAlteration> changes,
                          FindConfig find) {
  bool too_long = false;
  for (const ConfigAlteration& change : changes) {
    if (change.operation == ConfigOperation::kDelete) {
      overlay.erase(change.name);
      continue;
    }
    std::string value = change.value.value_or("");
    if (change.operation != ConfigOperation::kSet) {
      const ConfigRow* row = find(change.name);
      if (row == nullptr || row->type != ConfigType::kList) {
        return std::unexpected(not_a_list(change));
      }
      const auto set = overlay.find(change.name);
      value = changed_list(
          set != overlay.end() ? std::string_view(set->second) : row->default_value.value_or(""),
          change);
    }
    too_long |= value.size() > kMaxValue;
    overlay.insert_or_assign(change.name, std::move(value));
  }
  if (!too_long) return overlay;
  return fail(ErrorCode::INVALID_CONFIG,
              "The configuration value cannot be added because it exceeds the maximum value size "
              "of 32767 bytes.");
}

}  // namespace kanal::coordinator
