// history_check FILE: what a recorded history breaks; exit code 1 if anything.
#include <cstdio>
#include <exception>

#include "checker.hpp"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fputs("history_check FILE\n", stderr);
    return 2;
  }
  try {
    const auto violations = kanal::e2e::check(kanal::e2e::read_history(arguments[1]));
    for (const auto& [rule, text] : violations) std::printf("%s: %s\n", rule.c_str(), text.c_str());
    std::printf("%zu violations\n", violations.size());
    return violations.empty() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "history_check: %s\n", error.what());
    return 2;
  }
}
