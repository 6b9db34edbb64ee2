// Room on the disk of the data directory. The file `reserve` holds blocks that are given up when
// the disk is full, so that the broker can always start, stop, delete, trim and commit. While it is
// given up records are refused (refuses(), asked before each append), or they would take that room
// too; it is made again once the disk has room for it and some more.
// refuses, refusal, met: any thread, no disk. tick: one I/O thread, the looking is done on a
// helper. The rest: threads that may wait for the disk. Takes no other lock. Sizes in bytes.
#pragma once

#include "kanal/base/clock.hpp"
#include "kanal/base/executor.hpp"
#include "kanal/base/file_system.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace kanal::broker {

class DiskRoom {
 public:
  struct Stage {
    FileSystem& files;
    Executor& helpers;
    const Clock& clock;
    std::string directory;
    std::uint64_t reserve = 0;  // 0: none is kept, nothing is refused; a small disk keeps less
  };
  explicit DiskRoom(Stage stage) : stage_(std::move(stage)) {}

  /// Whether `error` tells that the disk, or a quota of it, is full.
  [[nodiscard]] static bool is_full(const Error& error) noexcept;

  [[nodiscard]] bool refuses() const noexcept { return refuses_.load(std::memory_order_relaxed); }
  /// What a refused append answers.
  [[nodiscard]] Error refusal() noexcept;
  /// Something failed; a full disk is told in the log, and the reserve is given up.
  void met(const Error& error);

  /// Before anything is written: where the disk is as good as full the reserve is given up.
  void prepare();
  void tick();
  /// Gives the reserve up; whether that was done now or before, so that a second try is worth it.
  bool give_up();
  /// A stop that will write this much is to come: the reserve makes room where there is none.
  void prepare_stop(std::uint64_t bytes);
  /// After it: what is left of a reserve that was given up is held again, so that nobody takes it
  /// before the next start.
  void finish_stop();

 private:
  struct Size {  // of the reserve on this disk
    std::uint64_t reserve = 0, low = 0, spare = 0;
  };
  [[nodiscard]] std::string path() const { return stage_.directory + "/reserve"; }
  [[nodiscard]] Size size_on(const DiskSpace& space) const noexcept;
  /// What has to be free for a reserve.
  [[nodiscard]] std::uint64_t wanted(const Size& size) const noexcept;
  void look();
  void look_locked();
  void give_up_locked(Time now);
  void make_locked(const Size& size, Time now);
  Result<void> write_reserve(const Size& size);
  Result<void> empty_reserve();
  void tell_refused();  // where no reserve is kept
  void tell(Time now);

  const Stage stage_;
  std::atomic<bool> refuses_ = false;
  std::atomic<std::uint64_t> refused_ = 0;  // since the last line about it
  std::atomic<bool> looking_ = false;       // a helper is, or is about to

  std::mutex mutex_;
  std::uint64_t has_ = 0;  // bytes the file holds
  bool given_up_ = false;  // by this process, or there was no room for it
  bool stopped_ = false;
  std::optional<Time> made_, told_;  // by this process
  Time full_since_{}, not_before_{};
  Duration pause_{};
};

}  // namespace kanal::broker
