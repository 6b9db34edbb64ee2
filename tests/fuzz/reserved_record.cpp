// What a start reads back from the reserved store: a key, a framed value, and a run of records for
// each machine. Nothing may crash or read out of bounds; a key that parses must be the one its name
// gives, and a state that was accepted must come back from its own snapshot.
#include "kanal/coordinator/catalog.hpp"
#include "kanal/coordinator/cluster_state.hpp"
#include "kanal/coordinator/producer_ids.hpp"
#include "names.hpp"
#include "record_frame.hpp"

#include <algorithm>
#include <cstdlib>

namespace {

using namespace kanal;  // a fuzz target is a program of its own

void require(bool holds) {
  if (!holds) std::abort();
}

/// Takes `length-byte, bytes` pieces off the input.
class Pieces {
 public:
  explicit Pieces(Bytes input) : left_(input) {}
  [[nodiscard]] bool more() const { return !left_.empty(); }
  Bytes next() {
    if (left_.empty()) return {};
    const auto wanted = static_cast<std::size_t>(left_[0]);
    const std::size_t size = std::min(wanted, left_.size() - 1);
    const Bytes piece = left_.subspan(1, size);
    left_ = left_.subspan(1 + size);
    return piece;
  }

 private:
  Bytes left_;
};

void read_key(Bytes input) {
  const auto parsed = reserved::parse_key(as_text(input));
  if (!parsed) return;
  std::string key = reserved::channel_prefix(parsed->name);
  if (parsed->number != 0) key = reserved::record_key(key, parsed->generation, parsed->number);
  require(key == as_text(input));
}

void read_value(Pieces pieces) {
  const std::string key(as_text(pieces.next()));
  const Bytes bytes = pieces.next();
  (void)reserved::unframe(key, bytes);
  const std::string value = reserved::frame(key, bytes);
  const auto content = reserved::unframe(key, as_bytes(value));
  require(content && std::ranges::equal(*content, bytes));
}

template <class Machine>
void replay(Machine& machine, Pieces pieces) {
  while (pieces.more()) {
    const std::string key(as_text(pieces.next()));
    const Bytes body = pieces.next();
    if (!machine.apply({key, Buffer(body.begin(), body.end())})) return;
  }
}

void replay_catalog(Pieces pieces) {
  static const auto config = std::make_shared<const coordinator::BrokerConfig>();
  coordinator::Catalog catalog(config);
  replay(catalog, pieces);
  coordinator::Catalog again(config);
  catalog.current().for_each([&](const coordinator::TopicPtr& topic) {
    for (Buffer& body : catalog.snapshot(topic->name)) {
      require(again.apply({topic->name, std::move(body)}).has_value());
    }
    const auto& back = again.current().find(topic->id);
    require(back && back->name == topic->name && back->overlay == topic->overlay &&
            back->partition_count == topic->partition_count);
  });
  require(again.current().topic_count() == catalog.current().topic_count());
}

void replay_cluster(Pieces pieces) {
  coordinator::ClusterState cluster;
  replay(cluster, pieces);
  coordinator::ClusterState again;
  const auto records = cluster.snapshot("");
  require(records.size() == cluster.live_records());
  for (const Buffer& body : records) require(again.apply({"", body}).has_value());
  require(again.facts() == cluster.facts());
  require(again.configs().broker == cluster.configs().broker);
  require(again.configs().cluster_default == cluster.configs().cluster_default);
  require(again.configs().groups == cluster.configs().groups);
  require(again.configs().client_metrics == cluster.configs().client_metrics);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const Bytes input(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      read_key(input);
      break;
    case 1:
      read_value(Pieces(input));
      break;
    case 2:
      replay_catalog(Pieces(input));
      break;
    case 3: {
      coordinator::ProducerIds ids;
      replay(ids, Pieces(input));
      break;
    }
    default:
      replay_cluster(Pieces(input));
      break;
  }
  return 0;
}
