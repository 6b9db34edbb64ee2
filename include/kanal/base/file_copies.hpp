// Links, copies and shared locks of the operating system's files, for what looks at a data
// directory or copies one from outside (--check-data, --snapshot) and never runs on a disk in
// memory. Errors as FileSystem's. Any thread; may wait for the disk.
#pragma once

#include "kanal/base/file_system.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kanal {

/// A second name for a file; os_error EXDEV where the two are on different file systems, ENOENT
/// where there is none, EEXIST where `to` is.
[[nodiscard]] Result<void> link_file(const std::string& from, const std::string& to);
/// The first `bytes` of `from` (fewer is an error) become the new file `to`; shares blocks where
/// the file system can. Not synced.
[[nodiscard]] Result<void> copy_file(const std::string& from, const std::string& to,
                                     std::uint64_t bytes,
                                     const std::function<bool()>& cancelled = {});
[[nodiscard]] Result<std::uint64_t> file_size(const std::string& path);
/// A lock that others of its kind may hold too, but not together with FileSystem::lock; the file
/// has to exist and is not written.
[[nodiscard]] Result<std::unique_ptr<FileLock>> lock_shared(const std::string& path);
/// One directory, whose parent exists; EEXIST where there is something of the name.
[[nodiscard]] Result<void> make_directory(const std::string& path);
/// An absolute path without "." and "..", links not followed.
[[nodiscard]] std::string absolute_path(const std::string& path);

}  // namespace kanal
