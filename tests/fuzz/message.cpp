// Any bytes as the body of any message: two bytes pick the message, two its version, the rest is
// the body. Whatever is accepted is written, read and written again, and must not change on the
// way. Memory stays within the frame's budget.
#include "unit/wire/message_case.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kanal;
  using namespace kanal::wire;
  if (size < 4) return 0;
  const auto input = std::as_bytes(std::span(data, size));
  const std::span<const MessageCase> cases = message_cases();
  const MessageCase& message = cases[load_be<std::uint16_t>(input.data()) % cases.size()];
  const int versions = message.max_version - message.min_version + 1;
  const int chosen = load_be<std::uint16_t>(input.data() + 2) % versions;
  const auto version = static_cast<std::int16_t>(message.min_version + chosen);
  Buffer body(input.begin() + 4, input.end());
  Result<Buffer> once = message.recode(body, version);
  if (!once) return 0;
  const Result<Buffer> twice = message.recode(*once, version);
  if (!twice || *twice != *once) std::abort();
  return 0;
}
