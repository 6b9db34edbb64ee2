#include "disk_world.hpp"

#include <thread>

#include "../crash/raw_client.hpp"

namespace kanal::e2e {
namespace {

struct List {
  List(const std::string& topic, int partition, std::int64_t offset) {
    rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = offset;
  }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { rd_kafka_topic_partition_list_destroy(list); }
  rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
};

Handle group_client(const std::string& address, const std::string& group) {
  return connect(RD_KAFKA_CONSUMER, rd_kafka_conf_new(), address,
                 {{"group.id", group}, {"enable.auto.commit", "false"}});
}

}  // namespace

rd_kafka_resp_err_t DiskWorld::produce(const std::string& topic, std::size_t bytes, int partition) {
  Producer producer(broker_.address(), {{"acks", "all"}, {"message.send.max.retries", "0"}});
  return producer
      .deliver({.topic = topic, .partition = partition, .value = std::string(bytes, 'v')})
      .error;
}

bool DiskWorld::taken_before_long(const std::string& topic, int partition) {
  return before_long([&] {
    if (produce(topic, 100, partition) == RD_KAFKA_RESP_ERR_NO_ERROR) return true;
    std::this_thread::sleep_for(milliseconds(100));
    return false;
  });
}

std::vector<Record> DiskWorld::read(const std::string& topic, int partition, std::int64_t from) {
  Consumer consumer(broker_.address());
  consumer.assign({{topic, partition, from}});
  return consumer.read_to_end();
}

int DiskWorld::fetch_error(const std::string& topic, int partition) {
  return RawClient(broker_.address()).fetch_error(topic, partition, 0);
}

rd_kafka_resp_err_t DiskWorld::commit(const std::string& group, const std::string& topic,
                                      std::int64_t offset) {
  const Handle handle = group_client(broker_.address(), group);
  const List offsets(topic, 0, offset);
  return rd_kafka_commit(handle.get(), offsets.list, 0);
}

std::int64_t DiskWorld::committed(const std::string& group, const std::string& topic) {
  const Handle handle = group_client(broker_.address(), group);
  const List offsets(topic, 0, -1);
  const auto error = rd_kafka_committed(handle.get(), offsets.list, 10'000);
  return error == RD_KAFKA_RESP_ERR_NO_ERROR ? offsets.list->elems[0].offset : -2;
}

bool DiskWorld::commits_before_long(const std::string& group, const std::string& topic,
                                    std::int64_t offset) {
  return before_long([&] {
    if (commit(group, topic, offset) == RD_KAFKA_RESP_ERR_NO_ERROR) return true;
    std::this_thread::sleep_for(milliseconds(100));
    return false;
  });
}

}  // namespace kanal::e2e
