#include "one_broker.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace kanal::handlers::testing {

OneBroker::OneBroker() {
  // Far ahead of the machine's own clock, whose timers therefore never fire.
  const auto wall = clock.wall().value();
  clock.pass(std::chrono::hours(1'000'000));
  clock.set(wall);
  peer.listener = &listener;
  config = coordinator::make_broker_config({}, {}).value();
  start();
}

OneBroker::~OneBroker() {
  EXPECT_TRUE(broker->stop({}));
  broker.reset();
}

void OneBroker::start() {
  broker::StartReport report;
  auto started = broker::Broker::start(
      {*files, helpers, clock, random},
      {.data_dir = directory,
       .kafka = config,
       .max_open_log_files = 64,
       .journal_bytes = 256 << 10},
      report);
  CHECK(started.has_value(), "the broker starts");
  broker = std::move(*started);
  broker->attach(io);
}

void OneBroker::restart() {
  EXPECT_TRUE(broker->stop({}));
  broker.reset();
  start();
}

void OneBroker::run(broker::Task<void> task) {
  boost::asio::co_spawn(io.context(), std::move(task), boost::asio::detached);
  while (io.poll()) {
  }
}

void OneBroker::create(std::string_view topic, std::int32_t partitions,
                       std::vector<coordinator::ConfigSetting> configs) {
  coordinator::CreateTopic command;
  command.name = std::string(topic);
  command.partitions = partitions;
  command.configs = std::move(configs);
  command.fresh_id = fresh_uuid(random);
  command.created = clock.wall();
  broker::Context asking = context(19, 7);
  std::vector<coordinator::CatalogCommand> commands;
  commands.emplace_back(std::move(command));
  const auto replies = await(broker->change_catalog(asking, std::move(commands)));
  ASSERT_EQ(replies.size(), 1U);
  ASSERT_TRUE(replies[0]) << replies[0].error().detail;
}

void OneBroker::append(std::string_view topic, const log::test::BatchSpec& spec,
                       std::int32_t partition) {
  const auto found = broker->topics()->find(topic);
  ASSERT_NE(found, nullptr) << topic;
  Buffer bytes = log::test::make_batch(spec);
  records::CheckedBatch batch;
  batch.bytes = bytes;
  batch.header = records::parse_header(bytes).value();
  const auto appended = broker::Broker::Together(*broker).append(found->partition(PartitionIndex(partition)), batch);
  ASSERT_TRUE(appended) << appended.error().detail;
}

}  // namespace kanal::handlers::testing
