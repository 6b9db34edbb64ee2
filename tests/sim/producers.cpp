// Producers. An idempotent one numbers its batches for each partition, sends a window of them down
// one connection and, as Kafka's clients do, sends again from the first that was not acknowledged;
// what it cannot finish it gives up together with its producer id. A plain one sends each batch
// once or, not knowing better, several times.
#include <algorithm>

#include "actors.hpp"
#include "client.hpp"
#include "kanal/records/build.hpp"
#include "kanal/wire/messages/init_producer_id.hpp"

namespace kanal::sim {
namespace {

using namespace std::chrono_literals;

constexpr int kAttempts = 40;

struct Batch {
  std::vector<RecordId> records;
  Buffer bytes;
  bool acknowledged = false;
  ErrorCode error = ErrorCode::NONE;
};

struct Lane {  // of one partition under one producer id
  std::uint32_t number = 0;
  std::int32_t next_sequence = 0;
};

class Producer {
 public:
  Producer(World& world, const std::string& name, bool idempotent)
      : world_(world),
        dice_(world.fork_dice()),
        link_{world, name, nullptr},
        idempotent_(idempotent) {}

  broker::Task<void> run() {
    while (world_.running()) {
      const auto longest = static_cast<int>(world_.profile().produce_pause / 1ms);
      const Duration pause = dice_.milliseconds(0, longest);
      co_await world_.sleep(pause);
      const auto topic = world_.topics().pick(dice_);
      if (!topic || !link_.up()) {
        co_await world_.sleep(50ms);
        continue;
      }
      if (idempotent_ && identity_.producer_id == kNoProducerId) {
        co_await get_identity();
        continue;
      }
      topic_ = *topic;
      partition_ = dice_.between(0, topic_.facts.partitions - 1);
      co_await send_window();
    }
  }

 private:
  [[nodiscard]] LogKey log() const { return {topic_.facts.id, partition_}; }

  broker::Task<void> get_identity() {
    wire::InitProducerIdRequest request;
    request.transactional_id.reset();
    request.transaction_timeout = 60s;
    const Ask how{5};
    const auto call = co_await ask<wire::InitProducerIdResponse>(link_, request, how);
    if (call == nullptr) co_return;
    if (call->response.error_code != ErrorCode::NONE) {
      if (!world_.troubled()) {
        world_.violate(
            fmt::format("InitProducerId is answered {}", name(call->response.error_code)));
      }
      co_await world_.sleep(100ms);
      co_return;
    }
    world_.check_producer_id(call->response.producer_id);
    identity_ = call->response;
    lanes_.clear();
    power_cuts_ = world_.power_cuts();
  }

  Lane& lane() {
    const auto [found, made] = lanes_.try_emplace(log());
    if (made)
      found->second.number = world_.records().new_lane(log(), {idempotent_, topic_.facts.keyed});
    return found->second;
  }

  Batch make_batch() {
    Lane& to = lane();
    Batch batch;
    records::BatchOptions options;
    if (idempotent_) {
      options.producer_id = identity_.producer_id;
      options.producer_epoch = identity_.producer_epoch;
      options.base_sequence = to.next_sequence;
    }
    if (dice_.one_in(20)) options.codec = static_cast<records::Codec>(dice_.between(1, 4));
    records::BatchBuilder builder(options);
    const int count = dice_.between(1, 4);
    for (int i = 0; i < count; ++i) {
      batch.records.push_back(world_.records().new_record(to.number));
      add_record(builder, batch.records.back());
    }
    to.next_sequence += count;
    batch.bytes = builder.build(deflater_).value();
    return batch;
  }

  void add_record(records::BatchBuilder& builder, RecordId id) {
    std::array<std::byte, 8> head;
    store_be(head.data(), static_cast<std::int64_t>(id));
    const std::string key = key_text(id);
    const records::RecordHeader header{as_bytes(std::string_view("id")), Bytes(head)};
    Buffer value;
    append_value(value, id);
    records::NewRecord record{world_.clock().wall(), std::nullopt, Bytes(value), {}};
    if (topic_.facts.keyed) record.key = as_bytes(key);
    if (topic_.facts.keyed && is_tombstone(id)) {
      record.value.reset();
      record.headers = {&header, 1};
    }
    builder.add(record);
  }

  broker::Task<void> send_window() {
    window_.clear();
    const int size = idempotent_ ? dice_.between(1, 5) : 1;
    for (int i = 0; i < size; ++i) window_.push_back(std::make_shared<Batch>(make_batch()));
    for (int attempt = 0; attempt < kAttempts && world_.running(); ++attempt) {
      if (!link_.up()) {
        co_await world_.sleep(100ms);
        continue;
      }
      co_await send_once();
      const auto first =
          std::ranges::find_if(window_, [](const auto& batch) { return !batch->acknowledged; });
      if (first == window_.end()) co_return;
      if (!idempotent_ && dice_.percent(50)) co_return;  // nobody knows what became of it
      if (!worth_retrying((*first)->error)) break;
      const Duration backoff = dice_.milliseconds(10, 400);
      co_await world_.sleep(backoff);
    }
    // Given up: what comes after it under this id would be out of order.
    if (idempotent_) identity_.producer_id = kNoProducerId;
  }

  broker::Task<void> send_once() {
    std::vector<std::shared_ptr<Pending<wire::ProduceResponse>>> calls;
    const auto certain = world_.topics().certain(topic_.facts);
    for (const auto& batch : window_) {
      if (batch->acknowledged || link_.connection->closed()) continue;
      batch->error = ErrorCode::NETWORK_EXCEPTION;
      calls.push_back(send_batch(batch, certain));
    }
    for (const auto& call : calls) co_await answered(*call);
  }

  std::shared_ptr<Pending<wire::ProduceResponse>> send_batch(const std::shared_ptr<Batch>& batch,
                                                             std::optional<std::uint64_t> certain) {
    const bool by_name = topic_.eternal && dice_.percent(50);
    wire::ProduceRequest request;
    request.acks = static_cast<std::int16_t>(dice_.percent(80) ? -1 : 1);
    request.timeout = 30s;
    auto& topic = request.topic_data.emplace_back();
    if (by_name)
      topic.name = topic_.facts.name;
    else
      topic.topic_id = topic_.facts.id;
    topic.partition_data.push_back({PartitionIndex(partition_), MutableBytes(batch->bytes)});
    world_.records().sending(batch->records, batch->bytes.size());
    const Ask how{static_cast<std::int16_t>(by_name ? dice_.between(7, 12) : 13)};
    auto watch = [this, facts = topic_.facts, key = log(), certain, batch,
                  connection = std::weak_ptr(link_.connection)](wire::ProduceResponse& response) {
      const auto& answer = response.responses.at(0).partition_responses.at(0);
      batch->error = answer.error_code;
      if (answer.error_code != ErrorCode::NONE) {
        world_.trace("produce to {}~{} by {}: {} records={:x}+{}", facts.name, key.second,
                     link_.client_id, name(answer.error_code), batch->records.front(),
                     batch->records.size());
        // Its wait was cut short: the connection is gone, the broker stops or stood still.
        const auto open = connection.lock();
        const bool cut =
            open == nullptr || open->closed() || world_.stopping() || world_.slow();
        if (answer.error_code != ErrorCode::REQUEST_TIMED_OUT || !cut)
          check_error(facts, answer.error_code, certain);
        return;
      }
      world_.records().acknowledged(key, answer.base_offset.value(), batch->records);
      batch->acknowledged = true;
    };
    if (const Buffer again = world_.tamper().doubled(batch->bytes); !again.empty()) {
      wire::ProduceRequest twice = request;
      Buffer copy = again;
      twice.topic_data[0].partition_data[0].records = MutableBytes(copy);
      (void)send<wire::ProduceResponse>(link_, twice, how);
    }
    return send<wire::ProduceResponse>(link_, request, how, std::move(watch));
  }

  void check_error(const TopicFacts& facts, ErrorCode code, std::optional<std::uint64_t> certain) {
    switch (code) {
      case ErrorCode::UNKNOWN_TOPIC_OR_PARTITION:
      case ErrorCode::UNKNOWN_TOPIC_ID:
        if (!certain || world_.topics().certain(facts) != certain) return;
        break;
      case ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER:
        // Right after an earlier batch that did not arrive, and after a power cut.
        if (idempotent_) return;
        break;
      case ErrorCode::KAFKA_STORAGE_ERROR:
      case ErrorCode::REQUEST_TIMED_OUT:
        if (world_.troubled()) return;
        break;
      default:
        break;
    }
    world_.violate(
        fmt::format("Produce to {}~{} is answered {}", facts.name, partition_, name(code)));
  }

  /// Whether the first batch that is not acknowledged may still be.
  bool worth_retrying(ErrorCode error) {
    switch (error) {
      case ErrorCode::UNKNOWN_TOPIC_OR_PARTITION:
      case ErrorCode::UNKNOWN_TOPIC_ID:
        return false;
      case ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER:
        // Everything before it was acknowledged: only a power cut takes that back. Where the first
        // batch ever failed to be written the second is taken as the first, as in Kafka.
        if (idempotent_ && power_cuts_ == world_.power_cuts() && !world_.troubled()) {
          world_.violate("the first batch of an idempotent window is out of order");
        }
        return false;
      default:
        return true;
    }
  }

  World& world_;
  Dice dice_;
  Link link_;
  const bool idempotent_;
  wire::InitProducerIdResponse identity_;
  std::map<LogKey, Lane> lanes_;
  Directory::Entry topic_;
  std::int32_t partition_ = 0;
  std::vector<std::shared_ptr<Batch>> window_;
  std::uint64_t power_cuts_ = 0;  // when the producer id was taken
  records::Deflater deflater_;
};

}  // namespace

broker::Task<void> produce(World& world, std::string name, bool idempotent) {
  const auto actor = world.keep<Producer>(name, idempotent);
  co_await actor->run();
}

}  // namespace kanal::sim
