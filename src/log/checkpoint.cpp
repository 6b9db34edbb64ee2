#include "checkpoint.hpp"

#include "blob.hpp"

namespace kanal::log {
namespace {

constexpr std::string_view kOneMagic = "KNLC";
constexpr std::string_view kAllMagic = "KNLS";
constexpr std::uint16_t kVersion = 1;
constexpr std::uint64_t kMaxFile = std::uint64_t{1} << 30;  // of one channel
constexpr std::uint16_t kLayoutVersion = 2;  // 1: no generations

void encode(BlobWriter& writer, const SavedChannel& channel) {
  writer.sized(as_bytes(channel.id.name));
  writer.uuid(channel.id.topic_id);
  writer.id(channel.id.partition);
  writer.number(static_cast<std::uint32_t>(channel.clean));
  writer.id(channel.checkpoint.upto);
  writer.sized(channel.checkpoint.layout);
  writer.sized(channel.checkpoint.state);
}

SavedChannel decode(BlobReader& reader) {
  SavedChannel channel;
  channel.id.name = as_text(reader.sized());
  channel.id.topic_id = reader.uuid();
  channel.id.partition = reader.id<PartitionIndex>();
  channel.clean = reader.number<std::uint32_t>() != 0;
  channel.checkpoint.upto = reader.id<Sequence>();
  const Bytes layout = reader.sized();
  channel.checkpoint.layout.assign(layout.begin(), layout.end());
  const Bytes state = reader.sized();
  channel.checkpoint.state.assign(state.begin(), state.end());
  return channel;
}

/// A checksum says that it is what was written; this, that it can be what a log looked like.
bool is_in_order(const Layout& layout) {
  Sequence last(1);
  for (const SegmentLayout& segment : layout.segments) {
    if (segment.base < last || segment.end < segment.base) return false;
    last = segment.end;
  }
  return layout.start >= Sequence(1) && layout.start <= layout.end && last <= layout.end &&
         is_stored(layout.end);
}

}  // namespace

std::vector<std::byte> encode_layout(const Layout& layout) {
  BlobWriter writer;
  writer.number(kLayoutVersion);
  writer.id(layout.start);
  writer.id(layout.end);
  writer.number(layout.generation);
  writer.number(static_cast<std::uint32_t>(layout.created));
  writer.id(layout.last_epoch);
  writer.number(layout.appended);
  writer.number(static_cast<std::uint32_t>(layout.segments.size()));
  for (const SegmentLayout& segment : layout.segments) {
    writer.id(segment.base);
    writer.id(segment.end);
    writer.number(segment.size);
    writer.id(segment.first_timestamp);
    writer.id(segment.max_timestamp);
    writer.number(segment.generation);
  }
  return writer.take();
}

Result<Layout> decode_layout(Bytes bytes) {
  BlobReader reader(bytes);
  Layout layout;
  const auto version = reader.number<std::uint16_t>();
  if (version < 1 || version > kLayoutVersion)
    return storage_error("its layout has another version");
  layout.start = reader.id<Sequence>();
  layout.end = reader.id<Sequence>();
  layout.generation = reader.number<std::uint64_t>();
  layout.created = reader.number<std::uint32_t>() != 0;
  layout.last_epoch = reader.id<LeaderEpoch>();
  layout.appended = reader.number<std::uint64_t>();
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.good(); ++i) {
    SegmentLayout& segment = layout.segments.emplace_back();
    segment.base = reader.id<Sequence>();
    segment.end = reader.id<Sequence>();
    segment.size = reader.number<std::uint64_t>();
    segment.first_timestamp = reader.id<Timestamp>();
    segment.max_timestamp = reader.id<Timestamp>();
    if (version >= 2) segment.generation = reader.number<std::uint32_t>();
  }
  if (!reader.done()) return storage_error("its layout has the wrong length");
  if (!is_in_order(layout)) return storage_error("its segments are out of order");
  return layout;
}

Buffer encode_checkpoint(const SavedChannel& channel) {
  BlobWriter writer;
  encode(writer, channel);
  return writer.seal(kOneMagic, kVersion);
}

Result<SavedChannel> decode_checkpoint(Bytes file) {
  const auto payload = open_blob(file, kOneMagic, kVersion);
  if (!payload) return std::unexpected(payload.error());
  BlobReader reader(*payload);
  SavedChannel channel = decode(reader);
  if (!reader.done()) return storage_error("its length does not match");
  return channel;
}

Result<SavedChannel> read_checkpoint(FileSystem& files, const std::string& path) {
  const auto bytes = read_file(files, path, kMaxFile);
  return bytes ? decode_checkpoint(*bytes) : std::unexpected(bytes.error());
}

Buffer encode_all(const std::vector<SavedChannel>& channels) {
  BlobWriter writer;
  writer.number(static_cast<std::uint32_t>(channels.size()));
  for (const SavedChannel& channel : channels) encode(writer, channel);
  return writer.seal(kAllMagic, kVersion);
}

Result<std::unordered_map<std::string, SavedChannel>> decode_all(Bytes file) {
  const auto payload = open_blob(file, kAllMagic, kVersion);
  if (!payload) return std::unexpected(payload.error());
  BlobReader reader(*payload);
  std::unordered_map<std::string, SavedChannel> channels;
  const auto count = reader.number<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && reader.good(); ++i) {
    SavedChannel channel = decode(reader);
    std::string name = channel.id.name;
    channels.insert_or_assign(std::move(name), std::move(channel));
  }
  if (!reader.done()) return storage_error("its length does not match");
  return channels;
}

}  // namespace kanal::log
