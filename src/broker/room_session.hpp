// The session of the reserved channels, with room made for it: a synced write that meets a full
// disk gives the reserve up and is tried once more, one that may not wait has it given up. Any
// thread, as the session.
#pragma once

#include "disk_room.hpp"
#include "kanal/reserved/store.hpp"

#include <memory>
#include <utility>

namespace kanal::broker {

class RoomSession final : public reserved::Session {
 public:
  RoomSession(std::unique_ptr<reserved::Session> session, DiskRoom& room)
      : session_(std::move(session)), room_(room) {}

  Result<reserved::Stored> append(const reserved::ReservedName& name,
                                  std::span<const Bytes> records,
                                  reserved::Durability durability) override {
    return with_room(durability, [&] { return session_->append(name, records, durability); });
  }
  Result<reserved::Stored> roll(const reserved::ReservedName& name, std::span<const Bytes> snapshot,
                                reserved::Durability durability) override {
    return with_room(durability, [&] { return session_->roll(name, snapshot, durability); });
  }
  Result<reserved::Stored> erase(const reserved::ReservedName& name,
                                 reserved::Durability durability) override {
    return with_room(durability, [&] { return session_->erase(name, durability); });
  }
  Result<void> replay(const Visitor& visitor) override { return noted(session_->replay(visitor)); }
  Result<void> replay_kind(reserved::Kind kind, const Visitor& visitor) override {
    return noted(session_->replay_kind(kind, visitor));
  }
  Result<void> replay_channel(const reserved::ReservedName& name, const Visitor& visitor) override {
    return noted(session_->replay_channel(name, visitor));
  }
  [[nodiscard]] std::uint64_t records_in(const reserved::ReservedName& name) const override {
    return session_->records_in(name);
  }

 private:
  template <class Write>
  Result<reserved::Stored> with_room(reserved::Durability durability, Write&& write) {
    auto stored = write();
    if (stored || !DiskRoom::is_full(stored.error())) return stored;
    if (durability == reserved::Durability::kSynced && room_.give_up()) return write();
    room_.met(stored.error());
    return stored;
  }
  Result<void> noted(Result<void> done) {
    if (!done) room_.met(done.error());
    return done;
  }

  const std::unique_ptr<reserved::Session> session_;
  DiskRoom& room_;
};

}  // namespace kanal::broker
