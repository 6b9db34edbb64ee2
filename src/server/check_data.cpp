#include "check_data.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "kanal/base/file_copies.hpp"
#include "kanal/base/logging.hpp"
#include "kanal/broker/check_data.hpp"
#include "system_clock.hpp"

namespace kanal::server {
namespace {

using broker::DataReport;
using Weight = Finding::Weight;

std::string_view word(Weight weight) {
  switch (weight) {
    case Weight::kNote:
      return "note";
    case Weight::kRecoverable:
      return "recoverable";
    case Weight::kRepairable:
      return "DAMAGED, made again by a start";
    case Weight::kDamage:
      return "DAMAGE";
  }
  return "";
}

/// Names in it are what clients sent: a line stays one, and of a length to read.
std::string one_line(std::string_view text) {
  constexpr std::size_t kMost = 1000;
  std::string line;
  for (const char each : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte < 0x20 || byte == 0x7F) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line += each;
    }
  }
  if (text.size() > kMost) line += "...";
  return line;
}

void print(const Finding& finding) {
  const std::string place =
      finding.position ? finding.file + ":" + std::to_string(*finding.position) : finding.file;
  std::string text = one_line(finding.text);
  if (text.ends_with('.')) text.pop_back();
  fmt::print("{}: {}: {}.\n", one_line(place), word(finding.weight), text);
}

/// A line every two seconds, on the other stream.
class ProgressLine {
 public:
  void operator()(const log::ChannelFigures& figures) {
    const Time now = clock_.now();
    if (now - last_ < std::chrono::seconds(2)) return;
    last_ = now;
    fmt::print(stderr, "checked {} partitions, {} segments, {:.1f} GB\n", figures.channels,
               figures.segments, static_cast<double>(figures.bytes) / 1e9);
  }

 private:
  SystemClock clock_;
  Time last_ = clock_.now();
};

void print(const DataReport& report, const std::string& directory) {
  fmt::print("Checked {}: cluster {}, node {}, leader epoch of the last start {}; {}.\n", directory,
             report.cluster_id.empty() ? "?" : report.cluster_id, report.node.value(),
             report.leader_epoch.value(), report.clean ? "stopped cleanly" : "not stopped cleanly");
  fmt::print("  {} topics, {} partitions, {} groups, {} committed offsets, {} transactional ids\n",
             report.topics, report.partitions, report.groups, report.committed_offsets,
             report.transactional_ids);
  fmt::print("  reserved channels: {} channels, {} records, {} bytes\n", report.reserved.channels,
             report.reserved.records, report.reserved.bytes);
  fmt::print("  logs: {} channels, {} segments, {} batches, {} records, {} bytes\n",
             report.logs.channels, report.logs.segments, report.logs.batches, report.logs.records,
             report.logs.bytes);
  const std::size_t recoverable = report.count(Weight::kRecoverable);
  if (!report.sound()) {
    fmt::print("Result: DAMAGED. data={} files_made_again={} recoverable={}\n",
               report.count(Weight::kDamage), report.count(Weight::kRepairable), recoverable);
  } else if (recoverable > 0) {
    fmt::print(
        "Result: recoverable. The next start puts right what a crash left; nothing that was "
        "promised is lost. recoverable={}\n",
        recoverable);
  } else {
    fmt::print("Result: sound.\n");
  }
}

}  // namespace

int check_data_command(const std::string& directory) {
  (void)set_log_level("error");  // what matters is a finding
  const auto files = make_system_file_system();
  broker::DataCheck check;
  check.directory = absolute_path(directory);
  check.found = [](const Finding& finding) { print(finding); };
  check.progress = ProgressLine();
  const auto report = broker::check_data(*files, check);
  if (!report) {
    fmt::print(stderr, "kanald: cannot check: {}\n", report.error().detail);
    return 2;
  }
  print(*report, check.directory);
  return report->sound() ? 0 : 1;
}

}  // namespace kanal::server
