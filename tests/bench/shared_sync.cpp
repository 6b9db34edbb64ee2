// shared_sync FILE BATCHES BYTES ROUNDS: milliseconds, p50 and p99, of one shared sync, for durable.py.
//
// A round writes BATCHES batches of BYTES each one behind the other, with a write each, into a file whose blocks have all
// been written before, and makes them durable by one fdatasync: the least that acknowledging them after a sync can cost.
// The next round begins at the next page and goes round in the file. Prints "p50 p99".
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr size_t kRoom = 32 << 20;
constexpr size_t kPage = 4096;

void check(bool fine, const char* what) {
  if (!fine) {
    std::perror(what);
    std::exit(1);
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) {
    std::fputs("shared_sync FILE BATCHES BYTES ROUNDS\n", stderr);
    return 2;
  }
  const auto batches = std::stoul(arguments[2]);
  const auto bytes = std::stoul(arguments[3]);
  const auto rounds = std::stoul(arguments[4]);
  const std::string batch(bytes, 'x');
  const size_t round = (batches * bytes + kPage - 1) / kPage * kPage;
  check(round <= kRoom, "too much for the file");
  const int file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
  check(file >= 0, "open");
  const std::string zeros(1 << 20, '\0');
  for (size_t at = 0; at < kRoom; at += zeros.size()) {
    check(pwrite(file, zeros.data(), zeros.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(zeros.size()), "write");
  }
  check(fsync(file) == 0, "fsync");
  std::vector<double> took;
  size_t begin = 0;
  const size_t warm = std::min<size_t>(rounds / 10 + 1, 20);
  for (size_t each = 0; each < warm + rounds; ++each) {
    begin = begin + round > kRoom ? 0 : begin;
    const auto since = std::chrono::steady_clock::now();
    for (size_t at = 0; at < batches; ++at) {
      const auto where = static_cast<off_t>(begin + at * bytes);
      check(pwrite(file, batch.data(), bytes, where) == static_cast<ssize_t>(bytes), "write");
    }
    check(fdatasync(file) == 0, "fdatasync");
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - since;
    if (each >= warm) {
      took.push_back(time.count());
    }
    begin += round;
  }
  close(file);
  unlink(arguments[1]);
  std::sort(took.begin(), took.end());
  std::printf("%.4f %.4f\n", took[took.size() / 2], took[took.size() * 99 / 100]);
}
