// UpdateFeatures (57): raises or lowers what is switched on (KIP-584).
//
// Behavior
// - All or nothing: one bad update refuses the request, with INVALID_UPDATE_VERSION and no results.
//   In Kafka's order: the kind of upgrade, a negative level, a level that is not supported, a
//   downgrade or an upgrade of the wrong kind, then what the feature itself demands.
// - Every feature is at its highest level. A lower metadata.version would lose metadata, a lower
//   transaction.version is served beside the highest, so nothing can change: an update to the level
//   that holds succeeds, with and without validate_only.
// - A feature named twice counts once, as it is named last.
// Version notes
// - 0 has no kinds: every update is an upgrade, whatever allow_downgrade says (as in Kafka 4.4).
//   0-1 have a result for each feature if all is well.
#include <map>
#include <optional>

#include "authorize.hpp"
#include "kanal/broker/broker.hpp"
#include "kanal/coordinator/features.hpp"
#include "kanal/wire/messages/update_features.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using coordinator::Feature;
using Request = wire::UpdateFeaturesRequest;
using Response = wire::UpdateFeaturesResponse;
using Update = Request::FeatureUpdate;

constexpr std::int8_t kUpgrade = 1, kUnsafeDowngrade = 3;  // 2: a safe downgrade

std::optional<std::string> unsupported(const Feature* feature, std::int16_t level) {
  if (feature == nullptr)
    return level == 0 ? std::nullopt : std::optional("This node does not have the feature.");
  if (level >= feature->lowest && level <= feature->highest) return std::nullopt;
  return "This node supports the levels " + std::to_string(feature->lowest) + " to " +
         std::to_string(feature->highest) + ".";
}

/// Why not, or nothing.
std::optional<std::string> refusal(const Update& update) {
  const std::int16_t level = update.max_version_level;
  const std::int8_t kind = update.upgrade_type;
  if (kind < kUpgrade || kind > kUnsafeDowngrade) return "The kind of upgrade is not known.";
  if (level < 0) return "A level is not negative.";
  const Feature* feature = coordinator::find_feature(update.feature);
  if (auto why = unsupported(feature, level)) return why;
  if (feature == nullptr) return "There is no such feature.";
  if (level < feature->finalized && kind == kUpgrade)
    return "That is lower than the level that holds; ask for a downgrade, safe or unsafe.";
  if (level > feature->finalized && kind != kUpgrade)
    return "That is higher than the level that holds, and no downgrade.";
  if (level < feature->lowest_safe) {
    if (feature->name != coordinator::kMetadataVersion) return "Its level is fixed here.";
    if (kind == kUnsafeDowngrade) return "Downgrades that delete metadata are not supported.";
    return "The downgrade from level " + std::to_string(feature->finalized) +
           " might delete metadata.";
  }
  return std::nullopt;
}

void fill_results(const Request& request, Response& response) {
  for (const Update& update : request.feature_updates) {
    auto& result = response.results.emplace_back();
    result.feature = std::string(update.feature);
    result.error_message = "NONE";  // never null in Kafka's answers
  }
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  Response response;
  if (!authorize(context, Operation::kAlter, ResourceType::kCluster, kClusterName)) {
    response.error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    response.error_message = "Updating features is not allowed.";
    co_return response;
  }
  std::map<std::string_view, const Update*> updates;
  for (const Update& update : request.feature_updates) updates[update.feature] = &update;
  for (const auto& [name, update] : updates) {
    const std::optional<std::string> why = refusal(*update);
    if (!why) continue;
    response.error_code = ErrorCode::INVALID_UPDATE_VERSION;
    response.error_message = "No feature was updated: " + std::string(name) +
                             " cannot have level " + std::to_string(update->max_version_level) +
                             ". " + *why;
    co_return response;
  }
  response.error_message = std::nullopt;
  fill_results(request, response);
  co_return response;
}

}  // namespace kanal::handlers
