// One actor a topic: it is the only one that changes it, so that what is acknowledged is certain.
#include "actors.hpp"
#include "client.hpp"
#include "kanal/wire/messages/create_partitions.hpp"
#include "kanal/wire/messages/create_topics.hpp"
#include "kanal/wire/messages/delete_records.hpp"
#include "kanal/wire/messages/delete_topics.hpp"
#include "kanal/wire/messages/incremental_alter_configs.hpp"
#include "kanal/wire/messages/metadata.hpp"

namespace kanal::sim {
namespace {

using namespace std::chrono_literals;
using State = Directory::State;

class TopicActor {
 public:
  TopicActor(World& world, const std::string& name)
      : world_(world),
        dice_(world.fork_dice()),
        link_{world, "admin-" + name, nullptr},
        name_(name) {}

  broker::Task<void> run() {
    while (world_.running()) {
      const Duration pause = entry().state == State::kPresent ? dice_.milliseconds(100, 20'000)
                                                              : dice_.milliseconds(0, 1'000);
      co_await world_.sleep(pause);
      if (!world_.running() || !link_.up()) continue;
      if (entry().state == State::kUnsure) {
        if (last_change_.expired()) co_await look();
      } else if (entry().state == State::kAbsent) {
        co_await make();
      } else {
        const int what = dice_.between(0, 9);
        if (what < 2)
          co_await look();
        else if (what < 3)
          co_await alter();
        else if (what < 5)
          co_await grow();
        else if (what < 8 && entry().eternal)
          co_await trim();
        else if (!entry().eternal)
          co_await remove();
      }
    }
    while (!world_.aborting() && entry().state == State::kUnsure) {  // for the audit
      co_await world_.sleep(100ms);
      if (last_change_.expired() && link_.up()) co_await look();
    }
  }

 private:
  [[nodiscard]] const Directory::Entry& entry() const { return world_.topics().at(name_); }

  void become(State state, const TopicFacts& facts) {
    world_.topics().set(name_, state, facts);
    if (state != State::kPresent) return;
    Policies& policies = world_.records().policies(facts.id);
    if (policies.empty()) policies.ask(facts.policy);
    for (std::int32_t i = 0; i < facts.partitions; ++i) {
      world_.records().open({facts.id, i}, facts.acks_after_sync);
    }
  }

  /// Until the broker is done with it, its outcome is not known, even if the connection broke.
  template <class Response, class Request>
  broker::Task<void> change(const Request& request, Ask how, std::function<void(Response&)> watch) {
    auto call = send<Response>(link_, request, how, std::move(watch));
    last_change_ = call;
    co_await answered(*call);
  }

  void unexpected(const char* what, ErrorCode code) {
    if (world_.troubled() && code == ErrorCode::KAFKA_STORAGE_ERROR) return;
    world_.violate(fmt::format("{} of {} is answered {}", what, name_, name(code)));
  }

  broker::Task<void> make() {
    TopicFacts facts;
    facts.name = name_;
    facts.partitions = dice_.between(1, 4);
    facts.acks_after_sync = dice_.percent(world_.profile().synced_percent);
    wire::CreateTopicsRequest request;
    auto& topic = request.topics.emplace_back();
    topic.name = name_;
    topic.num_partitions = facts.partitions;
    topic.replication_factor = 1;
    if (facts.acks_after_sync) topic.configs.push_back({"flush.messages", "1"});
    std::vector<std::pair<std::string, std::string>> configs;
    if (dice_.percent(world_.profile().cleaned_percent)) {
      facts.keyed = dice_.percent(world_.profile().keyed_percent);
      facts.policy = roll_policy(dice_, facts.keyed);
      configs = configs_of(world_.tamper().altered(facts.policy, facts.keyed));
    } else if (dice_.percent(50)) {
      configs.emplace_back("segment.ms", "2000");
    }
    for (const auto& [name, value] : configs) topic.configs.push_back({name, value});
    become(State::kUnsure, facts);
    const Ask how{7};
    const std::function<void(wire::CreateTopicsResponse&)> seen =
        [this, facts](wire::CreateTopicsResponse& response) mutable {
          const auto& answer = response.topics.at(0);
          if (answer.error_code == ErrorCode::NONE) {
            facts.id = answer.topic_id;
            become(State::kPresent, facts);
          } else {
            unexpected("making", answer.error_code);
          }
        };
    co_await change<wire::CreateTopicsResponse>(request, how, seen);
  }

  broker::Task<void> remove() {
    const TopicFacts before = entry().facts;
    become(State::kUnsure, before);
    wire::DeleteTopicsRequest request;
    request.timeout = 30s;
    auto& topic = request.topics.emplace_back();
    if (dice_.percent(50))
      topic.topic_id = before.id;
    else
      topic.name = before.name;
    const Ask how{6};
    const std::function<void(wire::DeleteTopicsResponse&)> seen =
        [this](wire::DeleteTopicsResponse& response) {
          const ErrorCode code = response.responses.at(0).error_code;
          if (code == ErrorCode::NONE)
            become(State::kAbsent, {});
          else
            unexpected("deleting", code);
        };
    co_await change<wire::DeleteTopicsResponse>(request, how, seen);
  }

  /// Another policy, live. Until the broker has answered both may be in force.
  broker::Task<void> alter() {
    const TopicFacts facts = entry().facts;
    if (world_.profile().cleaned_percent == 0 || !last_change_.expired()) co_return;
    const Policy policy = roll_policy(dice_, facts.keyed);
    world_.records().policies(facts.id).ask(policy);
    wire::IncrementalAlterConfigsRequest request;
    auto& resource = request.resources.emplace_back();
    resource.resource_type = 2;
    resource.resource_name = name_;
    const auto configs = configs_of(world_.tamper().altered(policy, facts.keyed));
    for (const auto& [name, value] : configs) resource.configs.push_back({name, 0, value});
    const Ask how{1};
    const std::function<void(wire::IncrementalAlterConfigsResponse&)> seen =
        [this, id = facts.id](wire::IncrementalAlterConfigsResponse& response) {
          const ErrorCode code = response.responses.at(0).error_code;
          world_.trace("policy of {}: {}", name_, name(code));
          // A connection that broke leaves it under way, and the topic may be deleted before it.
          const bool stays = entry().state == State::kPresent && entry().facts.id == id;
          if (code == ErrorCode::NONE)
            world_.records().policies(id).settle(world_.records().now());
          else if (stays || code != ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
            unexpected("altering", code);
        };
    co_await change<wire::IncrementalAlterConfigsResponse>(request, how, seen);
  }

  broker::Task<void> grow() {
    TopicFacts facts = entry().facts;
    if (facts.partitions >= 6) co_return;
    become(State::kUnsure, facts);
    ++facts.partitions;
    wire::CreatePartitionsRequest request;
    request.timeout = 30s;
    auto& topic = request.topics.emplace_back();
    topic.name = name_;
    topic.count = facts.partitions;
    topic.assignments.reset();
    const Ask how{3};
    const std::function<void(wire::CreatePartitionsResponse&)> seen =
        [this, facts](wire::CreatePartitionsResponse& response) {
          const ErrorCode code = response.results.at(0).error_code;
          if (code == ErrorCode::NONE)
            become(State::kPresent, facts);
          else
            unexpected("growing", code);
        };
    co_await change<wire::CreatePartitionsResponse>(request, how, seen);
  }

  /// Metadata: settles what is unsure, and checks what is not.
  broker::Task<void> look() {
    wire::MetadataRequest request;
    request.allow_auto_topic_creation = false;
    request.topics.emplace();
    request.topics->emplace_back().name = name_;
    const Ask how{12};
    const std::function<void(wire::MetadataResponse&)> seen =
        [this, version = entry().version](wire::MetadataResponse& response) {
          if (response.topics.size() != 1) return world_.violate("Metadata names another topic");
          // Asked before a later change, it may be answered after it.
          if (entry().version == version) compare(response.topics.front());
        };
    co_await ask<wire::MetadataResponse>(link_, request, how, seen);
  }

  void compare(const wire::MetadataResponse::Topic& topic) {
    TopicFacts facts = entry().facts;
    const bool there = topic.error_code == ErrorCode::NONE;
    const auto partitions = static_cast<std::int32_t>(topic.partitions.size());
    switch (entry().state) {
      case State::kUnsure:
        facts.id = topic.topic_id;
        facts.partitions = partitions;
        return become(there ? State::kPresent : State::kAbsent, facts);
      case State::kAbsent:
        if (there) world_.violate("Metadata shows the deleted topic " + name_);
        return;
      case State::kPresent:
        if (!there || topic.topic_id != facts.id || partitions != facts.partitions)
          world_.violate("Metadata shows " + name_ + " otherwise than it is");
    }
  }

  broker::Task<void> trim() {
    const TopicFacts facts = entry().facts;
    const std::int32_t index = dice_.between(0, facts.partitions - 1);
    const LogKey log{facts.id, index};
    const RecordLedger::Range range = world_.records().range(log);
    if (range.end <= range.start) co_return;
    const std::int64_t to =
        range.start +
        static_cast<std::int64_t>(dice_.below(static_cast<std::uint64_t>(range.end - range.start)));
    world_.records().trimming(log, to);
    wire::DeleteRecordsRequest request;
    request.timeout = 30s;
    auto& topic = request.topics.emplace_back();
    topic.name = name_;
    topic.partitions.push_back({PartitionIndex(index), Offset(to)});
    const Ask how{2};
    const std::function<void(wire::DeleteRecordsResponse&)> seen =
        [this, log](wire::DeleteRecordsResponse& response) {
          const auto& answer = response.topics.at(0).partitions.at(0);
          if (answer.error_code == ErrorCode::NONE)
            world_.records().trimmed(log, answer.low_watermark.value());
          else if (answer.error_code == ErrorCode::POLICY_VIOLATION &&
                   world_.records().policies(log.first).ever_kept())
            return;  // only what deletes may be trimmed
          else if (answer.error_code != ErrorCode::OFFSET_OUT_OF_RANGE)  // after a power cut
            unexpected("trimming", answer.error_code);
        };
    co_await ask<wire::DeleteRecordsResponse>(link_, request, how, seen);
  }

  World& world_;
  Dice dice_;
  Link link_;
  const std::string name_;
  std::weak_ptr<Call> last_change_;
};

}  // namespace

broker::Task<void> change_topic(World& world, std::string name) {
  const auto actor = world.keep<TopicActor>(name);
  co_await actor->run();
}

}  // namespace kanal::sim
