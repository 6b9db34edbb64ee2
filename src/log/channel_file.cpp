#include "channel_file.hpp"

#include "blob.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

namespace kanal::log {
namespace {

constexpr std::string_view kMagic = "KNLI";
constexpr std::uint16_t kVersion = 1;
constexpr std::size_t kSlot = 512;  // one sector each
constexpr std::size_t kSlots = 2;
constexpr std::size_t kEncodedSize = 56;

Buffer encode(const ChannelState& state) {
  BlobWriter writer;
  writer.uuid(state.topic_id);
  writer.id(state.partition);
  writer.id(state.start);
  writer.number(state.generation);
  return writer.seal(kMagic, kVersion);
}

Result<void> write_slots(FileSystem& files, const std::string& path, Bytes bytes,
                         std::uint64_t position) {
  auto file = files.open(path, OpenMode::kCreate);
  if (!file) return std::unexpected(std::move(file.error()));
  const std::array pieces{bytes};
  return (*file)->write_at(position, pieces);
}

std::optional<ChannelState> decode(Bytes slot) {
  const auto payload = open_blob(slot.first(kEncodedSize), kMagic, kVersion);
  if (!payload) return std::nullopt;
  BlobReader reader(*payload);
  ChannelState state;
  state.topic_id = reader.uuid();
  state.partition = reader.id<PartitionIndex>();
  state.start = reader.id<Sequence>();
  state.generation = reader.number<std::uint64_t>();
  if (!reader.done() || !is_stored(state.start)) return std::nullopt;
  return state;
}

bool is_newer(Bytes slot) {
  return as_text(slot.first(kMagic.size())) == kMagic &&
         load_be<std::uint16_t>(slot.data() + kMagic.size()) > kVersion;
}

}  // namespace

Result<void> create_channel_file(FileSystem& files, const std::string& path,
                                 const ChannelState& state) {
  Buffer both(kSlots * kSlot);
  const Buffer slot = encode(state);
  for (std::size_t i = 0; i < kSlots; ++i) {
    std::ranges::copy(slot, both.begin() + static_cast<std::ptrdiff_t>(i * kSlot));
  }
  return write_slots(files, path, both, 0);
}

Result<void> update_channel_file(FileSystem& files, const std::string& path,
                                 const ChannelState& state) {
  return write_slots(files, path, encode(state), state.generation % kSlots * kSlot);
}

Result<ChannelFile> read_channel_file(FileSystem& files, const std::string& path) {
  ChannelFile found;
  Buffer bytes;
  if (auto read = read_file(files, path, 1 << 20)) {
    bytes = std::move(*read);
  } else if (read.error().os_error != ENOENT) {
    return std::unexpected(std::move(read.error()));
  }
  std::size_t bad = 0, newer = 0;
  bool unwritten = false;
  for (std::size_t i = 0; i < kSlots; ++i) {
    const Bytes rest = Bytes(bytes).subspan(std::min(bytes.size(), i * kSlot));
    const Bytes slot = rest.first(std::min(rest.size(), kSlot));
    if (slot.size() < kEncodedSize ||
        std::ranges::all_of(slot, [](std::byte byte) { return byte == std::byte{0}; })) {
      unwritten = true;
      ++bad;
    } else if (const auto state = decode(slot)) {
      if (state->generation >= found.state.generation) found.state = *state;
    } else {
      newer += is_newer(slot);
      ++bad;
    }
  }
  if (newer == kSlots) {
    return storage_error("'" + path + "' has a newer format than this version reads");
  }
  using Condition = ChannelFile::Condition;
  found.condition = bad == 0    ? Condition::kSound
                    : bad == 1  ? Condition::kRepaired
                    : unwritten ? Condition::kUnwritten
                                : Condition::kDamaged;
  return found;
}

}  // namespace kanal::log
