// What the handlers' tests share: a whole Broker on files of its own, run on the test's thread (its
// helpers run at once, its clock is set by hand), and a request's way through a handler. One
// thread.
#pragma once

#include "kanal/broker/broker.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/scratch_directory.hpp"
#include "unit/log/world.hpp"

namespace kanal::handlers::testing {

class AtOnce final : public Executor {
 public:
  void post(std::move_only_function<void()> work) override {
    ++posted;
    work();
  }
  int posted = 0;
};
class Counting final : public Random {
 public:
  std::uint64_t next() override { return ++last_; }

 private:
  std::uint64_t last_ = 0x1234'5678;
};

class OneBroker : public ::testing::Test {
 protected:
  OneBroker();
  ~OneBroker() override;

  /// A clean stop and a new start on the same files.
  void restart();
  void create(std::string_view topic, std::int32_t partitions = 1,
              std::vector<coordinator::ConfigSetting> configs = {});
  void append(std::string_view topic, const log::test::BatchSpec& spec = {},
              std::int32_t partition = 0);

  /// Awaits `task` on the I/O thread and returns what it gave.
  template <class T>
  T await(broker::Task<T> task) {
    std::optional<T> result;
    run([](broker::Task<T> held, std::optional<T>& into) -> broker::Task<void> {
      into = co_await std::move(held);
    }(std::move(task), result));
    EXPECT_TRUE(result.has_value()) << "the handler has not answered";
    return std::move(*result);
  }
  void run(broker::Task<void> task);

  const kanal::test::ScratchDirectory scratch;
  const std::string& directory = scratch.root();
  log::test::HandClock clock;
  AtOnce helpers;
  Counting random;
  std::unique_ptr<FileSystem> files = make_system_file_system();
  broker::IoThread io{clock, 0};
  broker::Listener listener{"PLAINTEXT", "broker.example", 9092};
  broker::Peer peer;
  coordinator::BrokerConfig config;
  std::unique_ptr<broker::Broker> broker;

  broker::Context context(std::int16_t key, std::int16_t version) {
    return {.broker = *broker,
            .io = io,
            .peer = peer,
            .client_id = "test",
            .api_key = key,
            .api_version = version,
            .slices = {}};
  }

 private:
  void start();
};

}  // namespace kanal::handlers::testing
