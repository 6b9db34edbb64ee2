// What is done about damage in the middle of a log. Bytes that a cut takes out of it are kept
// beside it (<segment>.cut, .cut-2, …), never deleted. The file `rescan` in a channel's directory
// takes its word from every checkpoint made before it: after a cut, whose log ends below them, and
// where a reader met damage in what a checkpoint vouches for, so that the next start looks at every
// byte. Helper threads; may wait for the disk.
#pragma once

#include "kanal/base/file_system.hpp"
#include "kanal/base/ids.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace kanal::log {

struct StoreContext;

inline constexpr std::string_view kRescanFile = "rescan";
inline constexpr std::string_view kAsideSuffix = ".cut";

/// Checkpoints whose last batch was written under an earlier leader epoch do not count from now on;
/// durable.
[[nodiscard]] Result<void> void_checkpoints(FileSystem& files, const std::string& directory,
                                            LeaderEpoch before);
/// The epoch from which on checkpoints count; -1: all do. A file that cannot be read voids all.
[[nodiscard]] LeaderEpoch checkpoints_count_from(FileSystem& files, const std::string& directory);

/// A name beside `path` that nothing has.
[[nodiscard]] Result<std::string> name_aside(FileSystem& files, const std::string& path,
                                             std::string_view suffix = kAsideSuffix);
/// The file goes on with its first `keep` bytes, in a new file under its name (another directory
/// may hold a link to the old one); the rest is in the file whose name is returned. Both durable.
[[nodiscard]] Result<std::string> cut_aside(FileSystem& files, const std::string& path,
                                            std::uint64_t keep);

/// For the operator: ends the sentence that names file and position.
[[nodiscard]] std::string what_to_do(const StoreContext& store);

}  // namespace kanal::log
