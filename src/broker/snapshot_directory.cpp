#include "snapshot_directory.hpp"

#include <utility>

#include "kanal/base/file_copies.hpp"
#include "kanal/base/logging.hpp"

namespace kanal::broker {
namespace {

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorCode::INVALID_REQUEST, std::move(why));
}

/// Whether there is nothing, or an empty directory.
Result<bool> is_free(FileSystem& files, const std::string& path) {
  const auto exists = files.exists(path);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) return true;
  const auto entries = files.list(path);
  if (!entries) return std::unexpected(entries.error());
  return entries->empty();
}

/// What a snapshot that was cut short has left is ours to remove; nothing else is.
Result<void> clear(FileSystem& files, const std::string& building) {
  const auto free = is_free(files, building);
  if (!free) return std::unexpected(free.error());
  if (!*free) {
    const auto meta = read_file(files, building + "/meta", kUnfinishedMeta.size());
    if (!meta || as_text(*meta) != kUnfinishedMeta)
      return refuse("'" + building + "' is there and is no unfinished snapshot: move it away");
  }
  return files.remove_all(building);
}

}  // namespace

Result<SnapshotDirectory> SnapshotDirectory::make(FileSystem& files, const std::string& path) {
  const auto free = is_free(files, path);
  if (!free) return std::unexpected(free.error());
  if (!*free) return refuse("'" + path + "' is not empty: name a new directory");
  if (auto done = clear(files, path + ".tmp"); !done)
    return std::unexpected(std::move(done.error()));
  if (auto done = files.create_directories(directory_of(path)); !done)
    return std::unexpected(std::move(done.error()));
  if (auto done = make_directory(path + ".tmp"); !done)
    return std::unexpected(std::move(done.error()));
  SnapshotDirectory directory(files, path);
  if (auto done = replace_file(files, directory.path() + "/meta", as_bytes(kUnfinishedMeta)); !done)
    return std::unexpected(std::move(done.error()));
  return directory;
}

SnapshotDirectory::SnapshotDirectory(SnapshotDirectory&& other) noexcept
    : files_(std::exchange(other.files_, nullptr)),
      path_(std::move(other.path_)),
      building_(std::move(other.building_)),
      links_(std::exchange(other.links_, std::nullopt)) {}

SnapshotDirectory::~SnapshotDirectory() {
  if (files_ == nullptr) return;
  if (links_) (void)files_->remove_all(*links_);
  if (building_.empty()) return;
  if (auto done = files_->remove_all(building_); !done) {
    logger("broker").warn("An unfinished snapshot could not be removed. directory={} reason={}",
                          building_, done.error().detail);
  }
}

Result<std::string> SnapshotDirectory::place_for_links(const std::string& data_directory) {
  const std::string probe = building_ + "/probe";
  auto linked = link_file(data_directory + "/meta", probe);
  if (linked) {
    if (auto done = files_->remove(probe); !done) return std::unexpected(std::move(done.error()));
    return building_;
  }
  const std::string links = data_directory + "/" + std::string(kLinksDirectory);
  if (auto done = files_->remove_all(links); !done) return std::unexpected(std::move(done.error()));
  if (auto done = make_directory(links); !done) return std::unexpected(std::move(done.error()));
  links_ = links;
  return links;
}

Result<void> SnapshotDirectory::finish(const DirectoryMeta& meta) {
  // Everything before meta, so that a power cut leaves nothing that looks whole.
  if (auto done = files_->sync_all(building_); !done) return done;
  if (auto done = replace_file(*files_, building_ + "/meta", as_bytes(encode_meta(meta))); !done)
    return done;
  if (auto done = files_->rename(building_, path_); !done) return done;
  building_.clear();
  return files_->sync_directory(directory_of(path_));
}

}  // namespace kanal::broker
