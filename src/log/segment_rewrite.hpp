// A Rewrite over segment files. It reads the segments of the moment it was made, each through a
// handle of its own, and writes `<offset>.<generation>.log` files that nothing knows until the
// record of commit() lists them (compaction_record.hpp); until adopt() the log goes on with the old
// ones. A group of one segment is written from the first batch on that changes; what stays before
// it is copied as it is. Helper threads, one at a time.
#pragma once

#include "compaction_record.hpp"
#include "core.hpp"
#include "scan.hpp"

#include "kanal/log/rewrite.hpp"

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kanal::log {

class SegmentRewrite final : public Rewrite {
 public:
  struct Source {
    std::shared_ptr<SegmentFile> file;
    std::uint64_t size = 0;
  };
  SegmentRewrite(std::shared_ptr<Core> core, std::vector<Source> sources,
                 std::vector<SegmentFacts> facts);
  ~SegmentRewrite() override;

  [[nodiscard]] std::span<const SegmentFacts> sources() const noexcept override { return facts_; }
  Result<void> open(std::size_t source, Sequence from) override;
  Result<Bytes> next() override;
  void begin(std::size_t first_source, std::size_t count) override;
  Result<void> keep() override;
  Result<void> replace(Bytes batch) override;
  void drop() override;
  [[nodiscard]] bool has_batches() const noexcept override { return batches_ > 0; }
  Result<bool> settle(std::uint64_t bytes) override;
  Result<Outcome> commit(Sequence first_dirty) override;
  Result<void> note_clean(Sequence first_dirty) override;
  std::uint64_t take_io() noexcept override { return std::exchange(io_, 0); }

 private:
  struct Output {
    CompactedSegment facts;
    Index index;
    std::unique_ptr<File> file;  // nullptr while it equals the source
    std::uint64_t flushed = 0;   // bytes in the file, those to be copied included
    std::uint64_t unsynced = 0;  // of them, about
    Buffer buffer;               // what follows them
  };
  Result<std::shared_ptr<File>> handle_of(const Source& source);
  [[nodiscard]] std::uint64_t indexed_position(Sequence from) const;
  [[nodiscard]] std::unexpected<Error> damaged(std::string_view why) const;
  Result<void> put(Bytes batch, const records::BatchHeader& header);
  Result<void> make_file(Output& output);
  Result<void> flush(Output& output);
  Result<void> sync_part(Output& output);
  void end_outputs();
  Result<void> sync_outputs();
  Result<Outcome> decide(Sequence first_dirty);
  void forget_outputs(bool in_doubt);

  const std::shared_ptr<Core> core_;
  const std::vector<Source> sources_;
  const std::vector<SegmentFacts> facts_;

  // Reading.
  std::size_t source_ = 0;
  std::shared_ptr<File> file_;
  std::optional<BatchReader> reader_;
  std::uint64_t position_ = 0;  // behind batch_
  Sequence expected_{1};
  Bytes batch_;

  // Writing.
  std::size_t first_ = 0, count_ = 0;  // of the group
  std::vector<Output> outputs_;
  bool same_ = true;              // nothing was replaced or dropped so far
  std::uint64_t prefix_ = 0;      // bytes of the source that stay in front
  std::uint64_t copied_ = 0;      // of them
  std::uint64_t batches_ = 0;     // kept or replaced
  std::uint32_t generation_ = 0;  // of this group's files
  std::uint64_t io_ = 0;
};

}  // namespace kanal::log
