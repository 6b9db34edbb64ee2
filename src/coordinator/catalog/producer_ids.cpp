#include "kanal/coordinator/producer_ids.hpp"

#include "stored.hpp"
#include "stored_record.hpp"

#include <limits>

namespace kanal::coordinator {

ProducerIds::Effects ProducerIds::step(Time, const AllocateProducerIds&) const {
  Effects effects;
  if (next_.value() > std::numeric_limits<std::int64_t>::max() - kBlockSize) {
    effects.replies.emplace_back(
        fail(ErrorCode::UNKNOWN_SERVER_ERROR, "All producer ids have been handed out."));
    return effects;
  }
  const ProducerId end = next_ + kBlockSize;
  effects.records.push_back({"", encode_next_producer_id(end)});
  effects.replies.emplace_back(ProducerIdBlock(next_, end));
  return effects;
}

Result<void> ProducerIds::apply(const Record& record) {
  if (record.ends_channel()) {
    next_ = ProducerId(0);
    return {};
  }
  const auto next = decode_next_producer_id(record.body);
  if (!next) return std::unexpected(damaged("_KAFKA_PIDS_", next.error()));
  // A step back would hand out ids twice. Equal: the snapshot of a roll.
  if (*next < next_) {
    const Error cause{.detail = "the next producer id goes back from " +
                                std::to_string(next_.value()) + " to " +
                                std::to_string(next->value())};
    return std::unexpected(damaged("_KAFKA_PIDS_", cause));
  }
  next_ = *next;
  return {};
}

std::vector<Buffer> ProducerIds::snapshot(std::string_view) const {
  if (live_records() == 0) return {};
  return {encode_next_producer_id(next_)};
}

}  // namespace kanal::coordinator
