// What compaction does to one stored batch: names its keys by a digest, and writes it again with
// fewer records. Pure functions over a whole batch's bytes; compressed ones are inflated in chunks,
// so that memory stays bounded by what is stored, not by what it inflates to. Any thread with its
// own Scratch. A rewritten batch keeps base and last offset, producer, sequence, leader epoch,
// codec and timestamp type (KIP-98); the delete horizon takes the base timestamp's place (KIP-534).
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/base/ids.hpp"
#include "kanal/records/batch.hpp"
#include "kanal/records/compress.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace kanal::records {

/// Of a key: two keys with the same one count as equal, so it depends on a secret that no client
/// knows (SipHash-2-4, 128 bits).
struct KeyDigest {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const KeyDigest&, const KeyDigest&) = default;
};
struct DigestSecret {
  std::uint64_t low = 0, high = 0;
};
[[nodiscard]] KeyDigest digest(Bytes key, const DigestSecret& secret) noexcept;

struct KeyedRecord {
  Offset offset;
  Timestamp timestamp;
  bool has_key = false;
  bool has_value = false;  // else a tombstone
  KeyDigest key;
};
/// Returns whether to go on.
using KeyVisitor = std::function<bool(const KeyedRecord&)>;

/// All records of the batch. CORRUPT_MESSAGE where it is cut, INVALID_RECORD where a record is
/// malformed, the codec's error where it does not inflate.
[[nodiscard]] Result<void> visit_keys(Bytes batch, const DigestSecret& secret, Scratch& scratch,
                                      const KeyVisitor& visit);

/// The batch with those records whose place in `keep` is set; at least one is. `delete_horizon` is
/// what it is to carry.
[[nodiscard]] Result<Buffer> keep_records(Bytes batch, const std::vector<bool>& keep,
                                          std::optional<Timestamp> delete_horizon,
                                          Scratch& scratch);

/// The batch without any record: what keeps a producer's last sequence.
[[nodiscard]] Buffer emptied(const BatchHeader& header);

}  // namespace kanal::records
