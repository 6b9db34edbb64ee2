// A snapshot of a data directory that no daemon uses: file by file, as it is. After a crash the
// copy is recovered by its own first start.
#include <algorithm>

#include "kanal/base/file_copies.hpp"
#include "kanal/broker/snapshot.hpp"
#include "snapshot_directory.hpp"

namespace kanal::broker {
namespace {

class OfflineCopy {
 public:
  OfflineCopy(FileSystem& files, bool may_link) : files_(files), may_link_(may_link) {}
  Result<void> directory(const std::string& from, const std::string& to);
  const log::SnapshotFigures& figures() const { return figures_; }

 private:
  Result<void> file(const std::string& from, const std::string& to, bool is_final);

  FileSystem& files_;
  const bool may_link_;
  log::SnapshotFigures figures_;
};

Result<void> OfflineCopy::directory(const std::string& from, const std::string& to) {
  auto entries = files_.list(from);
  if (!entries) return std::unexpected(std::move(entries.error()));
  std::ranges::sort(*entries, {}, &DirectoryEntry::name);
  if (auto done = make_directory(to); !done) return done;
  std::string last_base;
  for (const DirectoryEntry& entry : *entries) {
    if (log::index_of_segment(entry.name)) last_base = entry.name.substr(0, entry.name.find('.'));
  }
  for (const DirectoryEntry& entry : *entries) {
    const std::string& name = entry.name;
    // .removed, .stray, what recovery set aside, files that are not finished.
    if (name.starts_with('.')) continue;
    // A directory has the name of a topic, which may be any.
    if (!entry.is_directory && (name.find(".cut") != std::string::npos || name.ends_with(".tmp")))
      continue;
    const std::string source = from + "/" + name, target = to + "/" + name;
    // A segment with its index is full and synced; RocksDB never changes a table.
    const auto index = log::index_of_segment(name);
    const bool sealed =
        index && !name.starts_with(last_base) &&
        std::ranges::find(*entries, *index, &DirectoryEntry::name) != entries->end();
    auto done = entry.is_directory ? directory(source, target)
                                   : file(source, target, sealed || name.ends_with(".sst"));
    if (!done) return done;
  }
  return {};
}

Result<void> OfflineCopy::file(const std::string& from, const std::string& to, bool is_final) {
  const auto size = file_size(from);
  if (!size) return std::unexpected(size.error());
  if (log::index_of_segment(from.substr(from.rfind('/') + 1))) ++figures_.segments;
  if (is_final && may_link_) {
    figures_.linked_bytes += *size;
    return link_file(from, to);
  }
  figures_.copied_bytes += *size;
  return copy_file(from, to, *size);
}

}  // namespace

Result<SnapshotReport> snapshot_offline(FileSystem& files, const std::string& data_directory,
                                        const std::string& directory) {
  const auto meta = read_meta(files, data_directory);
  if (!meta) return std::unexpected(meta.error());
  const auto lock = files.lock(data_directory + "/lock");
  if (!lock) return std::unexpected(lock.error());
  auto target = SnapshotDirectory::make(files, directory);
  if (!target) return std::unexpected(std::move(target.error()));
  const auto links = target->place_for_links(data_directory);
  if (!links) return std::unexpected(links.error());
  OfflineCopy copy(files, *links == target->path());
  for (const std::string_view part : {"/reserved", "/channels"}) {
    const std::string from = data_directory + std::string(part);
    if (auto done = copy.directory(from, target->path() + std::string(part)); !done)
      return std::unexpected(std::move(done.error()));
  }
  if (auto done = target->finish(*meta); !done) return std::unexpected(std::move(done.error()));
  return SnapshotReport{directory, 0, 0, copy.figures()};
}

}  // namespace kanal::broker
