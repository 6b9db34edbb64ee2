// Bytes that Apache Kafka 4.4's own encoder wrote, against ours: every message as a whole, and the
// hot ones with named values, so that two fields of one type cannot have changed places.
#include "kanal/wire/headers.hpp"
#include "kanal/wire/messages/api_versions.hpp"
#include "kanal/wire/messages/fetch.hpp"
#include "kanal/wire/messages/metadata.hpp"
#include "kanal/wire/messages/produce.hpp"
#include "unit/wire/message_case.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

namespace kanal::wire {
namespace {

std::vector<std::vector<std::string>> read_table(const std::string& name) {
  std::ifstream file(std::string(KANAL_GOLDEN_DIR) + "/frames/" + name);
  EXPECT_TRUE(file) << name;
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream stream(line);
    auto& row = rows.emplace_back();
    for (std::string column; std::getline(stream, column, '\t');) row.push_back(column);
  }
  return rows;
}

Buffer from_hex(const std::string& text) {
  Buffer bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::string to_hex(Bytes bytes) {
  std::ostringstream text;
  for (const std::byte octet : bytes) {
    text << "0123456789abcdef"[std::to_integer<int>(octet) >> 4]
         << "0123456789abcdef"[std::to_integer<int>(octet) & 15];
  }
  return text.str();
}

TEST(GoldenFrames, WhatKafkasEncoderWroteIsReadAndWrittenTheSame) {
  std::map<std::string_view, const MessageCase*> cases;
  std::set<std::string> missing;
  for (const MessageCase& message : message_cases()) {
    cases[message.name] = &message;
    if (message.record_type >= 0) continue;  // not Kafka's
    for (int version = message.min_version; version <= message.max_version; ++version) {
      missing.insert(std::string(message.name) + " v" + std::to_string(version));
    }
  }
  for (const auto& row : read_table("all_messages.tsv")) {
    ASSERT_GE(row.size(), 3U);
    const std::string hex = row.size() > 3 ? row[3] : "";
    Buffer frame = from_hex(hex);
    const auto version = static_cast<std::int16_t>(std::stoi(row[1]));
    ASSERT_TRUE(cases.contains(row[0])) << row[0];
    const Result<Buffer> again = cases[row[0]]->recode(frame, version);
    ASSERT_TRUE(again.has_value()) << row[0] << " " << again.error().detail;
    EXPECT_EQ(to_hex(*again), hex) << row[0] << " v" << version << " " << row[2];
    missing.erase(row[0] + " v" + row[1]);
  }
  EXPECT_TRUE(missing.empty()) << "without a frame of Kafka's: " << *missing.begin();
}

Uuid topic_id() {
  Uuid id;
  for (std::size_t i = 0; i < id.bytes.size(); ++i) id.bytes[i] = static_cast<std::uint8_t>(i + 1);
  return id;
}

FetchResponse fetch_response(int version) {
  static const Buffer kRecords = from_hex("0102030405");
  FetchResponse response;
  response.throttle_time = std::chrono::milliseconds(12);
  response.session_id = 77;
  auto& topic = response.responses.emplace_back();
  topic.topic = "orders";
  topic.topic_id = topic_id();
  auto& full = topic.partitions.emplace_back();
  full.partition_index = PartitionIndex(3);
  full.high_watermark = Offset(100);
  full.last_stable_offset = Offset(90);
  full.log_start_offset = Offset(10);
  full.aborted_transactions.emplace().push_back(
      {.producer_id = ProducerId(7), .first_offset = Offset(80)});
  full.current_leader = {.leader_id = NodeId(1), .leader_epoch = LeaderEpoch(5)};
  full.records.inline_bytes = kRecords;
  auto& empty = topic.partitions.emplace_back();
  empty.partition_index = PartitionIndex(4);
  empty.error_code = ErrorCode::OFFSET_OUT_OF_RANGE;
  empty.high_watermark = Offset(-1);
  if (version >= 16) {
    response.node_endpoints.push_back(
        {.node_id = NodeId(1), .host = "broker", .port = 9092, .rack = std::nullopt});
  }
  return response;
}

FetchRequest fetch_request(int version) {
  FetchRequest request;
  request.cluster_id = "c";
  if (version >= 15) request.replica_state = {.replica_id = NodeId(2), .replica_epoch = 6};
  request.max_wait = std::chrono::milliseconds(500);
  request.min_bytes = 1;
  request.max_bytes = 52428800;
  request.isolation_level = 1;
  request.session_id = 8;
  request.session_epoch = 2;
  request.rack_id = "r1";
  auto& topic = request.topics.emplace_back();
  topic.topic = "orders";
  topic.topic_id = topic_id();
  auto& partition = topic.partitions.emplace_back();
  partition.partition = PartitionIndex(1);
  partition.current_leader_epoch = LeaderEpoch(3);
  partition.fetch_offset = Offset(42);
  partition.partition_max_bytes = 1048576;
  partition.replica_directory_id = topic_id();
  partition.high_watermark = Offset(41);
  auto& forgotten = request.forgotten_topics_data.emplace_back();
  forgotten.topic = "old";
  forgotten.topic_id = topic_id();
  forgotten.partitions = {PartitionIndex(5), PartitionIndex(6)};
  return request;
}

ProduceResponse produce_response() {
  ProduceResponse response;
  response.throttle_time = std::chrono::milliseconds(5);
  auto& topic = response.responses.emplace_back();
  topic.name = "orders";
  topic.topic_id = topic_id();
  auto& partition = topic.partition_responses.emplace_back();
  partition.index = PartitionIndex(2);
  partition.error_code = ErrorCode::INVALID_RECORD;
  partition.base_offset = Offset(-1);
  partition.log_start_offset = Offset(4);
  partition.record_errors.push_back({.batch_index = 6, .batch_index_error_message = "no key"});
  partition.error_message = "bad";
  partition.current_leader = {.leader_id = NodeId(1), .leader_epoch = LeaderEpoch(9)};
  return response;
}

ProduceRequest produce_request() {
  static Buffer records = from_hex("090807");
  ProduceRequest request;
  request.acks = -1;
  request.timeout = std::chrono::milliseconds(1500);
  auto& topic = request.topic_data.emplace_back();
  topic.name = "orders";
  topic.topic_id = topic_id();
  topic.partition_data.push_back({.index = PartitionIndex(1), .records = records});
  return request;
}

MetadataResponse metadata_response() {
  MetadataResponse response;
  response.brokers.push_back(
      {.node_id = NodeId(1), .host = "localhost", .port = 9092, .rack = std::nullopt});
  response.cluster_id = "cluster-1";
  response.controller_id = NodeId(1);
  auto& topic = response.topics.emplace_back();
  topic.name = "orders";
  topic.topic_id = topic_id();
  topic.topic_authorized_operations = 3576;
  auto& partition = topic.partitions.emplace_back();
  partition.leader_id = NodeId(1);
  partition.leader_epoch = LeaderEpoch(4);
  partition.replica_nodes = {NodeId(1)};
  partition.isr_nodes = {NodeId(1)};
  return response;
}

ApiVersionsResponse api_versions_response() {
  ApiVersionsResponse response;
  response.error_code = ErrorCode::UNSUPPORTED_VERSION;
  response.api_keys = {{.api_key = 0, .min_version = 0, .max_version = 13},
                       {.api_key = 18, .min_version = 0, .max_version = 5}};
  response.supported_features = {{.name = "group.version", .min_version = 1, .max_version = 1}};
  response.finalized_features_epoch = 3;
  response.finalized_features = {
      {.name = "group.version", .max_version_level = 1, .min_version_level = 1}};
  return response;
}

RequestHeader request_header() {
  RequestHeader header;
  header.request_api_key = 1;
  header.request_api_version = 12;
  header.correlation_id = 99;
  header.client_id = "kcat";
  return header;
}

TEST(GoldenFrames, NamedValuesLieWhereKafkasEncoderPutsThem) {
  const std::map<std::string, std::function<Buffer(std::int16_t)>> messages = {
      {"FetchResponse",
       [](std::int16_t version) { return encoded(version, fetch_response(version)); }},
      {"FetchRequest",
       [](std::int16_t version) { return encoded(version, fetch_request(version)); }},
      {"ProduceResponse",
       [](std::int16_t version) { return encoded(version, produce_response()); }},
      {"ProduceRequest", [](std::int16_t version) { return encoded(version, produce_request()); }},
      {"MetadataResponse",
       [](std::int16_t version) { return encoded(version, metadata_response()); }},
      {"ApiVersionsResponse",
       [](std::int16_t version) { return encoded(version, api_versions_response()); }},
      {"RequestHeader", [](std::int16_t version) { return encoded(version, request_header()); }},
  };
  std::set<std::string> seen;
  for (const auto& row : read_table("named_values.tsv")) {
    ASSERT_EQ(row.size(), 3U);
    EXPECT_EQ(to_hex(messages.at(row[0])(static_cast<std::int16_t>(std::stoi(row[1])))), row[2])
        << row[0] << " v" << row[1];
    seen.insert(row[0]);
  }
  EXPECT_EQ(seen.size(), messages.size());
}

TEST(GoldenFrames, ATaggedFieldBelowItsVersionIsAnError) {
  FetchRequest request;
  request.topics.emplace_back().partitions.emplace_back();
  Buffer frame = encoded(std::int16_t{17}, request);
  // The partition's tags, the topic's, no forgotten topics, an empty rack id, the request's tags:
  // 00 00 01 01 00.
  const Buffer high_watermark = from_hex("0101080000000000000005");  // one tag: 1, 8 bytes
  frame.erase(frame.end() - 5);
  frame.insert(frame.end() - 4, high_watermark.begin(), high_watermark.end());
  Reader old_version(frame);
  FetchRequest read;
  const Result<void> refused = decode(old_version, 17, read);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().detail.find("topics[0].partitions[0].high_watermark"),
            std::string::npos)
      << refused.error().detail;
  Reader new_version(frame);
  ASSERT_TRUE(decode(new_version, 18, read).has_value());
  EXPECT_EQ(read.topics[0].partitions[0].high_watermark, Offset(5));
}

TEST(GoldenFrames, ErrorsSayWhere) {
  ProduceRequest request = produce_request();
  Buffer frame = encoded(std::int16_t{9}, request);
  frame.resize(frame.size() - 5);
  Reader reader(frame);
  ProduceRequest read;
  const Result<void> result = decode(reader, 9, read);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().code, ErrorCode::INVALID_REQUEST);
  EXPECT_EQ(result.error().detail,
            "Produce request v9: topic_data[0].partition_data[0].records at byte 21: 3 bytes "
            "announced, only 1 left");
}

TEST(GoldenFrames, RecordsOfARequestCanBeChangedInPlace) {
  Buffer frame = encoded(std::int16_t{9}, produce_request());
  Reader reader(frame);
  ProduceRequest read;
  ASSERT_TRUE(decode(reader, 9, read).has_value());
  const MutableBytes records = read.topic_data[0].partition_data[0].records.value();
  records[0] = std::byte{0x77};
  EXPECT_EQ(std::ranges::count(frame, std::byte{0x77}), 1);
}

}  // namespace
}  // namespace kanal::wire
