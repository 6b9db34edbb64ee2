// What Apache Kafka 4.4 answered and stored for each record set of produce_checks.tsv (sent to a
// real broker), and batches that Java's producer, librdkafka and the broker itself wrote.
#include "samples.hpp"

#include <gtest/gtest.h>

#include <charconv>
#include <fstream>
#include <map>
#include <set>

namespace kanal::records {
namespace {

using samples::records_of;

Buffer unhex(std::string_view hex) {
  Buffer out;
  if (hex == "-") return out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned value = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, value, 16);
    out.push_back(static_cast<std::byte>(value));
  }
  return out;
}

std::vector<std::string> split(const std::string& line, char by) {
  std::vector<std::string> out(1);
  for (const char c : line) {
    if (c == by)
      out.emplace_back();
    else
      out.back().push_back(c);
  }
  return out;
}

struct Case {
  std::string name, topic, record_errors;
  std::int16_t version;
  Timestamp now{0};
  Buffer record_set, stored;
  ErrorCode code;
  std::string message;  // "1", "0", or "-" where the version has no such field
};

std::vector<Case> cases() {
  std::vector<Case> out;
  std::ifstream file(std::string(KANAL_GOLDEN_DIR) + "/produce_checks.tsv");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const std::vector<std::string> f = split(line, '\t');
    out.push_back({f.at(0), f.at(1), f.at(7), static_cast<std::int16_t>(std::stoi(f.at(2))),
                   Timestamp(std::stoll(f.at(3))), unhex(f.at(4)), unhex(f.at(8)),
                   static_cast<ErrorCode>(std::stoi(f.at(5))), f.at(6)});
  }
  return out;
}

ProduceRules rules_of(const Case& test) {
  ProduceRules rules;
  rules.now = test.now;
  rules.produce_version = test.version;
  const std::string& topic = test.topic;
  const auto ends = [&topic](std::string_view end) { return topic.ends_with(end); };
  if (topic == "limits") rules.before_max_ms = 3'600'000, rules.after_max_ms = 600'000;
  if (topic.starts_with("append")) rules.log_append_time = true;
  if (topic.starts_with("compact")) rules.compacted = true;
  if (topic.starts_with("small")) rules.max_message_bytes = 1000;
  if (topic.starts_with("body-100")) rules.max_decompressed_bytes = 100;
  if (ends("-none")) rules.compression = Codec::kNone;
  if (ends("-gzip")) rules.compression = Codec::kGzip;
  if (ends("-snappy")) rules.compression = Codec::kSnappy;
  if (ends("-lz4")) rules.compression = Codec::kLz4;
  if (ends("-zstd")) rules.compression = Codec::kZstd;
  return rules;
}

/// Where we refuse on purpose what Kafka 4.4 stores or answers otherwise: such a batch stops the
/// consumers of its partition (Kafka skips a compressed record by its fields and never compares
/// them with the declared length).
const std::map<std::string, ErrorCode> kOnPurpose{
    {"record/length-lies-more/gzip", ErrorCode::INVALID_RECORD},
    {"record/length-lies-less/gzip", ErrorCode::INVALID_RECORD},
    {"record/length-huge/gzip", ErrorCode::INVALID_RECORD},
    {"record/body-empty/gzip", ErrorCode::INVALID_RECORD},
    {"recompress/length-lies/to-gzip/gzip", ErrorCode::INVALID_RECORD},
    {"record/length-6-bytes/none",
     ErrorCode::INVALID_RECORD},  // Kafka: an exception nobody catches, -1
    {"zstd/cut-frame-behind", ErrorCode::UNKNOWN_SERVER_ERROR},  // librdkafka cannot read it
};

/// The same header and the same records, though another library may have compressed them.
void expect_same_records(const Case& test, Bytes ours) {
  BatchHeader a = parse_header(ours).value();
  BatchHeader b = parse_header(test.stored).value();
  EXPECT_TRUE(verify_crc(ours)) << test.name;
  EXPECT_EQ(a.attributes, b.attributes) << test.name;
  EXPECT_EQ(a.last_offset_delta, b.last_offset_delta) << test.name;
  EXPECT_EQ(a.base_timestamp.value(), b.base_timestamp.value()) << test.name;
  EXPECT_EQ(a.max_timestamp.value(), b.max_timestamp.value()) << test.name;
  EXPECT_EQ(a.producer_id.value(), b.producer_id.value()) << test.name;
  EXPECT_EQ(a.producer_epoch.value(), b.producer_epoch.value()) << test.name;
  EXPECT_EQ(a.base_sequence, b.base_sequence) << test.name;
  EXPECT_EQ(a.record_count, b.record_count) << test.name;
  EXPECT_EQ(records_of(ours), records_of(test.stored)) << test.name;
}

void expect_stored(const Case& test, CheckedBatch& checked) {
  set_base_offset(checked.bytes, Offset(0));
  set_leader_epoch(checked.bytes, kNoLeaderEpoch);
  const Codec before = parse_header(test.record_set)->codec();
  const Codec after = parse_header(test.stored)->codec();
  EXPECT_EQ(checked.header.crc, load_be<std::uint32_t>(checked.bytes.data() + at::kCrc))
      << test.name;
  EXPECT_EQ(checked.header.max_timestamp.value(),
            load_be<std::int64_t>(checked.bytes.data() + at::kMaxTimestamp))
      << test.name;
  EXPECT_EQ(checked.header.size(), checked.bytes.size()) << test.name;
  if (before != after) return expect_same_records(test, checked.bytes);
  EXPECT_TRUE(std::ranges::equal(checked.bytes, test.stored)) << test.name;
}

TEST(GoldenProduce, AnswersAndStoresWhatKafkaDid) {
  Scratch scratch;  // one for all, as an I/O thread has
  std::set<std::string> seen;
  for (Case& test : cases()) {
    seen.insert(test.name);
    const ProduceRules rules = rules_of(test);
    Buffer sent = test.record_set;
    std::expected<CheckedBatch, Rejection> checked = check_produce(sent, rules, scratch);
    const ErrorCode code = checked ? ErrorCode::NONE : checked.error().code;
    if (const auto differs = kOnPurpose.find(test.name); differs != kOnPurpose.end()) {
      EXPECT_EQ(code, differs->second) << test.name;
      EXPECT_NE(code, test.code) << test.name << " is no exception";
      continue;
    }
    EXPECT_EQ(name(code), name(test.code))
        << test.name << ": " << (checked ? "" : checked.error().detail);
    if (code != test.code) continue;
    if (checked) {
      expect_stored(test, *checked);
      continue;
    }
    const Rejection& rejection = checked.error();
    std::string indices;
    for (const RecordError& error : rejection.record_errors) {
      indices += (indices.empty() ? "" : ",") + std::to_string(error.batch_index);
    }
    if (test.version >= 8) {
      EXPECT_EQ(indices.empty() ? "-" : indices, test.record_errors) << test.name;
      EXPECT_EQ(rejection.message.empty() ? "0" : "1", test.message) << test.name;
    }
    EXPECT_EQ(sent, test.record_set) << test.name << ": a rejected set stays as it was";
  }
  EXPECT_GT(seen.size(), 500U);
  for (const auto& [on_purpose, code] : kOnPurpose)
    EXPECT_TRUE(seen.contains(on_purpose)) << on_purpose;
}

std::vector<Buffer> stored_batches(const std::string& file) {
  std::vector<Buffer> out;
  std::ifstream lines(std::string(KANAL_GOLDEN_DIR) + "/batches/" + file + ".hex");
  for (std::string line; std::getline(lines, line);) out.push_back(unhex(line));
  return out;
}

TEST(GoldenBatches, OfEveryClientAndCodecReadBack) {
  for (const std::string writer : {"java", "rdk", "broker"}) {
    for (const std::string codec : {"none", "gzip", "snappy", "lz4", "zstd"}) {
      const std::string file =
          writer + "-" + (writer == "broker" && codec == "none" ? "uncompressed" : codec);
      const std::vector<Buffer> batches = stored_batches(file);
      ASSERT_EQ(batches.size(), 1U) << file;
      const BatchHeader header = parse_header(batches[0]).value();
      EXPECT_EQ(name(header.codec()), codec) << file;
      EXPECT_TRUE(verify_crc(batches[0])) << file;
      const std::vector<samples::PlainRecord> records = records_of(batches[0]);
      ASSERT_EQ(records.size(), 8U) << file;
      for (int i = 0; i < 8; ++i) {
        const samples::PlainRecord& record = records[static_cast<std::size_t>(i)];
        EXPECT_EQ(record.offset_delta, i) << file;
        EXPECT_EQ(record.key, "key" + std::to_string(i + 1)) << file;
        EXPECT_EQ(record.value, "value number " + std::to_string(i + 1) +
                                    " of the golden batch, golden batch, golden batch")
            << file;
        EXPECT_EQ(record.headers.size(), writer == "java" ? 0U : 2U) << file;
      }
    }
  }
}

TEST(GoldenBatches, AreAcceptedAsProducedAndCompressedAnewForEveryCodec) {
  Scratch scratch;
  for (const std::string file : {"java-none", "java-gzip", "java-snappy", "java-lz4", "java-zstd",
                                 "rdk-none", "rdk-gzip", "rdk-snappy", "rdk-lz4", "rdk-zstd"}) {
    const Buffer original = stored_batches(file).at(0);
    for (const Codec target : samples::kCodecs) {
      Buffer sent = original;
      ProduceRules rules;
      rules.now = parse_header(sent)->max_timestamp;
      rules.compression = target;
      const std::expected<CheckedBatch, Rejection> checked = check_produce(sent, rules, scratch);
      ASSERT_TRUE(checked) << file << " " << checked.error().detail;
      EXPECT_TRUE(verify_crc(checked->bytes));
      EXPECT_EQ(checked->header.codec(), target);
      EXPECT_EQ(records_of(checked->bytes), records_of(original)) << file;
    }
  }
}

TEST(GoldenBatches, MarkersAreByteForByteKafkas) {
  const std::vector<Buffer> batches = stored_batches("txn");
  int markers = 0;
  for (const Buffer& batch : batches) {
    const BatchHeader header = parse_header(batch).value();
    if (!header.is_control()) continue;
    ++markers;
    const Result<std::optional<Marker>> marker = parse_marker(batch);
    ASSERT_TRUE(marker && *marker);
    EXPECT_EQ((*marker)->type, ControlType::kCommit);
    const Buffer ours =
        build_marker(**marker, {header.producer_id, header.producer_epoch, header.max_timestamp,
                                header.base_offset, header.leader_epoch});
    EXPECT_EQ(ours, batch);
  }
  EXPECT_EQ(markers, 2);
}

TEST(GoldenBatches, AppendTimeIsTheTimeOfEveryRecord) {
  const Buffer batch = stored_batches("append").at(0);
  const BatchHeader header = parse_header(batch).value();
  EXPECT_TRUE(header.log_append_time());
  EXPECT_EQ(header.timestamp_of(-12345), header.max_timestamp);
}

}  // namespace
}  // namespace kanal::records
