// Bytes as a client may send them: cut into frames, headers read, bodies decoded by the decoder of
// their API and version. Nothing may crash, read out of bounds or take memory beyond the frame's
// due; what was decoded must encode and decode again. The first byte says how the rest is taken:
// even, a stream of frames in pieces of that many bytes; odd, one frame without its size.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "dispatch.hpp"
#include "frame.hpp"
#include "unit/wire/message_case.hpp"

namespace {

using namespace kanal;  // a fuzz target is a program of its own
using namespace kanal::server;

constexpr std::int32_t kLargestFrame = 1 << 20;

struct Api {
  handlers::Route route;
  const wire::MessageCase* request;
};

const std::vector<Api>& apis() {
  static const std::vector<Api> all = [] {
    std::vector<Api> made;
    for (const wire::MessageCase& each : wire::message_cases()) {
      if (each.api_key < 0 || !each.is_request()) continue;
      handlers::Route route{};
      route.key = static_cast<std::int16_t>(each.api_key);
      route.name = each.spoken;
      route.min_version = route.advertised_min = each.min_version;
      route.max_version = each.max_version;
      route.flexible_from = each.flexible_from;
      made.push_back({route, &each});
    }
    return made;
  }();
  return all;
}

const Api* find_api(std::int16_t key) {
  const auto found = std::ranges::find(apis(), key, [](const Api& api) { return api.route.key; });
  return found == apis().end() ? nullptr : &*found;
}

const handlers::Route* find_route(std::int16_t key) {
  const Api* api = find_api(key);
  return api == nullptr ? nullptr : &api->route;
}

void open_frame(MutableBytes frame) {
  OpenedRequest opened = open_request(frame, find_route);
  if (opened.verdict == Verdict::kRefuse) {
    if (opened.reason.empty()) std::abort();
    return;
  }
  if (opened.verdict != Verdict::kRun) return;
  const MutableBytes body = frame.last(opened.body.remaining());
  const auto decoded = find_api(opened.header.key)->request->recode(body, opened.header.version);
  if (!decoded) {
    if (decoded.error().detail.empty()) std::abort();
    return;
  }
  Buffer again = *decoded;
  const auto twice = find_api(opened.header.key)->request->recode(again, opened.header.version);
  if (!twice || *twice != *decoded) std::abort();
}

void feed(Bytes stream, std::size_t piece) {
  Buffer received;
  for (std::size_t at = 0; at < stream.size(); at += piece) {
    append(received, stream.subspan(at, std::min(piece, stream.size() - at)));
    for (;;) {
      const FrameExtent found = find_frame(received, kLargestFrame);
      if (found.state == FrameState::kInvalid) {
        if (describe_invalid_frame(received, kLargestFrame).empty()) std::abort();
        return;
      }
      if (found.state == FrameState::kPartial) break;
      Buffer frame(received.begin() + kSizeBytes,
                   received.begin() + static_cast<std::ptrdiff_t>(found.bytes));
      open_frame(frame);
      received.erase(received.begin(), received.begin() + static_cast<std::ptrdiff_t>(found.bytes));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes rest(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  if (data[0] % 2 == 0) {
    feed(rest, data[0] == 0 ? 1 : data[0]);
  } else {
    Buffer frame(rest.begin(), rest.end());
    open_frame(frame);
  }
  return 0;
}
