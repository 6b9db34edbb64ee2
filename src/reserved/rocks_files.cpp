#include "rocks_files.hpp"

#include "journal_check.hpp"
#include "kanal/base/bytes.hpp"
#include "kanal/base/logging.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

namespace kanal::reserved {
namespace {

constexpr std::string_view kNewMark = "NEW";

// RocksDB takes a lost journal for an empty one. What it holds is in tables after every start, so
// there is one journal, and always one.
Result<void> check_journals(rocksdb::Env& env, const std::string& directory,
                            const std::vector<std::string>& files) {
  bool found = false;
  for (const std::string& file : files) {
    if (!file.ends_with(".log")) continue;
    found = true;
    const std::string path = directory + "/" + file;
    std::string journal;
    rocksdb::Status status = rocksdb::ReadFileToString(&env, path, &journal);
    if (!status.ok()) return std::unexpected(storage_error(path + " cannot be read", status));
    const JournalState state = check_journal(as_bytes(journal));
    if (state.what == JournalState::What::kDamaged) {
      return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                  path + " is damaged at byte " + std::to_string(state.at));
    }
    if (state.what != JournalState::What::kHole) continue;
    logger("reserved")
        .warn(
            "A power cut has left a hole in what was not synced; the journal is cut there. path={} "
            "at={} "
            "bytes={}",
            path, state.at, journal.size() - state.at);
    const std::string whole = directory + "/cut.dbtmp";
    journal.resize(state.at);
    status = rocksdb::WriteStringToFile(&env, journal, whole, /*should_sync=*/true);
    if (status.ok()) status = env.RenameFile(whole, path);
    if (!status.ok()) return std::unexpected(storage_error(path + " cannot be cut", status));
  }
  if (found) return {};
  return fail(ErrorCode::KAFKA_STORAGE_ERROR,
              "the reserved store in " + directory + " has lost its journal (*.log)");
}

}  // namespace

Result<bool> prepare_directory(rocksdb::Env& env, const std::string& directory) {
  const auto failed = [&](const rocksdb::Status& status) {
    return std::unexpected(
        storage_error("the directory " + directory + " cannot be prepared", status));
  };
  if (const auto made = env.CreateDirIfMissing(directory); !made.ok()) return failed(made);
  std::vector<std::string> files;
  if (const auto listed = env.GetChildren(directory, &files); !listed.ok()) {
    return failed(listed);
  }
  std::erase_if(files, [](const std::string& file) { return file == "." || file == ".."; });
  const bool half_made = std::ranges::find(files, kNewMark) != files.end();
  if (!files.empty() && !half_made) {
    if (auto journals = check_journals(env, directory, files); !journals)
      return std::unexpected(journals.error());
    return false;
  }
  for (const std::string& file : files) {
    if (file == kNewMark) continue;
    const auto removed = env.DeleteFile(directory + "/" + file);
    if (!removed.ok()) return failed(removed);
  }
  const auto marked = rocksdb::WriteStringToFile(&env, "", new_mark(directory));
  if (!marked.ok()) return failed(marked);
  return true;
}

std::string new_mark(const std::string& directory) {
  return directory + "/" + std::string(kNewMark);
}

Error storage_error(const std::string& what, const rocksdb::Status& status) {
  return {.code = ErrorCode::KAFKA_STORAGE_ERROR,
          .detail = what + ": " + status.ToString(),
          .os_error = status.IsNoSpace() ? ENOSPC : EIO};
}

}  // namespace kanal::reserved
