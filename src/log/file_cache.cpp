#include "file_cache.hpp"

#include <cerrno>
#include <utility>

namespace kanal::log {

void FileCache::link(List& list, Slot& slot) noexcept {
  slot.newer = nullptr;
  slot.older = list.newest;
  if (list.newest != nullptr) list.newest->newer = &slot;
  list.newest = &slot;
  if (list.oldest == nullptr) list.oldest = &slot;
  ++list.count;
}

void FileCache::unlink(List& list, Slot& slot) noexcept {
  (slot.newer != nullptr ? slot.newer->older : list.newest) = slot.older;
  (slot.older != nullptr ? slot.older->newer : list.oldest) = slot.newer;
  slot.newer = slot.older = nullptr;
  --list.count;
}

std::shared_ptr<File> FileCache::find(Slot& slot) noexcept {
  return list_.with([&](List& list) -> std::shared_ptr<File> {
    if (slot.file == nullptr) return nullptr;
    if (list.newest != &slot) {
      unlink(list, slot);
      link(list, slot);
    }
    return slot.file;
  });
}

Result<std::shared_ptr<File>> FileCache::open_file(Slot& slot, OpenMode mode,
                                                   const std::string& path) {
  auto opened = files_.open(path, mode);
  if (!opened && (opened.error().os_error == EMFILE || opened.error().os_error == ENFILE)) {
    shrink(open_files() / 2);
    opened = files_.open(path, mode);
  }
  if (!opened) return std::unexpected(std::move(opened.error()));
  std::shared_ptr<File> file = std::move(*opened);
  std::shared_ptr<File> result = list_.with([&](List& list) {
    if (slot.file == nullptr) {  // else another thread was quicker: its handle serves both
      slot.file = std::move(file);
      link(list, slot);
    }
    return slot.file;
  });
  if (open_files() > max_open_) shrink(max_open_);
  return result;
}

void FileCache::drop(Slot& slot) noexcept {
  std::shared_ptr<File> closing;  // closed outside the lock
  list_.with([&](List& list) {
    if (slot.file == nullptr) return;
    unlink(list, slot);
    closing = std::move(slot.file);
    slot.file = nullptr;
  });
}

void FileCache::shrink(std::size_t keep) noexcept {
  for (;;) {
    std::shared_ptr<File> closing;
    list_.with([&](List& list) {
      if (list.count <= keep) return;
      Slot& slot = *list.oldest;
      unlink(list, slot);
      closing = std::move(slot.file);
      slot.file = nullptr;
    });
    if (closing == nullptr) return;
  }
}

std::size_t FileCache::open_files() noexcept {
  return list_.with([](List& list) { return list.count; });
}

}  // namespace kanal::log
