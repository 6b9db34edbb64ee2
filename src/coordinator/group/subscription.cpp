#include "subscription.hpp"

#include "kanal/wire/reader.hpp"

namespace kanal::coordinator {

std::optional<std::vector<std::string>> subscribed_topics(Bytes metadata) {
  wire::Reader in = wire::Reader::read_only(metadata);
  (void)in.int16("version");
  const wire::Reader::ElementSize topic_size{.wire = 2, .memory = sizeof(std::string)};
  const std::size_t count = in.array_size(false, topic_size, "topics");
  std::vector<std::string> topics;
  for (std::size_t i = 0; i < count && !in.failed(); ++i) {
    topics.emplace_back(in.text(false, "topic"));
  }
  (void)in.nullable_blob(false, "user data");
  if (in.failed()) return std::nullopt;
  return topics;
}

}  // namespace kanal::coordinator
