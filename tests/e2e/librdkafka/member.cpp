#include "member.hpp"

#include <algorithm>

namespace kanal::e2e {
namespace {

int to_int(milliseconds time) {
  return static_cast<int>(time.count());
}

void add(Partitions& to, const rd_kafka_topic_partition_list_t& list) {
  for (int i = 0; i < list.cnt; ++i) to.emplace(list.elems[i].topic, list.elems[i].partition);
}

}  // namespace

Member::Member(const std::string& address, const std::string& group,
               const std::vector<std::string>& topics, const Settings& settings) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_opaque(conf, this);
  rd_kafka_conf_set_rebalance_cb(
      conf, [](rd_kafka_t*, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions,
               void* opaque) { static_cast<Member*>(opaque)->rebalance(what, partitions); });
  Settings all{{"group.id", group},
               {"auto.offset.reset", "earliest"},
               {"enable.auto.commit", "false"},
               {"heartbeat.interval.ms", "200"},
               {"session.timeout.ms", "30000"},
               {"fetch.wait.max.ms", "50"}};
  for (const auto& [key, value] : settings) all[key] = value;
  handle_ = connect(RD_KAFKA_CONSUMER, conf, address, all);
  rd_kafka_poll_set_consumer(handle_.get());
  rd_kafka_topic_partition_list_t* list =
      rd_kafka_topic_partition_list_new(static_cast<int>(topics.size()));
  for (const std::string& topic : topics)
    rd_kafka_topic_partition_list_add(list, topic.c_str(), RD_KAFKA_PARTITION_UA);
  const auto error = rd_kafka_subscribe(handle_.get(), list);
  rd_kafka_topic_partition_list_destroy(list);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail("subscribe", error);
}

Member::~Member() {
  close();
}

void Member::close() {
  if (closed_) return;
  closed_ = true;
  rd_kafka_consumer_close(handle_.get());
}

void Member::rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions) {
  ++rebalances_;
  rd_kafka_t* handle = handle_.get();
  const bool cooperative = std::string_view(rd_kafka_rebalance_protocol(handle)) == "COOPERATIVE";
  Partitions named;
  add(named, *partitions);
  if (what == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    assigned_.merge(named);
    if (cooperative)
      rd_kafka_error_destroy(rd_kafka_incremental_assign(handle, partitions));
    else
      rd_kafka_assign(handle, partitions);
    return;
  }
  took_all_at_once_ |= named.size() > 1 && named.size() == assigned_.size();
  std::erase_if(assigned_, [&](const auto& partition) { return named.contains(partition); });
  if (cooperative)
    rd_kafka_error_destroy(rd_kafka_incremental_unassign(handle, partitions));
  else
    rd_kafka_assign(handle, nullptr);
}

void Member::poll(milliseconds wait) {
  rd_kafka_message_t* message = rd_kafka_consumer_poll(handle_.get(), to_int(wait));
  if (message == nullptr) return;
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
    records_.push_back(
        {.topic = rd_kafka_topic_name(message->rkt),
         .partition = message->partition,
         .value = std::string(static_cast<const char*>(message->payload), message->len),
         .offset = message->offset});
  }
  rd_kafka_message_destroy(message);
}

rd_kafka_resp_err_t Member::commit() {
  return rd_kafka_commit(handle_.get(), nullptr, 0);
}

std::string Member::id() const {
  char* id = rd_kafka_memberid(handle_.get());
  std::string text = id != nullptr ? id : "";
  rd_kafka_mem_free(handle_.get(), id);
  return text;
}

bool poll_until(const std::vector<Member*>& members, const std::function<bool()>& done) {
  const std::int64_t end = now_ms() + 3 * kPatience.count();
  while (!done()) {
    if (now_ms() > end) return false;
    for (Member* member : members) member->poll();
  }
  return true;
}

std::vector<std::int64_t> committed(const std::string& address, const std::string& group,
                                    const std::string& topic, int partitions) {
  const Handle handle =
      connect(RD_KAFKA_CONSUMER, rd_kafka_conf_new(), address, {{"group.id", group}});
  rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(partitions);
  for (int i = 0; i < partitions; ++i) rd_kafka_topic_partition_list_add(list, topic.c_str(), i);
  const auto error = rd_kafka_committed(handle.get(), list, to_int(kPatience));
  std::vector<std::int64_t> offsets;
  for (int i = 0; i < list->cnt; ++i)
    offsets.push_back(std::max<std::int64_t>(list->elems[i].offset, -1));
  rd_kafka_topic_partition_list_destroy(list);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail("committed", error);
  return offsets;
}

GroupInfo describe_group(const std::string& address, const std::string& group) {
  const Handle handle = connect(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), address, {});
  const struct rd_kafka_group_list* list = nullptr;
  const auto error = rd_kafka_list_groups(handle.get(), group.c_str(), &list, to_int(kPatience));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail("describe group", error);
  GroupInfo info;
  for (int i = 0; i < list->group_cnt; ++i) {
    const rd_kafka_group_info& found = list->groups[i];
    info.state = found.state;
    info.protocol = found.protocol;
    for (int m = 0; m < found.member_cnt; ++m)
      info.members.emplace_back(found.members[m].member_id);
  }
  rd_kafka_group_list_destroy(list);
  std::ranges::sort(info.members);
  return info;
}

}  // namespace kanal::e2e
