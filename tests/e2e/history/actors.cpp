#include "actors.hpp"

#include <algorithm>
#include <stdexcept>

namespace kanal::e2e {
namespace {

constexpr milliseconds kShort{3'000};  // a broker that is gone must not hold up the others

Settings settings_for(const std::string& promise, bool one_at_a_time) {
  Settings settings{{"acks", "all"},
                    {"linger.ms", "1"},
                    {"batch.num.messages", "20"},
                    {"queue.buffering.max.messages", "300"},
                    {"retry.backoff.ms", "10"},
                    {"message.timeout.ms", "150000"}};
  if (promise == "idempotent") settings["enable.idempotence"] = "true";
  if (promise == "once") settings["message.send.max.retries"] = "0";
  if (promise == "repeating" || promise == "eventual" || one_at_a_time)
    settings["max.in.flight.requests.per.connection"] = "1";
  return settings;
}

std::string value_of(const std::string& who, std::int64_t number, std::size_t bytes) {
  std::string value = who + "/" + std::to_string(number) + "/";
  if (value.size() < bytes) value.resize(bytes, static_cast<char>('a' + number % 26));
  return value;
}

std::vector<Position> positions_of(const std::vector<TopicPlan>& topics) {
  std::vector<Position> positions;
  for (const TopicPlan& topic : topics)
    for (int i = 0; i < topic.partitions; ++i) positions.push_back({topic.name, i, 0});
  return positions;
}

Event read_event(Kind kind, const Record& record, const std::string& who) {
  Event event = parse_value(record.value.value_or(""));
  event.kind = kind;
  event.who = who;
  event.topic = record.topic;
  event.partition = record.partition;
  event.offset = record.offset;
  return event;
}

Answer answer_of(const Outcome& outcome) {
  if (outcome.ok()) return Answer::kOk;
  // An answer of the broker's that means that it was not done.
  const bool refused = outcome.code == RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS ||
                       outcome.code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;
  return refused ? Answer::kRefused : Answer::kUnknown;
}

struct List {
  List() = default;
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() { rd_kafka_topic_partition_list_destroy(list); }
  void add(const std::string& topic, int partition, std::int64_t offset = -1) const {
    rd_kafka_topic_partition_list_add(list, topic.c_str(), partition)->offset = offset;
  }
  rd_kafka_topic_partition_list_t* list = rd_kafka_topic_partition_list_new(8);
};

}  // namespace

Event parse_value(const std::string& value) {
  Event event;
  event.source = "?";
  const auto slash = value.find('/');
  const auto second = slash == std::string::npos ? slash : value.find('/', slash + 1);
  if (second == std::string::npos) return event;
  const std::string who = value.substr(0, slash);
  const std::int64_t number = std::strtoll(value.c_str() + slash + 1, nullptr, 10);
  if (value != value_of(who, number, value.size())) return event;
  event.source = who;
  event.number = number;
  return event;
}

Sender::Sender(const std::string& address, History& history, std::string who,
               const std::string& promise, std::vector<TopicPlan> topics, bool one_at_a_time)
    : history_(history),
      who_(std::move(who)),
      topics_(std::move(topics)),
      producer_(address, settings_for(promise, one_at_a_time)) {
  for (const TopicPlan& topic : topics_)
    for (int i = 0; i < topic.partitions; ++i) targets_.push_back({&topic, i});
  history_.add({.kind = Kind::kProducer, .who = who_, .source = promise});
  producer_.on_delivery = [this](std::size_t tag, const Delivery& delivery) {
    on_delivery(tag, delivery);
  };
}

void Sender::turn() {
  for (Target& target : targets_) {
    const std::int64_t number = target.next++;
    const std::string key = "k" + std::to_string(number % 13);
    sent_.push_back({.kind = Kind::kProduce,
                     .begin = history_.now(),
                     .who = who_,
                     .topic = target.plan->name,
                     .key = key,
                     .partition = target.partition,
                     .number = number});
    const Record record{.topic = target.plan->name,
                        .partition = target.partition,
                        .key = key,
                        .value = value_of(who_, number, target.plan->value_bytes)};
    const auto error = producer_.send(record, sent_.size() - 1);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
      on_delivery(sent_.size() - 1, {.error = error, .status = RD_KAFKA_MSG_STATUS_NOT_PERSISTED});
  }
  producer_.poll();
  pause(10);
}

void Sender::on_delivery(std::size_t tag, const Delivery& delivery) {
  Event event = sent_[tag];
  const auto plan = std::ranges::find(topics_, event.topic, &TopicPlan::name);
  event.answer = Answer::kUnknown;
  if (delivery.error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    event.answer = Answer::kOk;
    event.offset = delivery.offset;
    ++done_;
  } else if (delivery.status == RD_KAFKA_MSG_STATUS_NOT_PERSISTED && !plan->settles_late) {
    event.answer = Answer::kRefused;
  }
  history_.add(std::move(event));
}

void Sender::end() {
  for (const std::int64_t until = now_ms() + 3 * kPatience.count(); now_ms() < until;) {
    if (rd_kafka_outq_len(producer_.handle()) == 0) return;
    producer_.poll(milliseconds(100));
  }
}

std::string Sender::fatal() const {
  char why[256] = {};
  if (rd_kafka_fatal_error(producer_.handle(), why, sizeof why) == RD_KAFKA_RESP_ERR_NO_ERROR)
    return rd_kafka_outq_len(producer_.handle()) == 0 ? "" : "it has records left";
  return why;
}

Reader::Reader(const std::string& address, History& history, std::string who,
               const std::vector<TopicPlan>& topics)
    : history_(history),
      who_(std::move(who)),
      consumer_(address, {{"auto.offset.reset", "earliest"}}) {
  consumer_.assign(positions_of(topics));
}

void Reader::turn() {
  rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
  const auto record = consumer_.poll(milliseconds(20), error);
  if (record) history_.add(read_event(Kind::kRead, *record, who_)), ++done_;
}

GroupMember::GroupMember(const std::string& address, History& history, std::string who,
                         std::string group, const std::vector<std::string>& topics)
    : history_(history), who_(std::move(who)), group_(std::move(group)) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_opaque(conf, this);
  rd_kafka_conf_set_rebalance_cb(
      conf, [](rd_kafka_t*, rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions,
               void* self) { static_cast<GroupMember*>(self)->rebalance(what, partitions); });
  handle_ = connect(RD_KAFKA_CONSUMER, conf, address,
                    {{"group.id", group_},
                     {"enable.auto.commit", "false"},
                     {"auto.offset.reset", "earliest"},
                     {"session.timeout.ms", "6000"},
                     {"heartbeat.interval.ms", "500"},
                     {"fetch.error.backoff.ms", "20"},
                     {"fetch.wait.max.ms", "50"}});
  rd_kafka_poll_set_consumer(handle_.get());
  const List list;
  for (const std::string& topic : topics) list.add(topic, RD_KAFKA_PARTITION_UA);
  rd_kafka_subscribe(handle_.get(), list.list);
}

GroupMember::~GroupMember() {
  stop();
}

void GroupMember::end() {
  rd_kafka_consumer_close(handle_.get());
}

void GroupMember::rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* partitions) {
  owned_.clear();
  if (what != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
    rd_kafka_assign(handle_.get(), nullptr);
    return;
  }
  ++assignments_;
  const std::int64_t now = history_.now();
  for (int i = 0; i < partitions->cnt; ++i)
    owned_[{partitions->elems[i].topic, partitions->elems[i].partition}] = {.begin = now};
  rd_kafka_assign(handle_.get(), partitions);
}

void GroupMember::turn() {
  rd_kafka_message_t* message = rd_kafka_consumer_poll(handle_.get(), 20);
  if (message == nullptr) return;
  if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) take(*message);
  rd_kafka_message_destroy(message);
  if (since_commit_ >= 30) commit();
}

void GroupMember::take(const rd_kafka_message_t& message) {
  const Record record{.topic = rd_kafka_topic_name(message.rkt),
                      .partition = message.partition,
                      .value = std::string(static_cast<const char*>(message.payload), message.len),
                      .offset = message.offset};
  const auto owned = owned_.find({record.topic, record.partition});
  if (owned == owned_.end()) return;
  history_.add(read_event(Kind::kRead, record, who_ + "#" + std::to_string(assignments_)));
  if (owned->second.next < 0) {
    history_.add({.kind = Kind::kResumed,
                  .begin = owned->second.begin,
                  .who = group_,
                  .topic = record.topic,
                  .partition = record.partition,
                  .offset = record.offset});
  }
  owned->second.next = record.offset + 1;
  ++since_commit_;
  ++done_;
}

void GroupMember::commit() {
  since_commit_ = 0;
  const List list;
  Events events;
  for (auto& [key, owned] : owned_) {
    if (owned.next <= owned.committed) continue;
    list.add(key.first, key.second, owned.next);
    owned.committed = owned.next;
    events.push_back({.kind = Kind::kCommit,
                      .begin = history_.now(),
                      .who = group_,
                      .topic = key.first,
                      .partition = key.second,
                      .offset = owned.next});
  }
  if (events.empty()) return;
  const auto error = rd_kafka_commit(handle_.get(), list.list, 0);
  for (Event& event : events) {
    const auto* found =
        rd_kafka_topic_partition_list_find(list.list, event.topic.c_str(), event.partition);
    const bool fine = error == RD_KAFKA_RESP_ERR_NO_ERROR && found != nullptr &&
                      found->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    event.answer = fine ? Answer::kOk : Answer::kUnknown;
    history_.add(std::move(event));
  }
}

Onlooker::Onlooker(const std::string& address, History& history, std::vector<TopicPlan> topics,
                   std::string group, std::string altered)
    : history_(history),
      topics_(std::move(topics)),
      group_(std::move(group)),
      altered_(std::move(altered)),
      handle_(connect(RD_KAFKA_CONSUMER, rd_kafka_conf_new(), address, {{"group.id", group_}})),
      admin_(address) {}

void Onlooker::turn() {
  for (const TopicPlan& topic : topics_) {
    for (int i = 0; i < topic.partitions && !stopping(); ++i) {
      Event event{
          .kind = Kind::kBounds, .begin = history_.now(), .topic = topic.name, .partition = i};
      const auto error =
          rd_kafka_query_watermark_offsets(handle_.get(), topic.name.c_str(), i, &event.number,
                                           &event.offset, static_cast<int>(kShort.count()));
      if (error == RD_KAFKA_RESP_ERR_NO_ERROR) history_.add(std::move(event)), ++done_;
    }
  }
  look_at_offsets();
  try {
    const std::int64_t begin = history_.now();
    const auto listed = admin_.metadata().topics;
    const std::int64_t end = history_.now();
    for (const std::string& topic : history_.made(16)) {
      history_.add({.kind = Kind::kListed,
                    .begin = begin,
                    .end = end,
                    .topic = topic,
                    .number = listed.contains(topic) ? 1 : 0});
    }
    Event config{.kind = Kind::kConfig, .begin = history_.now(), .topic = altered_};
    config.number = std::stoll(admin_.describe(altered_, kShort).at("max.message.bytes"));
    history_.add(std::move(config));
  } catch (const std::exception&) {  // the broker is away
  }
  pause(20);
}

void Onlooker::look_at_offsets() {
  const List list;
  for (const TopicPlan& topic : topics_)
    for (int i = 0; i < topic.partitions; ++i) list.add(topic.name, i);
  const std::int64_t begin = history_.now();
  const auto error = rd_kafka_committed(handle_.get(), list.list, static_cast<int>(kShort.count()));
  if (error != RD_KAFKA_RESP_ERR_NO_ERROR) return;
  const std::int64_t end = history_.now();
  for (int i = 0; i < list.list->cnt; ++i) {
    const auto& found = list.list->elems[i];
    if (found.err != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
    history_.add({.kind = Kind::kCommitted,
                  .begin = begin,
                  .end = end,
                  .who = group_,
                  .topic = found.topic,
                  .partition = found.partition,
                  .offset = std::max<std::int64_t>(found.offset, -1)});
  }
}

Administrator::Administrator(const std::string& address, History& history,
                             std::vector<TopicPlan> trimmed, std::string altered, unsigned seed)
    : history_(history),
      trimmed_(std::move(trimmed)),
      altered_(std::move(altered)),
      dice_(seed),
      admin_(address),
      bounds_(address) {}

void Administrator::turn() {
  try {
    switch (dice_() % 3) {
      case 0:
        make_and_delete();
        break;
      case 1:
        alter();
        break;
      default:
        trim();
    }
    ++done_;
  } catch (const std::exception&) {  // the broker is away, or its disk
  }
  pause(30);
}

void Administrator::make_and_delete() {
  const std::string name = "churn-" + std::to_string(topics_++);
  Event made{.kind = Kind::kCreate, .begin = history_.now(), .topic = name};
  made.answer = answer_of(admin_.create({.name = name, .partitions = 2}, kShort));
  // A repeated request finds what the first one made.
  if (made.answer == Answer::kRefused) made.answer = Answer::kUnknown;
  history_.add(std::move(made));
  if (dice_() % 2 == 0) return;
  Event gone{.kind = Kind::kDelete, .begin = history_.now(), .topic = name};
  gone.answer = answer_of(admin_.remove(name, kShort));
  if (gone.answer == Answer::kRefused) gone.answer = Answer::kUnknown;
  history_.add(std::move(gone));
}

void Administrator::alter() {
  Event event{.kind = Kind::kAlter, .begin = history_.now(), .topic = altered_, .number = ++value_};
  event.answer =
      answer_of(admin_.alter(altered_, {{"max.message.bytes", std::to_string(value_)}}, kShort));
  history_.add(std::move(event));
}

void Administrator::trim() {
  const TopicPlan& topic = trimmed_[dice_() % trimmed_.size()];
  const int partition = static_cast<int>(dice_() % static_cast<unsigned>(topic.partitions));
  const auto [low, high] = bounds_.bounds(topic.name, partition);
  if (high - low < 200) return;
  Event event{
      .kind = Kind::kTrim, .begin = history_.now(), .topic = topic.name, .partition = partition};
  event.number = low + static_cast<std::int64_t>(dice_() % static_cast<unsigned>(high - low - 100));
  event.offset = admin_.delete_records(topic.name, partition, event.number, kShort);
  history_.add(std::move(event));
}

void look_at_everything(const std::string& address, History& history,
                        const std::vector<TopicPlan>& topics) {
  const std::int64_t begin = history.now();
  const auto listed = Admin(address).metadata().topics;
  for (const std::string& topic : history.made()) {
    history.add({.kind = Kind::kListed,
                 .begin = begin,
                 .topic = topic,
                 .number = listed.contains(topic) ? 1 : 0});
  }
  for (const TopicPlan& topic : topics) {
    for (int partition = 0; partition < topic.partitions; ++partition) {
      Consumer consumer(address, {{"auto.offset.reset", "earliest"}});
      for (int tries = 0;; ++tries) {
        Event event{.kind = Kind::kBounds,
                    .begin = history.now(),
                    .topic = topic.name,
                    .partition = partition};
        const auto bounds = consumer.bounds(topic.name, partition);
        event.number = bounds.first;
        event.offset = bounds.second;
        event.end = history.now();
        consumer.assign({{topic.name, partition, bounds.first}});
        const auto records = consumer.read_to_end();
        if (consumer.bounds(topic.name, partition) != bounds && tries < 50) continue;
        for (const Record& record : records) history.add(read_event(Kind::kFinal, record, "final"));
        history.add(std::move(event));
        break;
      }
    }
  }
}

}  // namespace kanal::e2e
