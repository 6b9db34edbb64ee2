#include "kanal/base/error_code.hpp"

#include <iterator>

namespace kanal {
namespace {

struct Entry {
  std::string_view name;
  bool retriable;
};

// Indexed by code + 1; tests/unit/base checks it against tests/golden/kafka-4.4/errors.tsv.
constexpr Entry kEntries[] = {
    {"UNKNOWN_SERVER_ERROR", false},
    {"NONE", false},
    {"OFFSET_OUT_OF_RANGE", false},
    {"CORRUPT_MESSAGE", true},
    {"UNKNOWN_TOPIC_OR_PARTITION", true},
    {"INVALID_FETCH_SIZE", false},
    {"LEADER_NOT_AVAILABLE", true},
    {"NOT_LEADER_OR_FOLLOWER", true},
    {"REQUEST_TIMED_OUT", true},
    {"BROKER_NOT_AVAILABLE", false},
    {"REPLICA_NOT_AVAILABLE", true},
    {"MESSAGE_TOO_LARGE", false},
    {"STALE_CONTROLLER_EPOCH", false},
    {"OFFSET_METADATA_TOO_LARGE", false},
    {"NETWORK_EXCEPTION", true},
    {"COORDINATOR_LOAD_IN_PROGRESS", true},
    {"COORDINATOR_NOT_AVAILABLE", true},
    {"NOT_COORDINATOR", true},
    {"INVALID_TOPIC_EXCEPTION", false},
    {"RECORD_LIST_TOO_LARGE", false},
    {"NOT_ENOUGH_REPLICAS", true},
    {"NOT_ENOUGH_REPLICAS_AFTER_APPEND", true},
    {"INVALID_REQUIRED_ACKS", false},
    {"ILLEGAL_GENERATION", false},
    {"INCONSISTENT_GROUP_PROTOCOL", false},
    {"INVALID_GROUP_ID", false},
    {"UNKNOWN_MEMBER_ID", false},
    {"INVALID_SESSION_TIMEOUT", false},
    {"REBALANCE_IN_PROGRESS", false},
    {"INVALID_COMMIT_OFFSET_SIZE", false},
    {"TOPIC_AUTHORIZATION_FAILED", false},
    {"GROUP_AUTHORIZATION_FAILED", false},
    {"CLUSTER_AUTHORIZATION_FAILED", false},
    {"INVALID_TIMESTAMP", false},
    {"UNSUPPORTED_SASL_MECHANISM", false},
    {"ILLEGAL_SASL_STATE", false},
    {"UNSUPPORTED_VERSION", false},
    {"TOPIC_ALREADY_EXISTS", false},
    {"INVALID_PARTITIONS", false},
    {"INVALID_REPLICATION_FACTOR", false},
    {"INVALID_REPLICA_ASSIGNMENT", false},
    {"INVALID_CONFIG", false},
    {"NOT_CONTROLLER", true},
    {"INVALID_REQUEST", false},
    {"UNSUPPORTED_FOR_MESSAGE_FORMAT", false},
    {"POLICY_VIOLATION", false},
    {"OUT_OF_ORDER_SEQUENCE_NUMBER", false},
    {"DUPLICATE_SEQUENCE_NUMBER", false},
    {"INVALID_PRODUCER_EPOCH", false},
    {"INVALID_TXN_STATE", false},
    {"INVALID_PRODUCER_ID_MAPPING", false},
    {"INVALID_TRANSACTION_TIMEOUT", false},
    {"CONCURRENT_TRANSACTIONS", true},
    {"TRANSACTION_COORDINATOR_FENCED", false},
    {"TRANSACTIONAL_ID_AUTHORIZATION_FAILED", false},
    {"SECURITY_DISABLED", false},
    {"OPERATION_NOT_ATTEMPTED", false},
    {"KAFKA_STORAGE_ERROR", true},
    {"LOG_DIR_NOT_FOUND", false},
    {"SASL_AUTHENTICATION_FAILED", false},
    {"UNKNOWN_PRODUCER_ID", false},
    {"REASSIGNMENT_IN_PROGRESS", false},
    {"DELEGATION_TOKEN_AUTH_DISABLED", false},
    {"DELEGATION_TOKEN_NOT_FOUND", false},
    {"DELEGATION_TOKEN_OWNER_MISMATCH", false},
    {"DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", false},
    {"DELEGATION_TOKEN_AUTHORIZATION_FAILED", false},
    {"DELEGATION_TOKEN_EXPIRED", false},
    {"INVALID_PRINCIPAL_TYPE", false},
    {"NON_EMPTY_GROUP", false},
    {"GROUP_ID_NOT_FOUND", false},
    {"FETCH_SESSION_ID_NOT_FOUND", true},
    {"INVALID_FETCH_SESSION_EPOCH", true},
    {"LISTENER_NOT_FOUND", true},
    {"TOPIC_DELETION_DISABLED", false},
    {"FENCED_LEADER_EPOCH", true},
    {"UNKNOWN_LEADER_EPOCH", true},
    {"UNSUPPORTED_COMPRESSION_TYPE", false},
    {"STALE_BROKER_EPOCH", false},
    {"OFFSET_NOT_AVAILABLE", true},
    {"MEMBER_ID_REQUIRED", false},
    {"PREFERRED_LEADER_NOT_AVAILABLE", true},
    {"GROUP_MAX_SIZE_REACHED", false},
    {"FENCED_INSTANCE_ID", false},
    {"ELIGIBLE_LEADERS_NOT_AVAILABLE", true},
    {"ELECTION_NOT_NEEDED", true},
    {"NO_REASSIGNMENT_IN_PROGRESS", false},
    {"GROUP_SUBSCRIBED_TO_TOPIC", false},
    {"INVALID_RECORD", false},
    {"UNSTABLE_OFFSET_COMMIT", true},
    {"THROTTLING_QUOTA_EXCEEDED", true},
    {"PRODUCER_FENCED", false},
    {"RESOURCE_NOT_FOUND", false},
    {"DUPLICATE_RESOURCE", false},
    {"UNACCEPTABLE_CREDENTIAL", false},
    {"INCONSISTENT_VOTER_SET", false},
    {"INVALID_UPDATE_VERSION", false},
    {"FEATURE_UPDATE_FAILED", false},
    {"PRINCIPAL_DESERIALIZATION_FAILURE", false},
    {"SNAPSHOT_NOT_FOUND", false},
    {"POSITION_OUT_OF_RANGE", false},
    {"UNKNOWN_TOPIC_ID", true},
    {"DUPLICATE_BROKER_REGISTRATION", false},
    {"BROKER_ID_NOT_REGISTERED", false},
    {"INCONSISTENT_TOPIC_ID", true},
    {"INCONSISTENT_CLUSTER_ID", false},
    {"TRANSACTIONAL_ID_NOT_FOUND", false},
    {"FETCH_SESSION_TOPIC_ID_ERROR", true},
    {"INELIGIBLE_REPLICA", false},
    {"NEW_LEADER_ELECTED", false},
    {"OFFSET_MOVED_TO_TIERED_STORAGE", false},
    {"FENCED_MEMBER_EPOCH", false},
    {"UNRELEASED_INSTANCE_ID", false},
    {"UNSUPPORTED_ASSIGNOR", false},
    {"STALE_MEMBER_EPOCH", false},
    {"MISMATCHED_ENDPOINT_TYPE", false},
    {"UNSUPPORTED_ENDPOINT_TYPE", false},
    {"UNKNOWN_CONTROLLER_ID", false},
    {"UNKNOWN_SUBSCRIPTION_ID", false},
    {"TELEMETRY_TOO_LARGE", false},
    {"INVALID_REGISTRATION", false},
    {"TRANSACTION_ABORTABLE", false},
    {"INVALID_RECORD_STATE", false},
    {"SHARE_SESSION_NOT_FOUND", true},
    {"INVALID_SHARE_SESSION_EPOCH", true},
    {"FENCED_STATE_EPOCH", false},
    {"INVALID_VOTER_KEY", false},
    {"DUPLICATE_VOTER", false},
    {"VOTER_NOT_FOUND", false},
    {"INVALID_REGULAR_EXPRESSION", false},
    {"REBOOTSTRAP_REQUIRED", false},
    {"STREAMS_INVALID_TOPOLOGY", false},
    {"STREAMS_INVALID_TOPOLOGY_EPOCH", false},
    {"STREAMS_TOPOLOGY_FENCED", false},
    {"SHARE_SESSION_LIMIT_REACHED", true},
    {"GROUP_DELETION_FAILED", false},
    {"STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED", false},
    {"CONTROLLER_ID_NOT_REGISTERED", false},
};

const Entry* find(ErrorCode code) noexcept {
  const int index = static_cast<int>(code) + 1;
  if (index < 0 || index >= static_cast<int>(std::size(kEntries))) return nullptr;
  return &kEntries[index];
}

}  // namespace

std::string_view name(ErrorCode code) noexcept {
  const Entry* entry = find(code);
  return entry != nullptr ? entry->name : "UNDEFINED";
}

bool retriable(ErrorCode code) noexcept {
  const Entry* entry = find(code);
  return entry != nullptr && entry->retriable;
}

}  // namespace kanal
