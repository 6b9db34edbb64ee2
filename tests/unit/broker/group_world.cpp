#include "group_world.hpp"

#include "kanal/records/build.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace kanal::broker::test {
namespace {

/// A store whose memory outlives the broker that opens it.
class Lent final : public reserved::Store {
 public:
  explicit Lent(reserved::MemoryStore& store) : store_(store) {}
  Result<std::unique_ptr<reserved::Session>> open() override { return store_.open(); }
  Result<void> flush() override { return store_.flush(); }
  std::uint64_t journal_position() const override { return store_.journal_position(); }

 private:
  reserved::MemoryStore& store_;
};

}  // namespace

GroupWorld::GroupWorld() {
  peer.listener = &listener;
  peer.address = "127.0.0.1";
  config = coordinator::make_broker_config({}, {}).value();
  EXPECT_TRUE(files.create_directories("/data"));
  EXPECT_TRUE(files.sync_directory("/"));
  start();
}

GroupWorld::~GroupWorld() {
  stop();
}

void GroupWorld::start() {
  for (int i = 0; i < 2; ++i) threads.push_back(std::make_unique<IoThread>(clock, i));
  Foundations foundations{files, helpers, clock, random};
  foundations.open_store = [this](const std::string&) -> Result<std::unique_ptr<reserved::Store>> {
    return std::make_unique<Lent>(store);
  };
  StartReport report;
  const BrokerOptions options{.data_dir = "/data",
                              .kafka = config,
                              .max_open_log_files = 64,
                              .reserve_bytes = reserve,
                              .journal_bytes = 256 << 10};
  auto started = Broker::start(foundations, options, report);
  ASSERT_TRUE(started) << started.error().detail;
  broker = std::move(*started);
  for (const auto& io : threads) broker->attach(*io);
  tick_later();
  settle();
}

void GroupWorld::tick_later() {  // as the daemon does
  threads[0]->add_timer(clock.now() + 1s, [this] {
    broker->tick();
    tick_later();
  });
}

void GroupWorld::stop() {
  if (broker == nullptr) return;
  broker->release_parked();
  settle();
  for (const Asked& request : asked)
    EXPECT_TRUE(request.joined || request.synced) << "a parked request was not released";
  EXPECT_TRUE(broker->stop({}));
  helpers.forget();
  broker.reset();
  threads.clear();
}

void GroupWorld::restart_with(const std::map<std::string, std::string>& configs,
                              coordinator::NodeOptions node) {
  stop();
  coordinator::ConfigLayers layers;
  for (const auto& [name, value] : configs) layers.fixed[name] = value;
  config = coordinator::make_broker_config(std::move(layers), std::move(node)).value();
  start();
}

void GroupWorld::kill() {
  store.kill();
  helpers.forget();
  asked.clear();
  threads.clear();  // with the coroutines that were parked there
  broker.reset();
  files.clear_faults();
  start();
}

void GroupWorld::settle() {
  for (bool ran = true; ran;) {
    ran = false;
    // The one that ticks comes last: nobody may count on having been ticked.
    for (auto io = threads.rbegin(); io != threads.rend(); ++io) ran |= (*io)->poll();
    ran |= helpers.run_one();
  }
}

void GroupWorld::pass(Duration time) {
  const Time end = clock.now() + time;
  settle();
  for (;;) {
    Time next = end;
    for (const auto& io : threads) {
      if (const auto timer = io->next_timer()) next = std::min(next, *timer);
    }
    clock.advance_to(next);
    settle();
    if (clock.now() >= end) return;
  }
}

void GroupWorld::pass_first_rebalance() {
  // Once more than the delay, since somebody may have come meanwhile.
  pass(2 * std::chrono::milliseconds(config.group_initial_rebalance_delay_ms));
}

void GroupWorld::stand_still(Duration time) {
  clock.advance_to(clock.now() + time);
  settle();
}

void GroupWorld::run(Task<void> task, IoThread& io) {
  begin(std::move(task), io);
  settle();
}

void GroupWorld::begin(Task<void> task, IoThread& io) {
  boost::asio::co_spawn(io.context(), std::move(task), boost::asio::detached);
}

Uuid GroupWorld::create(std::string_view topic, std::int32_t partitions,
                        std::vector<coordinator::ConfigSetting> configs) {
  coordinator::CreateTopic command;
  command.name = std::string(topic);
  command.partitions = partitions;
  command.configs = std::move(configs);
  command.fresh_id = fresh_uuid(random);
  command.created = clock.wall();
  const Uuid id = command.fresh_id;
  change(std::move(command));
  return id;
}

void GroupWorld::remove(std::string_view topic) {
  change(coordinator::DeleteTopic{std::string(topic), {}});
}

void GroupWorld::configure(std::string_view topic, std::string_view name, std::string_view value) {
  coordinator::AlterTopicConfigs command;
  command.name = std::string(topic);
  command.changes.push_back(
      {std::string(name), coordinator::ConfigOperation::kSet, std::string(value)});
  change(std::move(command));
}

void GroupWorld::change(coordinator::CatalogCommand command) {
  Context context{
      .broker = *broker, .io = *threads[0], .peer = peer, .client_id = {}, .slices = {}};
  auto changing = [](Context& asking, coordinator::CatalogCommand what) -> Task<void> {
    std::vector<coordinator::CatalogCommand> commands;
    commands.push_back(std::move(what));
    const auto replies = co_await asking.broker.change_catalog(asking, std::move(commands));
    EXPECT_TRUE(replies.at(0)) << replies[0].error().detail;
  };
  run(changing(context, std::move(command)), *threads[0]);
}

std::shared_ptr<Partition> GroupWorld::partition(std::string_view topic, std::int32_t index) const {
  return broker->topics()->find(topic)->partition(PartitionIndex(index));
}

Result<log::AppendResult> GroupWorld::append(std::string_view topic, std::int32_t index,
                                             Buffer batch, Broker::Together* request) {
  records::CheckedBatch checked;
  checked.bytes = batch;
  checked.header = records::parse_header(batch).value();
  Broker::Together alone(*broker);
  return (request != nullptr ? *request : alone).append(partition(topic, index), checked);
}

Asked& GroupWorld::join(std::string_view group, const JoinOptions& options) {
  IoThread& io = *threads[asked.size() % threads.size()];
  Asked& request = asked.emplace_back(*broker, io, peer);
  request.group = std::string(group);
  request.member = options.member;
  request.instance = options.instance;
  wire::JoinGroupRequest& join = request.join_request;
  join.group_id = request.group;
  join.member_id = request.member;
  if (!options.instance.empty()) join.group_instance_id = request.instance;
  join.session_timeout = options.session;
  join.rebalance_timeout = options.rebalance;
  join.protocol_type = "consumer";
  join.protocols.push_back({request.protocol, {}});
  coordinator::JoinCommand command;
  command.request = &join;
  command.client_id = "client";
  command.client_host = "/127.0.0.1";
  command.fresh = fresh_uuid(random);
  command.needs_member_id = options.needs_member_id;
  auto asking = [](Asked& in, coordinator::JoinCommand what) -> Task<void> {
    in.joined = co_await in.context.broker.groups().join(in.context, what);
    in.member = in.joined->member_id;
  };
  run(asking(request, command), io);
  return request;
}

Asked& GroupWorld::sync(const Asked& member, std::vector<const Asked*> all) {
  IoThread& io = member.context.io;
  Asked& request = asked.emplace_back(*broker, io, peer);
  request.group = member.group;
  request.member = member.member;
  request.assignment = member.assignment.empty() ? "assignment" : member.assignment;
  wire::SyncGroupRequest& sync = request.sync_request;
  sync.group_id = request.group;
  sync.member_id = request.member;
  sync.generation_id = member.joined->generation_id;
  for (const Asked* other : all)
    sync.assignments.push_back({other->member, as_bytes(request.assignment)});
  auto asking = [](Asked& in) -> Task<void> {
    in.synced = co_await in.context.broker.groups().sync(in.context, in.sync_request);
  };
  run(asking(request), io);
  return request;
}

ErrorCode GroupWorld::heartbeat(const Asked& member) {
  wire::HeartbeatRequest request;
  request.group_id = member.group;
  request.member_id = member.member;
  request.generation_id = member.joined ? member.joined->generation_id : 0;
  const ErrorCode error = groups().heartbeat(request);
  settle();
  return error;
}

std::vector<Asked*> GroupWorld::stable(std::string_view group, std::size_t members) {
  std::vector<Asked*> all;
  for (std::size_t i = 0; i < members; ++i) all.push_back(&join(group));
  pass_first_rebalance();
  Asked* leader = nullptr;
  for (Asked* member : all) {
    EXPECT_TRUE(member->joined);
    if (!member->joined) return {};
    EXPECT_EQ(member->joined->error_code, ErrorCode::NONE);
    if (member->joined->leader == member->member) leader = member;
  }
  EXPECT_NE(leader, nullptr);
  if (leader == nullptr) return {};
  std::vector<const Asked*> others(all.begin(), all.end());
  std::vector<Asked*> synced;
  for (Asked* member : all) {
    if (member != leader) synced.push_back(&sync(*member, {}));
  }
  synced.push_back(&sync(*leader, others));
  for (const Asked* sync : synced) {
    EXPECT_TRUE(sync->synced);
    EXPECT_EQ(sync->synced->error_code, ErrorCode::NONE);
    EXPECT_EQ(as_text(sync->synced->assignment), "assignment");
  }
  return all;
}

ErrorCode GroupWorld::commit(std::string_view group, std::string_view topic, std::int64_t offset,
                             std::int32_t generation, std::string_view member) {
  const auto found = broker->topics()->find(topic);
  EXPECT_NE(found, nullptr);
  coordinator::CommitCommand command;
  command.generation = generation;
  command.member_id = member;
  command.offsets.push_back({.topic = topic,
                             .topic_id = found->id(),
                             .partition = PartitionIndex(0),
                             .offset = Offset(offset),
                             .metadata = ""});
  const auto errors = groups().commit(group, std::move(command));
  settle();
  return errors.partitions.at(0);
}

ErrorCode GroupWorld::commit_partition(std::string_view group, std::string_view topic,
                                       std::int32_t partition, std::int64_t offset,
                                       std::string_view metadata) {
  coordinator::CommitCommand command;
  command.generation = -1;
  command.offsets.push_back({.topic = topic,
                             .topic_id = broker->topics()->find(topic)->id(),
                             .partition = PartitionIndex(partition),
                             .offset = Offset(offset),
                             .metadata = metadata});
  const auto errors = groups().commit(group, std::move(command));
  settle();
  return errors.partitions.at(0);
}

void GroupWorld::produce(std::string_view topic, std::int32_t partition, int records) {
  const auto to = this->partition(topic, partition);
  records::BatchBuilder builder({});
  for (int i = 0; i < records; ++i) builder.add(clock.wall(), std::nullopt, Bytes{});
  records::Deflater deflater;
  Buffer bytes = builder.build(deflater).value();
  records::CheckedBatch batch;
  batch.header = records::parse_header(bytes).value();
  batch.bytes = bytes;
  AppendNews news;
  EXPECT_TRUE(to->append(batch, clock.wall(), news));
}

std::int64_t GroupWorld::committed(std::string_view group, std::string_view topic) {
  const auto found = broker->topics()->find(topic);
  std::int64_t offset = -1;
  const ErrorCode error = groups().visit(group, [&](const coordinator::Group& read) {
    const auto* entry = read.committed(topic, found->id(), PartitionIndex(0));
    if (entry != nullptr) offset = entry->offset.value();
  });
  EXPECT_TRUE(error == ErrorCode::NONE || error == ErrorCode::GROUP_ID_NOT_FOUND);
  return offset;
}

std::uint64_t GroupWorld::stored(std::string_view group) const {
  return store.records_in({reserved::Kind::kOffsets, std::string(group)});
}

}  // namespace kanal::broker::test
