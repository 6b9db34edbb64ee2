#include "client.hpp"

#include <array>
#include <stdexcept>

namespace kanal::e2e {
namespace {

Bytes bytes_of(const void* data, std::size_t size) {
  if (data == nullptr) return std::nullopt;
  return std::string(static_cast<const char*>(data), size);
}

Record record_of(const rd_kafka_message_t& message) {
  Record record{rd_kafka_topic_name(message.rkt),
                message.partition,
                bytes_of(message.key, message.key_len),
                bytes_of(message.payload, message.len),
                {},
                0,
                message.offset};
  record.timestamp = rd_kafka_message_timestamp(&message, &record.timestamp_type);
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return record;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  for (std::size_t i = 0; rd_kafka_header_get_all(headers, i, &name, &value, &size) == 0; ++i) {
    record.headers.emplace_back(name, bytes_of(value, size));
  }
  return record;
}

struct PartitionList {
  rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(1);
  PartitionList() = default;
  PartitionList(const PartitionList&) = delete;
  PartitionList& operator=(const PartitionList&) = delete;
  ~PartitionList() { rd_kafka_topic_partition_list_destroy(list); }
  void add(const std::string& topic, std::int32_t partition, std::int64_t offset) const {
    rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = offset;
  }
};

int to_int(milliseconds time) {
  return static_cast<int>(time.count());
}

}  // namespace

Handle connect(rd_kafka_type_t type, rd_kafka_conf_t* conf, const std::string& address,
               const Settings& settings) {
  std::array<char, 512> why{};
  const auto set = [&](const std::string& key, const std::string& value) {
    if (rd_kafka_conf_set(conf, key.c_str(), value.c_str(), why.data(), why.size()) !=
        RD_KAFKA_CONF_OK) {
      throw std::runtime_error(why.data());
    }
  };
  set("bootstrap.servers", address);
  set("broker.address.family", "v4");
  set("reconnect.backoff.ms", "10");
  set("reconnect.backoff.max.ms", "100");
  set("allow.auto.create.topics", "false");
  set("log_level", "0");  // brokers go away on purpose here
  for (const auto& [key, value] : settings) set(key, value);
  rd_kafka_t* handle = rd_kafka_new(type, conf, why.data(), why.size());
  if (handle == nullptr) throw std::runtime_error(why.data());
  return Handle(handle);
}

void fail(const std::string& what, rd_kafka_resp_err_t error) {
  throw std::runtime_error(what + ": " + rd_kafka_err2name(error));
}

std::int64_t now_ms() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Producer::Producer(const std::string& address, const Settings& settings) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_opaque(conf, this);
  rd_kafka_conf_set_dr_msg_cb(conf,
                              [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
                                static_cast<Producer*>(opaque)->delivered(*message);
                              });
  Settings all{{"linger.ms", "1"}, {"retry.backoff.ms", "20"}};
  for (const auto& [key, value] : settings) all[key] = value;
  handle_ = connect(RD_KAFKA_PRODUCER, conf, address, all);
}

Producer::~Producer() {
  rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

void Producer::delivered(const rd_kafka_message_t& message) {
  Delivery delivery{message.err, message.partition, message.offset};
  delivery.timestamp = rd_kafka_message_timestamp(&message, &delivery.timestamp_type);
  delivery.status = rd_kafka_message_status(&message);
  if (on_delivery) return on_delivery(reinterpret_cast<std::size_t>(message._private), delivery);
  deliveries_.push_back(delivery);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast"  // librdkafka's macros
#pragma GCC diagnostic ignored "-Wpedantic"
rd_kafka_resp_err_t Producer::send(const Record& record, std::size_t tag) {
  rd_kafka_headers_t* headers =
      record.headers.empty() ? nullptr : rd_kafka_headers_new(record.headers.size());
  for (const auto& [name, value] : record.headers) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()),
                        value ? value->data() : nullptr,
                        value ? static_cast<ssize_t>(value->size()) : 0);
  }
  const auto data = [](const Bytes& bytes) {
    return bytes ? const_cast<char*>(bytes->data()) : nullptr;
  };
  const auto size = [](const Bytes& bytes) { return bytes ? bytes->size() : 0; };
  void* const opaque = reinterpret_cast<void*>(tag);  // NOLINT(performance-no-int-to-ptr)
  for (;;) {
    const rd_kafka_resp_err_t error = rd_kafka_producev(
        handle_.get(), RD_KAFKA_V_TOPIC(record.topic.c_str()),
        RD_KAFKA_V_PARTITION(record.partition), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(data(record.key), size(record.key)),
        RD_KAFKA_V_VALUE(data(record.value), size(record.value)),
        RD_KAFKA_V_TIMESTAMP(record.timestamp), RD_KAFKA_V_OPAQUE(opaque),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      poll(milliseconds(10));
      continue;
    }
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR && headers != nullptr)
      rd_kafka_headers_destroy(headers);
    return error;
  }
}
#pragma GCC diagnostic pop

void Producer::poll(milliseconds wait) {
  rd_kafka_poll(handle_.get(), to_int(wait));
}

const std::vector<Delivery>& Producer::flush() {
  const auto error = rd_kafka_flush(handle_.get(), to_int(kPatience));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail("flush", error);
  return deliveries_;
}

Delivery Producer::deliver(const Record& record) {
  if (const auto error = send(record); error != RD_KAFKA_RESP_ERR_NO_ERROR) return {error};
  return flush().back();
}

Consumer::Consumer(const std::string& address, const Settings& settings) {
  Settings all{{"group.id", "unused"},           {"enable.auto.commit", "false"},
               {"enable.partition.eof", "true"}, {"auto.offset.reset", "error"},
               {"check.crcs", "true"},           {"fetch.error.backoff.ms", "20"},
               {"fetch.wait.max.ms", "100"}};
  for (const auto& [key, value] : settings) all[key] = value;
  handle_ = connect(RD_KAFKA_CONSUMER, rd_kafka_conf_new(), address, all);
  rd_kafka_poll_set_consumer(handle_.get());
}

Consumer::~Consumer() {
  rd_kafka_consumer_close(handle_.get());
}

void Consumer::assign(const std::vector<Position>& positions) {
  const PartitionList list;
  for (const Position& position : positions)
    list.add(position.topic, position.partition, position.offset);
  assigned_ = positions.size();
  ended_ = 0;
  const auto error = rd_kafka_assign(handle_.get(), list.list);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail("assign", error);
}

void Consumer::seek(const Position& position) {
  const PartitionList list;
  list.add(position.topic, position.partition, position.offset);
  ended_ = 0;
  rd_kafka_error_t* error = rd_kafka_seek_partitions(handle_.get(), list.list, to_int(kPatience));
  if (error != nullptr) {
    const auto code = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    fail("seek", code);
  }
}

std::optional<Record> Consumer::poll(milliseconds wait) {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  auto record = poll(wait, error);
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail("consume", error);
  return record;
}

std::optional<Record> Consumer::poll(milliseconds wait, rd_kafka_resp_err_t& error) {
  rd_kafka_message_t* message = rd_kafka_consumer_poll(handle_.get(), to_int(wait));
  if (message == nullptr) return std::nullopt;
  std::optional<Record> record;
  if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
    ++ended_;
  else if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR)
    record = record_of(*message);
  else if (message->err != RD_KAFKA_RESP_ERR__TRANSPORT &&
           message->err != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
    error = message->err;
  }
  rd_kafka_message_destroy(message);
  return record;
}

std::vector<Record> Consumer::read(std::size_t count) {
  std::vector<Record> records;
  const std::int64_t deadline = now_ms() + kPatience.count();
  while (records.size() < count) {
    if (auto record = poll(milliseconds(100)))
      records.push_back(std::move(*record));
    else if (now_ms() > deadline)
      throw std::runtime_error("only " + std::to_string(records.size()) + " records came");
  }
  return records;
}

std::vector<Record> Consumer::read_to_end() {
  std::vector<Record> records;
  const std::int64_t deadline = now_ms() + 3 * kPatience.count();
  while (ended_ < assigned_) {
    if (auto record = poll(milliseconds(100))) records.push_back(std::move(*record));
    if (now_ms() > deadline)
      throw std::runtime_error("no end after " + std::to_string(records.size()) + " records");
  }
  return records;
}

std::pair<std::int64_t, std::int64_t> Consumer::bounds(const std::string& topic,
                                                       std::int32_t partition) {
  std::int64_t low = -1, high = -1;
  const auto error = rd_kafka_query_watermark_offsets(handle_.get(), topic.c_str(), partition, &low,
                                                      &high, to_int(kPatience));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail("query_watermark_offsets", error);
  return {low, high};
}

std::int64_t Consumer::offset_for_time(const std::string& topic, std::int32_t partition,
                                       std::int64_t time) {
  const PartitionList list;
  list.add(topic, partition, time);
  const auto error = rd_kafka_offsets_for_times(handle_.get(), list.list, to_int(kPatience));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) fail("offsets_for_times", error);
  if (list.list->elems[0].err != RD_KAFKA_RESP_ERR_NO_ERROR)
    fail("offsets_for_times", list.list->elems[0].err);
  return list.list->elems[0].offset;
}

}  // namespace kanal::e2e
