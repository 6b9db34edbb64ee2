#include "assignment.hpp"

#include "kanal/wire/reader.hpp"
#include "kanal/wire/writer.hpp"

namespace kanal::sim {

Buffer encode_assignment(const Assignment& assignment) {
  wire::Writer out;
  out.int32(assignment.generation);
  out.text(false, assignment.leader);
  out.text(false, assignment.member);
  out.int32(static_cast<std::int32_t>(assignment.partitions.size()));
  for (const auto& [topic, index] : assignment.partitions) {
    out.text(false, topic);
    out.int32(index);
  }
  return {out.bytes().begin(), out.bytes().end()};
}

std::optional<Assignment> decode_assignment(Bytes bytes) {
  wire::Reader in = wire::Reader::read_only(bytes);
  Assignment assignment;
  assignment.generation = in.int32("generation");
  assignment.leader = in.text(false, "leader");
  assignment.member = in.text(false, "member");
  const std::int32_t count = in.int32("partitions");
  for (std::int32_t i = 0; i < count && !in.failed(); ++i) {
    std::string topic(in.text(false, "topic"));
    const std::int32_t index = in.int32("index");
    assignment.partitions.emplace_back(std::move(topic), index);
  }
  if (in.failed() || in.remaining() > 0) return std::nullopt;
  return assignment;
}

}  // namespace kanal::sim
