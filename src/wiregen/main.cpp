// wiregen SCHEMA_DIRECTORY OUTPUT_DIRECTORY: reads the schemas, writes headers, codecs, routes,
// test cases and docs. A file is only touched if its text changes, so that an edited schema
// recompiles what depends on it and no more.
#include "emit.hpp"
#include "parse.hpp"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kanal::wiregen {
namespace {

constexpr int kCodecFiles =
    4;  // an API's codec goes to file key % 4: adding one recompiles one file

void write_if_changed(const std::filesystem::path& path, const std::string& text) {
  std::ifstream old(path, std::ios::binary);
  if (old) {
    std::ostringstream current;
    current << old.rdbuf();
    if (current.str() == text) return;
  }
  old.close();
  std::filesystem::create_directories(path.parent_path());
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream << text;
  stream.close();
  if (!stream) throw std::runtime_error("cannot write " + path.string());
}

void generate(const Protocol& protocol, const std::filesystem::path& out) {
  const std::filesystem::path headers = out / "include/kanal/wire";
  for (const Api& api : protocol.apis) {
    write_if_changed(headers / "messages" / (api.snake_name + ".hpp"), emit_api_header(api));
  }
  write_if_changed(headers / "headers.hpp", emit_headers_header(protocol.headers));
  write_if_changed(headers / "stored.hpp", emit_stored_header(protocol.records));
  for (int file = 0; file < kCodecFiles; ++file) {
    std::vector<const Api*> apis;
    for (const Api& api : protocol.apis) {
      if (api.key % kCodecFiles == file) apis.push_back(&api);
    }
    const std::vector<Message> none;
    const std::string text = emit_codecs(apis, file == 0 ? protocol.headers : none);
    write_if_changed(out / "wire" / ("codec_" + std::to_string(file) + ".cpp"), text);
  }
  write_if_changed(out / "wire/codec_stored.cpp", emit_stored_codecs(protocol.records));
  write_if_changed(out / "handlers/routes.cpp", emit_routes(protocol));
  write_if_changed(out / "tests/message_cases.cpp", emit_cases(protocol));
  write_if_changed(out / "docs/wire_api.md", emit_docs(protocol));
}

}  // namespace
}  // namespace kanal::wiregen

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fputs("usage: wiregen SCHEMA_DIRECTORY OUTPUT_DIRECTORY\n", stderr);
    return 2;
  }
  try {
    kanal::wiregen::generate(kanal::wiregen::load_directory(argv[1]), argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
