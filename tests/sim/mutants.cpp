#include "mutants.hpp"

#include <array>

namespace kanal::sim {

std::span<const MutantRow> mutants() noexcept {
  using enum Mutant;
  static constexpr std::array kRows = std::to_array<MutantRow>({
      {kSyncDoesNothing, "sync-does-nothing", "syncs are answered and not carried out"},
      {kWriteIsLost, "write-is-lost", "a write to a segment is reported and not carried out"},
      {kProduceIsDropped, "produce-is-dropped", "records are acknowledged and not appended"},
      {kProduceIsDoubled, "produce-is-doubled", "an idempotent batch is appended twice"},
      {kFetchAltersAByte, "fetch-alters-a-byte", "a record comes back with another value"},
      {kFetchSkipsABatch, "fetch-skips-a-batch", "a batch is left out of an answer"},
      {kFetchShowsOldEnd, "fetch-shows-old-end", "the high watermark falls"},
      {kAnswerNeverComes, "answer-never-comes", "a request is never answered"},
      {kSegmentIsNotSynced, "segment-is-not-synced", "syncs of segments are skipped"},
      {kJournalIsNotSynced, "journal-is-not-synced", "syncs of the shared journal are skipped"},
      {kDirectoryIsNotSynced, "directory-is-not-synced", "syncs of directories are skipped"},
      {kTooMuchIsCut, "too-much-is-cut", "a torn tail is cut together with sound bytes before it"},
      {kIndexIsBelieved, "index-is-believed",
       "an index that does not say where its records are is written, and believed"},
      {kRolledBeforeWritten, "rolled-before-written",
       "a reserved channel goes over to a snapshot that is not synced"},
      {kCompactedIsNotSynced, "compacted-is-not-synced",
       "a swap of compaction is decided before its files are synced"},
      {kTombstoneGoesEarly, "tombstone-goes-early", "delete.retention.ms is taken for 0"},
      {kLagIsIgnored, "lag-is-ignored", "min.compaction.lag.ms is taken for 0"},
      {kRetentionIsHasty, "retention-is-hasty", "retention.ms is taken for a fifth of it"},
      {kTooFewBytesStay, "too-few-bytes-stay", "retention.bytes is taken for a third of it"},
      {kCompactsWhatItShouldNot, "compacts-what-it-should-not",
       "a topic is compacted whose policy is to delete"},
      {kTopicIsForgotten, "topic-is-forgotten", "a topic that was made is gone after a restart"},
      {kProducerIdsRepeat, "producer-ids-repeat", "a block of producer ids is given out twice"},
      {kStaleGenerationIsFine, "stale-generation-is-fine",
       "a heartbeat of an old generation is answered without an error"},
      {kGenerationGoesBack, "generation-goes-back", "a join is answered with an old generation"},
      {kTwoOwners, "two-owners", "two members of a generation get the same partition"},
      {kAssignmentsAreSwapped, "assignments-are-swapped", "a member gets another one's assignment"},
      {kMemberIsLeftOut, "member-is-left-out", "the leader is not told of a member"},
      {kHeartbeatIsSwallowed, "heartbeat-is-swallowed",
       "heartbeats are answered and not counted, so that a living member expires"},
      {kDeadMemberStays, "dead-member-stays", "a member that vanished does not expire"},
      {kLeaveIsIgnored, "leave-is-ignored", "a member that left is still there"},
      {kCommitIsDropped, "commit-is-dropped", "a commit is answered and not carried out"},
      {kCommitIsNotStored, "commit-is-not-stored", "a commit is lost by a restart"},
      {kOffsetGoesBack, "offset-goes-back", "a fetched offset lies before the committed one"},
      {kOffsetsAreResetByARestart, "offsets-are-reset-by-a-restart",
       "all of a group is gone after a restart"},
      {kFencedCommitIsTaken, "fenced-commit-is-taken",
       "a commit of an old generation moves the group's offset"},
  });
  return kRows;
}

}  // namespace kanal::sim
