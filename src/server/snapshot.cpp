#include "snapshot.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "control.hpp"
#include "kanal/base/file_copies.hpp"
#include "kanal/broker/snapshot.hpp"

namespace kanal::server {
namespace {

constexpr std::string_view kSnapshot = "snapshot ";

std::string told(const broker::SnapshotReport& report) {
  return fmt::format(
      "directory={} topics={} partitions={} segments={} linked_bytes={} copied_bytes={}",
      report.directory, report.topics, report.partitions, report.logs.segments,
      report.logs.linked_bytes, report.logs.copied_bytes);
}

int failed(const Error& why) {
  fmt::print(stderr, "kanald: no snapshot was made: {}\n", why.detail);
  return 1;
}

/// Inside the data directory only where nothing else looks.
Result<void> check_place(const std::string& data, const std::string& directory) {
  if (directory.find('\n') != std::string::npos)
    return fail(ErrorCode::INVALID_REQUEST, "the directory's name holds a line end");
  for (const std::string_view part : {"", "/channels", "/reserved"}) {
    const std::string taken = data + std::string(part);
    if (directory == taken || (!part.empty() && directory.starts_with(taken + "/")))
      return fail(ErrorCode::INVALID_REQUEST, "'" + directory + "' is the data itself");
  }
  return {};
}

}  // namespace

int snapshot_command(const Config& config, const std::string& directory) {
  const auto files = make_system_file_system();
  const std::string data = absolute_path(resolved_data_dir(config.data_dir));
  const std::string target = absolute_path(directory);
  if (auto fine = check_place(data, target); !fine) return failed(fine.error());
  const auto answer = ask_daemon(*files, data, std::string(kSnapshot) + target);
  if (answer) {
    fmt::print("Snapshot made. {}\n", *answer);
    return 0;
  }
  if (answer.error().os_error != ENOENT && answer.error().os_error != ECONNREFUSED)
    return failed(answer.error());
  const auto report = broker::snapshot_offline(*files, data, target);
  if (report) {
    fmt::print("Snapshot made; no daemon uses the data. {}\n", told(*report));
    return 0;
  }
  if (report.error().os_error != EWOULDBLOCK) return failed(report.error());
  return failed({ErrorCode::KAFKA_STORAGE_ERROR,
                 "a kanald uses '" + data +
                     "' and does not answer at its control socket: " + answer.error().detail});
}

Result<std::string> answer_control(broker::Broker& broker, const std::string& line,
                                   const std::function<bool()>& cancelled) {
  if (!line.starts_with(kSnapshot))
    return fail(ErrorCode::INVALID_REQUEST, "this daemon knows only: snapshot DIR");
  const std::string directory = line.substr(kSnapshot.size());
  if (!directory.starts_with('/') || directory != absolute_path(directory))
    return fail(ErrorCode::INVALID_REQUEST, "the directory is no absolute path");
  if (auto fine = check_place(broker.data_dir(), directory); !fine)
    return std::unexpected(std::move(fine.error()));
  const auto report = broker.snapshot(directory, cancelled);
  if (!report) return std::unexpected(report.error());
  return told(*report);
}

}  // namespace kanal::server
