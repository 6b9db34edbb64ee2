// The embedded store with an environment of the caller's choice: tests put a faulty file system
// under it. Everybody else calls open_rocks_store(directory).
#pragma once

#include "kanal/reserved/store.hpp"

namespace rocksdb {
class FileSystem;
}

namespace kanal::reserved {

[[nodiscard]] Result<std::unique_ptr<Store>> open_rocks_store(
    const std::string& directory, std::shared_ptr<rocksdb::FileSystem> files);

}  // namespace kanal::reserved
