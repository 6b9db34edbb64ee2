// kanald: reads as a list of what happens from the command line to the last checkpoint.
#include <cstdio>
#include <span>

#include "check_data.hpp"
#include "config.hpp"
#include "daemon.hpp"
#include "kanal/base/logging.hpp"
#include "signals.hpp"
#include "snapshot.hpp"

namespace {

using namespace kanal;
using namespace kanal::server;

int report(const ConfigProblems& problems) {
  for (const ConfigProblem& problem : problems)
    std::fprintf(stderr, "kanald: %s\n", to_string(problem).c_str());
  return kExitBadConfig;
}

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return 0;
}

std::expected<Config, ConfigProblems> read_config(const CommandLine& command) {
  std::optional<std::string> text;
  if (command.config_file) {
    auto read = read_config_file(*command.config_file);
    if (!read) return std::unexpected(read.error());
    text = std::move(*read);
  }
  return load_config(command, read_environment(), text);
}

int serve(const Config& config, const std::optional<std::string>& ready_file) {
  StopSignals signals;
  auto daemon = Daemon::start(config, KANAL_VERSION, ready_file);
  if (!daemon) {
    logger("server").critical("Cannot start: {}", daemon.error().detail);
    return 1;
  }
  const int signal = signals.wait();
  logger("server").info("Stopping. signal={}", signal);
  return (*daemon)->stop() ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  const auto command = parse_command_line(
      std::span<const char* const>(arguments, static_cast<std::size_t>(count)).subspan(1));
  if (!command) return report(command.error());
  if (command->help) return print(help_text());
  if (command->version) return print("kanald " KANAL_VERSION "\n");
  if (command->check_data) return check_data_command(*command->check_data);
  const auto config = read_config(*command);
  if (!config) return report(config.error());
  if (command->print_config) return print(print_config(*config));
  if (command->check_config) return print("The configuration is fine.\n");
  (void)set_log_level(config->log_level);
  if (command->snapshot) return snapshot_command(*config, *command->snapshot);
  return serve(*config, command->ready_file);
}
