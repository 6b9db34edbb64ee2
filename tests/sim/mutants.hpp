// Planted bugs. Each is put into the files, the store, or the wire between broker and client, never
// into the broker itself; the checkers have to find every one of them within the fixed seeds, or
// they are not worth their name. Plain data: any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace kanal::sim {

enum class Mutant : std::uint8_t {
  kNone,
  // Logs
  kSyncDoesNothing,
  kWriteIsLost,
  kProduceIsDropped,
  kProduceIsDoubled,
  kFetchAltersAByte,
  kFetchSkipsABatch,
  kFetchShowsOldEnd,
  kAnswerNeverComes,
  // Durability and recovery
  kSegmentIsNotSynced,
  kJournalIsNotSynced,
  kDirectoryIsNotSynced,
  kTooMuchIsCut,
  kIndexIsBelieved,
  kRolledBeforeWritten,
  // Retention and compaction
  kCompactedIsNotSynced,
  kTombstoneGoesEarly,
  kLagIsIgnored,
  kRetentionIsHasty,
  kTooFewBytesStay,
  kCompactsWhatItShouldNot,
  // Topics and ids
  kTopicIsForgotten,
  kProducerIdsRepeat,
  // Groups
  kStaleGenerationIsFine,
  kGenerationGoesBack,
  kTwoOwners,
  kAssignmentsAreSwapped,
  kMemberIsLeftOut,
  kHeartbeatIsSwallowed,
  kDeadMemberStays,
  kLeaveIsIgnored,
  // Offsets
  kCommitIsDropped,
  kCommitIsNotStored,
  kOffsetGoesBack,
  kOffsetsAreResetByARestart,
  kFencedCommitIsTaken,
};

struct MutantRow {
  Mutant mutant;
  std::string_view name;
  std::string_view bug;
};

/// All but kNone.
[[nodiscard]] std::span<const MutantRow> mutants() noexcept;

}  // namespace kanal::sim
