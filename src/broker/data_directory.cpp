#include "data_directory.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>

#include "kanal/records/batch.hpp"

namespace kanal::broker {
namespace {

constexpr std::uint64_t kMetaLimit = 4096;
constexpr std::string_view kFirstLine = "kanal-data ";
constexpr std::string_view kStopFile = "/stopped";
constexpr std::string_view kStopLine = "kanal-stop 1";
constexpr std::string_view kReserved = "reserved=";

std::unexpected<Error> refuse(std::string why) {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, std::move(why));
}

// "key=value\n" at the front of `text`, which is cut by it.
std::optional<std::string> take_line(std::string_view& text, std::string_view key) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(key)) return std::nullopt;
  std::string value(text.substr(key.size(), end - key.size()));
  text.remove_prefix(end + 1);
  return value;
}

std::string sum_line(std::string_view text) {
  return fmt::format("crc32c={:08x}\n", records::crc32c(as_bytes(text)));
}

}  // namespace

std::string encode_meta(const DirectoryMeta& meta) {
  std::string text = fmt::format("{}{}\ncluster.id={}\nnode.id={}\n", kFirstLine, kDataFormat,
                                 meta.cluster_id, meta.node.value());
  text += sum_line(text);
  return text;
}

Result<DirectoryMeta> decode_meta(const std::string& text) {
  std::string_view rest = text;
  const auto format = take_line(rest, kFirstLine);
  if (!format)
    return refuse("meta does not begin with 'kanal-data': this is not a data directory of kanald");
  if (text.starts_with(kUnfinishedMeta))
    return refuse("it is a snapshot that was never finished: remove it");
  int number = 0;
  const auto [at, error] = std::from_chars(format->data(), format->data() + format->size(), number);
  if (error != std::errc{} || at != format->data() + format->size())
    return refuse("meta has no readable format version");
  // The version comes before the checksum: a newer format may sum otherwise.
  if (number > kDataFormat) {
    return refuse(
        fmt::format("the data has format {}, this kanald knows up to {}: use a newer kanald",
                    number, kDataFormat));
  }
  const auto cluster = take_line(rest, "cluster.id=");
  const auto node = cluster ? take_line(rest, "node.id=") : std::nullopt;
  if (!node) return refuse("meta is damaged");
  const std::string_view summed(text.data(), text.size() - rest.size());
  const auto sum = take_line(rest, "crc32c=");
  if (!sum || *sum != fmt::format("{:08x}", records::crc32c(as_bytes(summed))))
    return refuse("meta fails its checksum");
  std::int32_t id = 0;
  std::from_chars(node->data(), node->data() + node->size(), id);
  return DirectoryMeta{*cluster, NodeId(id)};
}

Result<DirectoryMeta> read_meta(FileSystem& files, const std::string& directory) {
  const auto content = read_file(files, directory + "/meta", kMetaLimit);
  if (!content) return std::unexpected(content.error());
  return decode_meta(std::string(as_text(*content)));
}

Result<DataDirectory> DataDirectory::open(FileSystem& files, const std::string& path) {
  DataDirectory directory;
  directory.path_ = path;
  if (auto made = files.create_directories(path); !made) return std::unexpected(made.error());
  auto meta = read_meta(files, path);
  if (meta)
    directory.meta_ = std::move(*meta);
  else if (meta.error().os_error == 0)
    return refuse("data directory '" + path + "': " + meta.error().detail);
  else if (meta.error().os_error != ENOENT)
    return std::unexpected(meta.error());
  auto lock = files.lock(path + "/lock");
  if (!lock && lock.error().os_error == EWOULDBLOCK) {
    return fail(ErrorCode::KAFKA_STORAGE_ERROR,
                "the data directory '" + path +
                    "' is in use by another kanald: stop it or name another --data-dir",
                EWOULDBLOCK);
  }
  if (!lock) return std::unexpected(lock.error());
  directory.lock_ = std::move(*lock);
  // Links that a killed process had taken for a snapshot hold on to what is deleted.
  (void)files.remove_all(path + "/" + std::string(kLinksDirectory));
  return directory;
}

Result<void> DataDirectory::write_meta(FileSystem& files, const DirectoryMeta& meta) {
  meta_ = meta;
  return replace_file(files, path_ + "/meta", as_bytes(encode_meta(meta)));
}

Result<void> DataDirectory::write_stop(FileSystem& files, std::uint64_t reserved_position) const {
  std::string text = fmt::format("{}\n{}{}\n", kStopLine, kReserved, reserved_position);
  text += sum_line(text);
  return replace_file(files, path_ + std::string(kStopFile), as_bytes(text));
}

Result<std::uint64_t> read_stop(FileSystem& files, const std::string& directory) {
  const auto content = read_file(files, directory + std::string(kStopFile), kMetaLimit);
  if (!content) return std::unexpected(content.error());
  std::string_view rest = as_text(*content);
  const auto format = take_line(rest, kStopLine);
  const auto number = format && format->empty() ? take_line(rest, kReserved) : std::nullopt;
  if (!number || rest != sum_line(as_text(*content).substr(0, content->size() - rest.size())))
    return refuse("stopped is damaged");
  std::uint64_t position = 0;
  std::from_chars(number->data(), number->data() + number->size(), position);
  return position;
}

}  // namespace kanal::broker
