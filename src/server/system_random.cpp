#include "system_random.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <random>

#include "kanal/base/check.hpp"

namespace kanal::server {
namespace {

std::mt19937_64 seeded() {
  std::array<std::uint32_t, 16> seed{};
  ssize_t got = -1;
  do got = ::getrandom(seed.data(), sizeof seed, 0);
  while (got < 0 && errno == EINTR);
  CHECK(got == static_cast<ssize_t>(sizeof seed), "the kernel gives a seed");
  std::seed_seq sequence(seed.begin(), seed.end());
  return std::mt19937_64(sequence);
}

}  // namespace

std::uint64_t SystemRandom::next() {
  thread_local std::mt19937_64 generator = seeded();
  return generator();
}

}  // namespace kanal::server
