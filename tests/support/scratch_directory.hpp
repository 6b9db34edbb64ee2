// A directory of a test's own on the machine's disk, for where files in memory are not enough; with
// all in it gone at the end.
#pragma once

#include "kanal/base/check.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include <stdlib.h>

namespace kanal::test {

class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "kanal-test-XXXXXX").string();
    CHECK(::mkdtemp(pattern.data()) != nullptr, "a directory for the test");
    root_ = pattern;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  [[nodiscard]] const std::string& root() const noexcept { return root_; }
  /// Not made yet.
  [[nodiscard]] std::string path(const std::string& name = "data") const {
    return root_ + "/" + name;
  }

 private:
  std::string root_;
};

}  // namespace kanal::test
