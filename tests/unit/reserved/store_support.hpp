// For tests of the reserved stores: a store's content as plain text.
#pragma once

#include "kanal/reserved/store.hpp"

#include <gtest/gtest.h>

#include "support/scratch_directory.hpp"

#include <map>
#include <string>
#include <vector>

namespace kanal::reserved {

using kanal::test::ScratchDirectory;
using Content = std::map<ReservedName, std::vector<std::string>>;

inline Result<Content> content_of(Session& session) {
  Content content;
  auto replayed = session.replay([&](const ReservedName& name, Bytes record) -> Result<void> {
    content[name].emplace_back(as_text(record));
    return {};
  });
  if (!replayed) return std::unexpected(replayed.error());
  return content;
}

inline std::vector<Bytes> views(const std::vector<std::string>& records) {
  std::vector<Bytes> bytes;
  for (const std::string& record : records) bytes.push_back(as_bytes(record));
  return bytes;
}

inline Result<Stored> append(Session& session, const ReservedName& name,
                             const std::vector<std::string>& records,
                             Durability durability = Durability::kWritten) {
  return session.append(name, views(records), durability);
}
inline Result<Stored> roll(Session& session, const ReservedName& name,
                           const std::vector<std::string>& records,
                           Durability durability = Durability::kWritten) {
  return session.roll(name, views(records), durability);
}

inline const ReservedName kOrders{Kind::kConfig, "orders"};
inline const ReservedName kPids{Kind::kPids, ""};

}  // namespace kanal::reserved
