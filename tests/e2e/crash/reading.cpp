#include "reading.hpp"

#include <gtest/gtest.h>

namespace kanal::e2e {
namespace {

std::vector<Position> from_the_start(const std::string& topic, std::size_t partitions) {
  std::vector<Position> positions;
  positions.reserve(partitions);
  for (std::size_t p = 0; p < partitions; ++p)
    positions.push_back({topic, static_cast<std::int32_t>(p), 0});
  return positions;
}

std::string at(std::int32_t partition, std::int64_t offset) {
  return "partition " + std::to_string(partition) + " offset " + std::to_string(offset);
}

/// What one partition shows of one load.
struct Shown {
  std::vector<std::string> mistakes;
  std::size_t next = 0;  // number after the largest seen
  std::size_t repeats = 0;
};

Shown look(const Load& load, std::int32_t partition, const std::vector<std::string>& records) {
  Shown shown;
  const Promise promise = load.options().promise;
  for (std::size_t offset = 0; offset < records.size(); ++offset) {
    const LoadNumber number = parse_load_value(records[offset]);
    if (number.id != load.options().id) continue;
    const std::string where = at(partition, static_cast<std::int64_t>(offset));
    if (number.partition != partition)
      shown.mistakes.push_back(where + " has a record of another partition");
    const bool again = number.n < shown.next;
    const bool gap = number.n > shown.next;
    if (again && promise != Promise::kAtLeastOnce) {
      shown.mistakes.push_back(where + ": " + std::to_string(number.n) + " again or out of order");
    }
    const bool overtaken = promise == Promise::kAtLeastOnce && load.options().may_be_refused;
    if (gap && promise != Promise::kAtMostOnce && !overtaken) {
      shown.mistakes.push_back(where + ": " + std::to_string(number.n) + " where " +
                               std::to_string(shown.next) + " comes next");
    }
    shown.repeats += again ? 1 : 0;
    shown.next = std::max(shown.next, number.n + 1);
  }
  return shown;
}

/// Every acknowledged record is where its report said.
void check_reports(const Load& load, std::int32_t partition,
                   const std::vector<std::string>& records, Shown& shown) {
  const auto& sent = load.sent()[static_cast<std::size_t>(partition)];
  for (std::size_t n = 0; n < sent.size(); ++n) {
    if (sent[n].error != RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (load.options().promise == Promise::kAtMostOnce) continue;
      shown.mistakes.push_back(std::to_string(n) + " failed: " + rd_kafka_err2name(sent[n].error));
    } else if (sent[n].offset >= 0) {
      const auto offset = static_cast<std::size_t>(sent[n].offset);
      if (offset >= records.size() ||
          records[offset] != load_value(load.options().id, partition, n)) {
        shown.mistakes.push_back(at(partition, sent[n].offset) + " was reported to hold " +
                                 std::to_string(n));
      }
    } else if (load.options().promise == Promise::kAtMostOnce) {
      shown.mistakes.push_back(std::to_string(n) + " was reported without an offset");
    }
  }
  if (load.options().promise != Promise::kAtMostOnce && shown.next != sent.size()) {
    shown.mistakes.push_back("ends with " + std::to_string(shown.next) + " of " +
                             std::to_string(sent.size()));
  }
}

}  // namespace

Content read_topic(const std::string& address, const std::string& topic, int partitions) {
  Consumer consumer(address);
  Content content(static_cast<std::size_t>(partitions));
  consumer.assign(from_the_start(topic, content.size()));
  for (Record& record : consumer.read_to_end()) {
    auto& records = content[static_cast<std::size_t>(record.partition)];
    if (record.offset != static_cast<std::int64_t>(records.size())) {
      ADD_FAILURE() << topic << " " << at(record.partition, record.offset) << " follows "
                    << records.size();
      return content;
    }
    if (parse_load_value(record.value.value_or("")).id < 0) {
      ADD_FAILURE() << topic << " " << at(record.partition, record.offset)
                    << " holds what nobody sent";
    }
    records.push_back(std::move(*record.value));
  }
  return content;
}

std::size_t expect_promise(const Load& load, const Content& content) {
  std::size_t repeats = 0;
  for (std::size_t p = 0; p < content.size(); ++p) {
    const auto partition = static_cast<std::int32_t>(p);
    Shown shown = look(load, partition, content[p]);
    check_reports(load, partition, content[p], shown);
    repeats += shown.repeats;
    if (shown.mistakes.empty()) continue;
    ADD_FAILURE() << "load " << load.options().id << " on " << load.options().topic << " " << p
                  << ": " << shown.mistakes.size()
                  << " mistakes, first: " << shown.mistakes.front();
  }
  return repeats;
}

Follower::Follower(const std::string& address, std::string topic, int partitions)
    : topic_(std::move(topic)),
      read_(static_cast<std::size_t>(partitions)),
      thread_([this, address] { run(address); }) {}

Follower::~Follower() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Follower::run(const std::string& address) {
  Consumer consumer(address);
  consumer.assign(from_the_start(topic_, read_.size()));
  while (!stopping_) {
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
    auto record = consumer.poll(milliseconds(50), error);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR) failures_.emplace_back(rd_kafka_err2name(error));
    if (!record) continue;
    auto& records = read_[static_cast<std::size_t>(record->partition)];
    if (record->offset != static_cast<std::int64_t>(records.size())) {
      failures_.push_back(at(record->partition, record->offset) + " follows " +
                          std::to_string(records.size()));
    }
    records.push_back(std::move(*record->value));
    ++count_;
  }
}

void Follower::finish(const Content& content) {
  std::size_t all = 0;
  for (const auto& records : content) all += records.size();
  const std::int64_t deadline = now_ms() + kPatience.count();
  while (count_ < all && now_ms() < deadline) std::this_thread::sleep_for(milliseconds(5));
  stopping_ = true;
  thread_.join();
  for (const std::string& failure : failures_)
    ADD_FAILURE() << "reader of " << topic_ << ": " << failure;
  EXPECT_EQ(count_, all);
  EXPECT_TRUE(read_ == content) << "the reader of " << topic_
                                << " saw something else than is there";
}

}  // namespace kanal::e2e
