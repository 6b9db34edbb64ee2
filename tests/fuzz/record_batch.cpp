// One produced record set through the checks: nothing may crash, read out of bounds or leak, and
// what is accepted must read back whole. The first byte picks the topic's rules; the CRC is made
// right, or the fuzzer would stop there.
#include "kanal/records/build.hpp"
#include "kanal/records/lookup.hpp"
#include "kanal/records/record.hpp"
#include "kanal/records/validate.hpp"

#include <cstdlib>

namespace {

using namespace kanal;  // a fuzz target is a program of its own
using namespace kanal::records;

constexpr std::size_t kInflateLimit = 8 << 20;

ProduceRules rules_of(unsigned choice) {
  ProduceRules rules;
  rules.now = Timestamp(1'700'000'000'000);
  if ((choice & 0x07) < 5) rules.compression = static_cast<Codec>(choice & 0x07);
  rules.compacted = (choice & 0x08) != 0;
  rules.log_append_time = (choice & 0x10) != 0;
  if ((choice & 0x20) != 0) rules.before_max_ms = 1'000'000;
  rules.max_decompressed_bytes = (choice & 0x40) != 0 ? 100 : 4 << 20;
  rules.produce_version = (choice & 0x80) != 0 ? 6 : 11;
  return rules;
}

void require(bool holds) {
  if (!holds) std::abort();
}

void read_back(const CheckedBatch& checked, Scratch& scratch) {
  require(verify_crc(checked.bytes));
  const Result<BatchHeader> header = parse_header(checked.bytes);
  require(header.has_value() && header->size() == checked.bytes.size());
  Buffer inflated;
  const Result<void> done = inflate_all(scratch.inflater, header->codec(), payload(checked.bytes),
                                        kInflateLimit, inflated);
  if (!done) {
    require(done.error().code == ErrorCode::MESSAGE_TOO_LARGE);
    return;
  }
  std::size_t header_count = 0;
  const auto walked = walk(inflated, header->record_count, [&](const RecordView& record) {
    HeaderCursor headers(record);
    for (std::int32_t i = 0; i < record.header_count; ++i) require(headers.next().has_value());
    header_count += static_cast<std::size_t>(record.header_count);
    return true;
  });
  require(walked.has_value() && header_count <= inflated.size());
  require(find_max_timestamp(checked.bytes, Offset(0), scratch).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Scratch scratch;  // reused, as an I/O thread does
  if (size == 0) return 0;
  const auto* bytes = reinterpret_cast<const std::byte*>(data);
  Buffer record_set(bytes + 1, bytes + size);
  (void)parse_marker(record_set);
  (void)find_by_time(record_set, Timestamp(5), Offset(1), scratch);
  const std::expected<Bytes, Rejection> first = first_batch(record_set);
  if (first && first->size() >= kHeaderSize) seal(MutableBytes(record_set).first(first->size()));
  const ProduceRules rules = rules_of(data[0]);
  const std::expected<CheckedBatch, Rejection> checked = check_produce(record_set, rules, scratch);
  if (checked) read_back(*checked, scratch);
  return 0;
}
