#include "disk_room.hpp"

#include "kanal/base/logging.hpp"

#include <algorithm>
#include <cerrno>

namespace kanal::broker {
namespace {

using namespace std::chrono_literals;
constexpr Duration kTellEvery = 60s;
// A reserve that is lost again soon after it was made (a quota that statvfs does not show, no more
// inodes) is made again later and later.
constexpr Duration kSoon = 60s, kFirstPause = 1s, kLongestPause = 32s;
constexpr std::uint64_t kLargestShare = 8;  // of the disk: an eighth
constexpr std::uint64_t kLeastLow = 256 << 10;

}  // namespace

bool DiskRoom::is_full(const Error& error) noexcept {
  return error.os_error == ENOSPC || error.os_error == EDQUOT;
}

Error DiskRoom::refusal() noexcept {
  refused_.fetch_add(1, std::memory_order_relaxed);
  return {ErrorCode::KAFKA_STORAGE_ERROR,
          "The broker's disk is full: records are refused until there is room again.", ENOSPC};
}

void DiskRoom::met(const Error& error) {
  if (!is_full(error)) return;
  if (stage_.reserve == 0) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    if (!looking_.exchange(true)) stage_.helpers.post([this] { tell_refused(); });
    return;
  }
  if (refuses_.exchange(true)) return;
  stage_.helpers.post([this] { give_up(); });
}

DiskRoom::Size DiskRoom::size_on(const DiskSpace& space) const noexcept {
  Size size{.reserve = stage_.reserve};
  // A disk that tells no size has its reserve tried by making it.
  if (space.total_bytes > 0)
    size.reserve = std::min(size.reserve, space.total_bytes / kLargestShare);
  size.low = std::max(size.reserve / 16, std::min(kLeastLow, size.reserve));
  size.spare = size.reserve / 4;
  return size;
}

std::uint64_t DiskRoom::wanted(const Size& size) const noexcept {
  return has_ > 0 ? size.low + size.reserve - std::min(has_, size.reserve)
                  : size.reserve + size.spare;
}

void DiskRoom::prepare() {
  const std::lock_guard hold(mutex_);
  if (stage_.reserve == 0) {
    // Of a run that had one; what cannot be removed does no harm.
    if (const auto left = stage_.files.exists(path()); left && *left) {
      (void)stage_.files.remove(path());
    }
    return;
  }
  if (auto file = stage_.files.open(path(), OpenMode::kRead)) {
    has_ = (*file)->size().value_or(0);
  }
  const auto space = stage_.files.space(stage_.directory);
  if (!space || space->total_bytes == 0) return;
  // By the same rule as later: after a kill with the reserve given up, what is left of the disk is
  // not for the records that come before the first look.
  if (space->usable_bytes < wanted(size_on(*space))) give_up_locked(stage_.clock.now());
}

void DiskRoom::tick() {
  if (stage_.reserve == 0 || looking_.exchange(true)) return;
  stage_.helpers.post([this] { look(); });
}

void DiskRoom::look() {
  {
    const std::lock_guard hold(mutex_);
    if (!stopped_) look_locked();
  }
  looking_ = false;
}

void DiskRoom::look_locked() {
  const Time now = stage_.clock.now();
  const auto space = stage_.files.space(stage_.directory);
  const bool told = space && space->total_bytes > 0;
  const Size size = size_on(told ? *space : DiskSpace{});
  if (has_ > 0 && made_) {
    if (refuses_ || (told && space->usable_bytes < size.low)) give_up_locked(now);
    return;
  }
  if (given_up_ && now < not_before_) return;
  if (told && space->usable_bytes < wanted(size)) return give_up_locked(now);
  make_locked(size, now);
}

bool DiskRoom::give_up() {
  if (stage_.reserve == 0) return false;
  const std::lock_guard hold(mutex_);
  if (has_ > 0 || !given_up_) give_up_locked(stage_.clock.now());
  return true;
}

void DiskRoom::give_up_locked(Time now) {
  if (has_ > 0) {
    if (auto done = empty_reserve(); !done) {
      logger("broker").error("The reserve could not be given up. file=\"{}\" reason={}", path(),
                             done.error().detail);
    }
  }
  if (!given_up_) {
    pause_ = made_ && now - *made_ < kSoon ? std::clamp(pause_ * 2, kFirstPause, kLongestPause)
                                           : kFirstPause;
    not_before_ = now + pause_;
    full_since_ = now;
    told_.reset();
  }
  has_ = 0;
  given_up_ = true;
  refuses_ = true;
  tell(now);
}

void DiskRoom::make_locked(const Size& size, Time now) {
  if (auto done = write_reserve(size); !done) {
    if (is_full(done.error())) {
      has_ = size.reserve;  // or a part of it
      return give_up_locked(now);
    }
    // A disk that fails otherwise is told by whoever needs it; there is no reserve then.
    if (!told_ || now - *told_ >= kTellEvery) {
      told_ = now;
      logger("broker").warn("The reserve could not be made. file=\"{}\" reason={}", path(),
                            done.error().detail);
    }
    refuses_ = false;
    return;
  }
  has_ = size.reserve;
  made_ = now;
  if (std::exchange(given_up_, false)) {
    logger("broker").warn(
        "There is room on the disk again: records are taken. directory=\"{}\" refused={} "
        "full_for_s={}",
        stage_.directory, refused_.exchange(0), (now - full_since_) / 1s);
  }
  refuses_ = false;
}

/// With some more, which is then given back: else the first record would meet a full disk again.
Result<void> DiskRoom::write_reserve(const Size& size) {
  auto file = stage_.files.open(path(), OpenMode::kCreate);
  if (!file) return std::unexpected(std::move(file.error()));
  const std::uint64_t all = size.reserve + (has_ > 0 ? 0 : size.spare);
  if (auto done = (*file)->allocate(0, all); !done) return done;
  if (auto done = (*file)->truncate(all); !done) return done;
  return (*file)->truncate(size.reserve);
}

Result<void> DiskRoom::empty_reserve() {
  auto file = stage_.files.open(path(), OpenMode::kReadWrite);
  if (!file) return std::unexpected(std::move(file.error()));
  if (auto done = (*file)->truncate(0); !done) return done;
  (void)(*file)->sync();  // some file systems free blocks only then
  return {};
}

void DiskRoom::prepare_stop(std::uint64_t bytes) {
  const std::lock_guard hold(mutex_);
  stopped_ = true;
  if (has_ == 0 || stage_.reserve == 0) return;
  const auto space = stage_.files.space(stage_.directory);
  if (space && space->total_bytes > 0 && space->usable_bytes < std::min(bytes, has_)) {
    give_up_locked(stage_.clock.now());
  }
}

void DiskRoom::finish_stop() {
  const std::lock_guard hold(mutex_);
  if (!given_up_) return;
  const auto space = stage_.files.space(stage_.directory);
  if (!space) return;
  // Not to the last byte: what closes may still write a little.
  const std::uint64_t reserve = size_on(*space).reserve;
  const std::uint64_t left = std::min(reserve, space->usable_bytes);
  if (left <= reserve / 16) return;
  auto file = stage_.files.open(path(), OpenMode::kCreate);
  const std::uint64_t bytes = left - reserve / 16;
  if (file && (*file)->allocate(0, bytes)) (void)(*file)->truncate(bytes);
}

void DiskRoom::tell_refused() {
  {
    const std::lock_guard hold(mutex_);
    tell(stage_.clock.now());
  }
  looking_ = false;
}

void DiskRoom::tell(Time now) {
  if (told_ && now - *told_ < kTellEvery) return;
  told_ = now;
  const auto space = stage_.files.space(stage_.directory);
  logger("broker").error(
      "The disk is full: records are refused until there is room again; reads, commits, retention "
      "and the deletion of records and topics go on. Free room on the disk, delete topics or lower "
      "their retention. directory=\"{}\" usable_bytes={} reserve={} refused={}",
      stage_.directory, space ? space->usable_bytes : 0, stage_.reserve,
      refused_.exchange(0, std::memory_order_relaxed));
}

}  // namespace kanal::broker
