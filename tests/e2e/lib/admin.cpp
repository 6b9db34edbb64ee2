#include <array>
#include <stdexcept>

#include "client.hpp"

namespace kanal::e2e {
namespace {

struct EventDeleter {
  void operator()(rd_kafka_event_t* event) const { rd_kafka_event_destroy(event); }
};
using Event = std::unique_ptr<rd_kafka_event_t, EventDeleter>;

/// One administration call: its queue, options and answer.
class Call {
 public:
  Call(rd_kafka_t* handle, rd_kafka_admin_op_t operation, milliseconds timeout)
      : queue_(rd_kafka_queue_new(handle)), options_(rd_kafka_AdminOptions_new(handle, operation)) {
    std::array<char, 256> why{};
    rd_kafka_AdminOptions_set_request_timeout(options_, static_cast<int>(timeout.count()),
                                              why.data(), why.size());
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    event_.reset();
    rd_kafka_AdminOptions_destroy(options_);
    rd_kafka_queue_destroy(queue_);
  }

  void validate_only() {
    std::array<char, 256> why{};
    rd_kafka_AdminOptions_set_validate_only(options_, 1, why.data(), why.size());
  }
  [[nodiscard]] rd_kafka_queue_t* queue() const { return queue_; }
  [[nodiscard]] rd_kafka_AdminOptions_t* options() const { return options_; }

  /// The answer, or the outcome that there is none.
  rd_kafka_event_t* wait(Outcome& outcome) {
    event_.reset(rd_kafka_queue_poll(queue_, -1));
    if (const auto error = rd_kafka_event_error(event_.get());
        error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      outcome = {error, rd_kafka_event_error_string(event_.get())};
      return nullptr;
    }
    return event_.get();
  }

 private:
  rd_kafka_queue_t* queue_;
  rd_kafka_AdminOptions_t* options_;
  Event event_;
};

Outcome first(const rd_kafka_topic_result_t** results, std::size_t count) {
  if (count != 1) throw std::runtime_error("not one topic in the answer");
  const char* text = rd_kafka_topic_result_error_string(results[0]);
  return {rd_kafka_topic_result_error(results[0]), text == nullptr ? "" : text};
}

}  // namespace

Admin::Admin(const std::string& address, const Settings& settings) {
  handle_ = connect(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), address, settings);
}

Outcome Admin::create(const NewTopic& topic, milliseconds timeout) {
  Call call(handle_.get(), RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout);
  if (topic.validate_only) call.validate_only();
  std::array<char, 256> why{};
  rd_kafka_NewTopic_t* wanted = rd_kafka_NewTopic_new(topic.name.c_str(), topic.partitions,
                                                      topic.replication, why.data(), why.size());
  if (wanted == nullptr) throw std::runtime_error(why.data());
  for (const auto& [key, value] : topic.configs)
    rd_kafka_NewTopic_set_config(wanted, key.c_str(), value.c_str());
  rd_kafka_CreateTopics(handle_.get(), &wanted, 1, call.options(), call.queue());
  rd_kafka_NewTopic_destroy(wanted);
  Outcome outcome;
  rd_kafka_event_t* event = call.wait(outcome);
  if (event == nullptr) return outcome;
  std::size_t count = 0;
  const auto* result = rd_kafka_event_CreateTopics_result(event);
  const rd_kafka_topic_result_t** topics = rd_kafka_CreateTopics_result_topics(result, &count);
  return first(topics, count);
}

Outcome Admin::remove(const std::string& topic, milliseconds timeout) {
  Call call(handle_.get(), RD_KAFKA_ADMIN_OP_DELETETOPICS, timeout);
  rd_kafka_DeleteTopic_t* unwanted = rd_kafka_DeleteTopic_new(topic.c_str());
  rd_kafka_DeleteTopics(handle_.get(), &unwanted, 1, call.options(), call.queue());
  rd_kafka_DeleteTopic_destroy(unwanted);
  Outcome outcome;
  rd_kafka_event_t* event = call.wait(outcome);
  if (event == nullptr) return outcome;
  std::size_t count = 0;
  const auto* result = rd_kafka_event_DeleteTopics_result(event);
  const rd_kafka_topic_result_t** topics = rd_kafka_DeleteTopics_result_topics(result, &count);
  return first(topics, count);
}

Outcome Admin::grow(const std::string& topic, int total, milliseconds timeout) {
  Call call(handle_.get(), RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, timeout);
  std::array<char, 256> why{};
  rd_kafka_NewPartitions_t* wanted = rd_kafka_NewPartitions_new(
      topic.c_str(), static_cast<std::size_t>(total), why.data(), why.size());
  rd_kafka_CreatePartitions(handle_.get(), &wanted, 1, call.options(), call.queue());
  rd_kafka_NewPartitions_destroy(wanted);
  Outcome outcome;
  rd_kafka_event_t* event = call.wait(outcome);
  if (event == nullptr) return outcome;
  std::size_t count = 0;
  const auto* result = rd_kafka_event_CreatePartitions_result(event);
  const rd_kafka_topic_result_t** topics = rd_kafka_CreatePartitions_result_topics(result, &count);
  return first(topics, count);
}

std::int64_t Admin::delete_records(const std::string& topic, std::int32_t partition,
                                   std::int64_t before, milliseconds timeout) {
  Call call(handle_.get(), RD_KAFKA_ADMIN_OP_DELETERECORDS, timeout);
  rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = before;
  rd_kafka_DeleteRecords_t* wanted = rd_kafka_DeleteRecords_new(list);
  rd_kafka_topic_partition_list_destroy(list);
  rd_kafka_DeleteRecords(handle_.get(), &wanted, 1, call.options(), call.queue());
  rd_kafka_DeleteRecords_destroy(wanted);
  Outcome outcome;
  rd_kafka_event_t* event = call.wait(outcome);
  if (event == nullptr) fail("DeleteRecords", outcome.code);
  const auto* offsets =
      rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
  if (offsets->elems[0].err != RD_KAFKA_RESP_ERR_NO_ERROR)
    fail("DeleteRecords", offsets->elems[0].err);
  return offsets->elems[0].offset;
}

Settings Admin::describe(const std::string& topic, milliseconds timeout) {
  Call call(handle_.get(), RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout);
  rd_kafka_ConfigResource_t* resource =
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str());
  rd_kafka_DescribeConfigs(handle_.get(), &resource, 1, call.options(), call.queue());
  rd_kafka_ConfigResource_destroy(resource);
  Outcome outcome;
  rd_kafka_event_t* event = call.wait(outcome);
  if (event == nullptr) fail("DescribeConfigs", outcome.code);
  std::size_t count = 0;
  const auto* result = rd_kafka_event_DescribeConfigs_result(event);
  const rd_kafka_ConfigResource_t** resources =
      rd_kafka_DescribeConfigs_result_resources(result, &count);
  if (const auto error = rd_kafka_ConfigResource_error(resources[0]);
      error != RD_KAFKA_RESP_ERR_NO_ERROR) {
    fail("DescribeConfigs", error);
  }
  Settings values;
  const rd_kafka_ConfigEntry_t** entries = rd_kafka_ConfigResource_configs(resources[0], &count);
  for (std::size_t i = 0; i < count; ++i) {
    const char* value = rd_kafka_ConfigEntry_value(entries[i]);
    values[rd_kafka_ConfigEntry_name(entries[i])] = value == nullptr ? "" : value;
  }
  return values;
}

Outcome Admin::alter(const std::string& topic, const Settings& configs, milliseconds timeout) {
  Call call(handle_.get(), RD_KAFKA_ADMIN_OP_ALTERCONFIGS, timeout);
  rd_kafka_ConfigResource_t* resource =
      rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic.c_str());
  for (const auto& [key, value] : configs)
    rd_kafka_ConfigResource_set_config(resource, key.c_str(), value.c_str());
  rd_kafka_AlterConfigs(handle_.get(), &resource, 1, call.options(), call.queue());
  rd_kafka_ConfigResource_destroy(resource);
  Outcome outcome;
  rd_kafka_event_t* event = call.wait(outcome);
  if (event == nullptr) return outcome;
  std::size_t count = 0;
  const auto* result = rd_kafka_event_AlterConfigs_result(event);
  const auto* changed = rd_kafka_AlterConfigs_result_resources(result, &count)[0];
  const char* text = rd_kafka_ConfigResource_error_string(changed);
  return {rd_kafka_ConfigResource_error(changed), text == nullptr ? "" : text};
}

ClusterInfo Admin::metadata(const std::string& topic) {
  rd_kafka_topic_t* named =
      topic.empty() ? nullptr : rd_kafka_topic_new(handle_.get(), topic.c_str(), nullptr);
  const rd_kafka_metadata_t* metadata = nullptr;
  const auto error = rd_kafka_metadata(handle_.get(), topic.empty() ? 1 : 0, named, &metadata,
                                       static_cast<int>(kPatience.count()));
  if (named != nullptr) rd_kafka_topic_destroy(named);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail("metadata", error);
  ClusterInfo cluster;
  for (int i = 0; i < metadata->broker_cnt; ++i) {
    const auto& broker = metadata->brokers[i];
    cluster.brokers.emplace_back(broker.id,
                                 std::string(broker.host) + ":" + std::to_string(broker.port));
  }
  for (int i = 0; i < metadata->topic_cnt; ++i) {
    const auto& entry = metadata->topics[i];
    TopicInfo& info = cluster.topics[entry.topic];
    info.error = entry.err;
    info.leaders.resize(static_cast<std::size_t>(entry.partition_cnt), -1);
    for (int p = 0; p < entry.partition_cnt; ++p) {
      const auto& partition = entry.partitions[p];
      if (partition.err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        info.leaders.at(static_cast<std::size_t>(partition.id)) = partition.leader;
      }
    }
  }
  rd_kafka_metadata_destroy(metadata);
  return cluster;
}

std::string Admin::cluster_id() {
  char* id = rd_kafka_clusterid(handle_.get(), static_cast<int>(kPatience.count()));
  if (id == nullptr) throw std::runtime_error("no cluster id");
  std::string text(id);
  rd_kafka_mem_free(handle_.get(), id);
  return text;
}

}  // namespace kanal::e2e
