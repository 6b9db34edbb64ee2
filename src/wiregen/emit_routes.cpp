#include "emit.hpp"

namespace kanal::wiregen {
namespace {

void emit_run(Lines& out, const Api& api) {
  const std::string request = "wire::" + api.request.name;
  const std::string response = "wire::" + api.response.name;
  out.line("broker::Task<" + response + "> handle(broker::Context& context, " + request +
           " request);");
  out.line();
  out.open(
      "static broker::Task<Result<void>> run_" + api.snake_name +
      "(broker::Context& context, wire::Reader& body, std::int16_t version, wire::Writer& out) {");
  out.line(request + " request;");
  out.line("Result<void> decoded = wire::decode(body, version, request);");
  out.line("if (!decoded) co_return decoded;");
  out.line("broker::Task<" + response + "> answer = handle(context, std::move(request));");
  out.line("const " + response + " response = co_await std::move(answer);");
  out.line("if (!context.suppress_response) wire::encode(out, version, response);");
  out.line("co_return decoded;");
  out.close();
  out.line();
}

}  // namespace

std::string emit_routes(const Protocol& protocol) {
  Lines out;
  out.line(kGeneratedNotice);
  out.line(
      "// A handler that is missing here does not link: it is defined in "
      "src/handlers/NN_name.cpp.");
  out.line("#include \"kanal/handlers/route.hpp\"");
  out.line();
  for (const Api& api : protocol.apis)
    out.line("#include \"kanal/wire/messages/" + api.snake_name + ".hpp\"");
  out.line();
  out.line("#include <algorithm>");
  out.line("#include <utility>");
  out.line();
  out.line("namespace kanal::handlers {");
  out.line();
  for (const Api& api : protocol.apis) emit_run(out, api);
  out.open("static constexpr Route kRoutes[] = {");
  for (const Api& api : protocol.apis) {
    out.line("{" + std::to_string(api.key) + ", \"" + api.name + "\", " +
             std::to_string(api.versions.min) + ", " + std::to_string(api.versions.max) + ", " +
             std::to_string(api.advertised_min) + ", " + std::to_string(api.flexible_from) + ", " +
             std::to_string(api.response_header.value_or(-1)) + ", run_" + api.snake_name + "},");
  }
  out.close("};");
  out.line();
  out.open("const Route* find_route(std::int16_t key) noexcept {");
  out.line("const auto* found = std::ranges::lower_bound(kRoutes, key, {}, &Route::key);");
  out.line("return found != std::end(kRoutes) && found->key == key ? found : nullptr;");
  out.close();
  out.line();
  out.line("std::span<const Route> routes() noexcept { return kRoutes; }");
  out.line();
  out.line("}  // namespace kanal::handlers");
  return out.take();
}

}  // namespace kanal::wiregen
