// write_seeds DIRECTORY: one file for every message in every version, to start fuzzing from:
// request/ has what follows a frame's size (header and body), response/ bodies, stored/ the records
// of reserved channels; fuzz/TARGET/ the same in the form that a fuzz target takes.
// write_seeds --hex: the bodies as "message, version, pattern, hex" lines, to
// hold them against another encoder.
#include "kanal/wire/headers.hpp"
#include "unit/wire/message_case.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace kanal::wire {
namespace {

struct Style {
  const char* name;
  Pattern pattern;
  std::uint64_t seed;
};
constexpr Style kStyles[] = {{"filled", Pattern::kFilled, 0},
                             {"nulls", Pattern::kNulls, 0},
                             {"extremes", Pattern::kExtremes, 0},
                             {"random", Pattern::kRandom, 1}};

template <class Body>
void for_every_sample(Body body) {
  for (const MessageCase& message : message_cases()) {
    for (int number = message.min_version; number <= message.max_version; ++number) {
      const auto version = static_cast<std::int16_t>(number);
      for (const Style& style : kStyles) {
        Filler fill(style.pattern, style.seed);
        body(message, version, style, message.sample(fill, version));
      }
    }
  }
}

void print_hex() {
  for_every_sample([](const MessageCase& message, std::int16_t version, const Style& style,
                      const Buffer& sample) {
    std::printf("%s\t%d\t%s\t", std::string(message.name).c_str(), version, style.name);
    for (const std::byte octet : sample) std::printf("%02x", std::to_integer<unsigned>(octet));
    std::printf("\n");
  });
}

std::string folder_of(const MessageCase& message) {
  if (message.is_request()) return "request";
  if (message.record_type >= 0) return "stored";
  return message.api_key >= 0 ? "response" : "header";
}

Buffer with_head(const MessageCase& message, std::int16_t version, const Buffer& body) {
  Writer out;
  if (message.is_request()) {
    RequestHeader header;
    header.request_api_key = static_cast<std::int16_t>(message.api_key);
    header.request_api_version = version;
    header.correlation_id = 1;
    header.client_id = "seed";
    encode(out, version >= message.flexible_from ? std::int16_t{2} : std::int16_t{1}, header);
  } else if (message.record_type >= 0) {
    out.int16(static_cast<std::int16_t>(message.record_type));
    out.int16(version);
  }
  out.raw(body);
  return {out.bytes().begin(), out.bytes().end()};
}

void write_file(const std::filesystem::path& path, const std::string& before, const Buffer& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file << before;
  file.write(as_text(bytes).data(), static_cast<std::streamsize>(bytes.size()));
}

/// What fuzz_message wants in front: which message, which of its versions.
std::string choice_of(const MessageCase& message, std::int16_t version) {
  Writer out;
  out.int16(static_cast<std::int16_t>(&message - message_cases().data()));
  out.int16(static_cast<std::int16_t>(version - message.min_version));
  return std::string(as_text(out.bytes()));
}

void write_files(const std::filesystem::path& directory) {
  for_every_sample([&](const MessageCase& message, std::int16_t version, const Style& style,
                       const Buffer& sample) {
    const std::string name =
        std::string(message.name) + "_v" + std::to_string(version) + "_" + style.name;
    const Buffer whole = with_head(message, version, sample);
    const std::filesystem::path fuzz = directory / "fuzz";
    write_file(directory / folder_of(message) / name, "", whole);
    write_file(fuzz / "message" / name, choice_of(message, version), sample);
    if (message.is_request()) write_file(fuzz / "frame" / name, "\x01", whole);
    if (message.record_type >= 0) write_file(fuzz / "stored_record" / name, "", whole);
  });
}

}  // namespace
}  // namespace kanal::wire

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_seeds DIRECTORY | --hex\n", stderr);
    return 2;
  }
  if (std::string(argv[1]) == "--hex")
    kanal::wire::print_hex();
  else
    kanal::wire::write_files(argv[1]);
  return 0;
}
