// sim: runs simulated worlds and stops at the first violation, with the command that replays it.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "kanal/base/logging.hpp"
#include "world.hpp"

namespace {

using namespace kanal::sim;

constexpr std::uint64_t kShortSteps = 600;
constexpr std::pair<std::string_view, Strike::Kind> kStrikes[] = {
    {"error", Strike::Kind::kError},
    {"full", Strike::Kind::kFull},
    {"power-cut", Strike::Kind::kPowerCut}};

constexpr const char* kUsage =
    "sim [--seed=N] [--steps=M] [--trace]  one world; the same seed and steps are the same run\n"
    "    --runs=K           K worlds, of the seeds from N on\n"
    "    --random           N is drawn\n"
    "    --mutant=NAME      plants a bug, which is to be found\n"
    "    --mutants          plants each bug in turn; each has to be found in one of the K worlds\n"
    "    --every            the short run of seed N: each change of disk and store in turn fails "
    "(EIO,\n"
    "                       ENOSPC) or is where the power goes; K seeds, of each 1 in --one-in\n"
    "    --one-in=J         every J-th of them only\n"
    "    --strike=KIND:I    one of these runs; KIND is error, full or power-cut\n"
    "    --twice            each world twice, which has to be the same\n";

struct Options {
  RunOptions run;
  std::uint64_t runs = 1;
  std::uint64_t one_in = 1;
  bool mutants = false, twice = false, every = false, wrong = false;
};

std::optional<std::string_view> value_of(std::string_view argument, std::string_view name) {
  if (!argument.starts_with(name) || argument.size() == name.size()) return std::nullopt;
  if (argument[name.size()] != '=') return std::nullopt;
  return argument.substr(name.size() + 1);
}

bool read_number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size();
}

bool read_strike(std::string_view text, Strike& into) {
  for (const auto& [name, kind] : kStrikes) {
    if (!text.starts_with(name) || text.size() <= name.size()) continue;
    into.kind = kind;
    return read_number(text.substr(name.size() + 1), into.at);
  }
  return false;
}

bool read_mutant(std::string_view text, Mutant& into) {
  for (const MutantRow& row : mutants()) {
    if (row.name != text) continue;
    into = row.mutant;
    return true;
  }
  return false;
}

Options read_options(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument(argv[i]);
    bool good = true;
    if (const auto seed = value_of(argument, "--seed")) {
      good = read_number(*seed, options.run.seed);
    } else if (const auto steps = value_of(argument, "--steps")) {
      good = read_number(*steps, options.run.steps);
    } else if (const auto runs = value_of(argument, "--runs")) {
      good = read_number(*runs, options.runs);
    } else if (const auto mutant = value_of(argument, "--mutant")) {
      good = read_mutant(*mutant, options.run.mutant);
    } else if (const auto share = value_of(argument, "--one-in")) {
      good = read_number(*share, options.one_in) && options.one_in > 0;
    } else if (const auto strike = value_of(argument, "--strike")) {
      good = read_strike(*strike, options.run.strike);
      options.run.short_run = true;
    } else if (argument == "--short") {
      options.run.short_run = true;
    } else if (argument == "--every") {
      options.every = true;
    } else if (argument == "--random") {
      options.run.seed = std::random_device()();
    } else if (argument == "--trace") {
      options.run.trace = true;
    } else if (argument == "--mutants") {
      options.mutants = true;
    } else if (argument == "--twice") {
      options.twice = true;
    } else {
      good = false;
    }
    options.wrong |= !good;
  }
  return options;
}

RunResult run_world(const RunOptions& options) {
  World world(options);
  return world.run();
}

void print_violation(const RunOptions& options, const std::string& violation) {
  std::string mutant;
  for (const MutantRow& row : mutants()) {
    if (row.mutant == options.mutant) mutant = " --mutant=" + std::string(row.name);
  }
  for (const auto& [name, kind] : kStrikes) {
    if (kind == options.strike.kind)
      mutant += " --strike=" + std::string(name) + ":" + std::to_string(options.strike.at);
  }
  if (options.short_run) mutant += " --short";
  std::printf("VIOLATION seed=%llu: %s\nreplay: sim --seed=%llu --steps=%llu%s --trace\n",
              static_cast<unsigned long long>(options.seed), violation.c_str(),
              static_cast<unsigned long long>(options.seed),
              static_cast<unsigned long long>(options.steps), mutant.c_str());
}

/// Each change of the short run: all of them, or every `one_in`-th.
bool strike_each(const Options& options) {
  const auto begin = std::chrono::steady_clock::now();
  std::uint64_t runs = 0, steps = 0;
  for (std::uint64_t seed = options.run.seed; seed < options.run.seed + options.runs; ++seed) {
    RunOptions run = options.run;
    run.short_run = true;
    run.seed = seed;
    run.steps = std::min(run.steps, kShortSteps);
    const RunResult whole = run_world(run);
    if (whole.violation) return print_violation(run, *whole.violation), false;
    std::printf("seed %llu: %llu changes in %.0f s, %llu records, %llu starts\n",
                static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(whole.changes),
                std::chrono::duration<double>(whole.elapsed).count(),
                static_cast<unsigned long long>(whole.records),
                static_cast<unsigned long long>(whole.starts));
    std::fflush(stdout);
    for (const auto& [name, kind] : kStrikes) {
      for (std::uint64_t at = seed % options.one_in; at < whole.changes; at += options.one_in) {
        run.strike = {kind, at};
        const RunResult result = run_world(run);
        ++runs;
        steps += result.steps;
        if (result.violation) return print_violation(run, *result.violation), false;
      }
    }
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf("%llu strikes, %llu steps without a violation; %.1f s\n",
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(steps),
              took.count());
  return true;
}

bool run_worlds(Options options) {
  std::uint64_t steps = 0, starts = 0, records = 0;
  kanal::Duration elapsed{};
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < options.runs; ++i, ++options.run.seed) {
    RunResult result = run_world(options.run);
    if (!result.violation && options.twice && run_world(options.run).digest != result.digest) {
      result.violation = "the same seed is not the same run";
    }
    if (result.violation) {
      print_violation(options.run, *result.violation);
      return false;
    }
    steps += result.steps;
    starts += result.starts;
    records += result.records;
    elapsed += result.elapsed;
    if (options.runs == 1)
      std::printf("digest=%016llx\n", static_cast<unsigned long long>(result.digest));
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::printf(
      "%llu worlds, %llu steps, %llu starts of the broker, %llu records, %.0f s of virtual time "
      "without a violation; %.1f s, %.0f steps/s\n",
      static_cast<unsigned long long>(options.runs), static_cast<unsigned long long>(steps),
      static_cast<unsigned long long>(starts), static_cast<unsigned long long>(records),
      std::chrono::duration<double>(elapsed).count(), took.count(),
      static_cast<double>(steps) / took.count());
  return true;
}

bool find_mutants(const Options& options) {
  bool all = true;
  for (const MutantRow& row : mutants()) {
    bool found = false;
    for (std::uint64_t i = 0; i < options.runs && !found; ++i) {
      RunOptions run = options.run;
      run.seed += i;
      run.mutant = row.mutant;
      const RunResult result = run_world(run);
      found = result.violation.has_value();
      if (found) {
        std::printf("%-32s found by seed %llu: %.200s\n", std::string(row.name).c_str(),
                    static_cast<unsigned long long>(run.seed), result.violation->c_str());
      }
    }
    if (!found) {
      std::printf("%-32s NOT FOUND in %llu worlds (%s)\n", std::string(row.name).c_str(),
                  static_cast<unsigned long long>(options.runs), std::string(row.bug).c_str());
    }
    std::fflush(stdout);
    all &= found;
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = read_options(argc, argv);
  if (options.wrong) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  (void)kanal::set_log_level(options.run.trace ? "debug" : "off");
  const bool good = options.mutants ? find_mutants(options)
                    : options.every ? strike_each(options)
                                    : run_worlds(options);
  return good ? 0 : 1;
}
