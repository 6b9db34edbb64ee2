// YAML -> model. Throws SchemaError for anything it does not understand, unknown keys included.
#pragma once

#include "model.hpp"

#include <string>

namespace kanal::wiregen {

/// Parses and checks every NN_name.yaml, headers.yaml and stored.yaml of a directory.
[[nodiscard]] Protocol load_directory(const std::string& directory);

/// One API from text; `file` is only its name: "26_end_txn.yaml". Checked. For tests too.
[[nodiscard]] Api load_api(const std::string& file, const std::string& text);

/// A file of `headers:` or `records:`, checked.
[[nodiscard]] std::vector<Message> load_messages(const std::string& file, const std::string& text);

}  // namespace kanal::wiregen
