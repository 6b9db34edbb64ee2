#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kanal/base/logging.hpp"
#include "world.hpp"

int main(int argc, char** argv) {
  kanal::sim::RunOptions options;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], "--seed=", 7) == 0)
      options.seed = std::strtoull(argv[i] + 7, nullptr, 10);
    if (std::strncmp(argv[i], "--steps=", 8) == 0)
      options.steps = std::strtoull(argv[i] + 8, nullptr, 10);
    if (std::strcmp(argv[i], "--trace") == 0) options.trace = true;
  }
  (void)kanal::set_log_level(options.trace ? "debug" : "off");
  kanal::sim::World world(options);
  const auto result = world.run();
  std::printf("steps=%lu digest=%lx starts=%lu records=%lu elapsed=%ld s %s\n", result.steps,
              result.digest, result.starts, result.records,
              long(result.elapsed.count() / 1000000000),
              result.violation ? result.violation->c_str() : "ok");
  return result.violation ? 1 : 0;
}
