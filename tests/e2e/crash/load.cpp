#include "load.hpp"

#include <cstdio>

namespace kanal::e2e {
namespace {

Settings settings_for(Promise promise) {
  Settings settings{{"acks", "all"},
                    {"linger.ms", "1"},
                    {"batch.num.messages", "50"},
                    {"queue.buffering.max.messages", "200"},
                    {"retry.backoff.ms", "10"},
                    {"message.timeout.ms", "120000"}};
  if (promise == Promise::kExactlyOnce) settings["enable.idempotence"] = "true";
  if (promise == Promise::kAtMostOnce) settings["message.send.max.retries"] = "0";
  if (promise == Promise::kAtLeastOnce) settings["max.in.flight.requests.per.connection"] = "1";
  return settings;
}

}  // namespace

std::string load_value(int id, std::int32_t partition, std::size_t n) {
  std::string value =
      std::to_string(id) + "/" + std::to_string(partition) + "/" + std::to_string(n) + "/";
  const std::size_t size = value.size() + n * 7919 % 600;
  for (std::size_t at = value.size(); at < size; ++at)
    value += static_cast<char>('!' + (n * 31 + at * 17) % 90);
  return value;
}

LoadNumber parse_load_value(const std::string& value) {
  LoadNumber found;
  if (std::sscanf(value.c_str(), "%d/%d/%zu/", &found.id, &found.partition, &found.n) != 3)
    return {};
  if (value != load_value(found.id, found.partition, found.n)) return {};
  return found;
}

Load::Load(const std::string& address, LoadOptions options)
    : options_(std::move(options)),
      sent_(static_cast<std::size_t>(options_.partitions)),
      producer_(address, settings_for(options_.promise)) {
  producer_.on_delivery = [this](std::size_t tag, const Delivery& delivery) {
    on_delivery(tag, delivery);
  };
  thread_ = std::thread([this] { run(); });
}

Load::~Load() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

void Load::run() {
  constexpr int kBurst = 3;
  const auto partitions = static_cast<std::size_t>(options_.partitions);
  std::size_t count = 0;
  while (!stopping_) {
    for (int i = 0; i < kBurst; ++i, ++count) {
      const std::size_t partition = count % partitions;
      const std::size_t n = sent_[partition].size();
      sent_[partition].push_back({});
      const auto index = static_cast<std::int32_t>(partition);
      const Record record{
          .topic = options_.topic, .partition = index, .value = load_value(options_.id, index, n)};
      const auto error = producer_.send(record, n * partitions + partition);
      if (error != RD_KAFKA_RESP_ERR_NO_ERROR) sent_[partition].back().error = error;
    }
    producer_.poll();
    std::this_thread::sleep_for(milliseconds(4));
  }
}

void Load::on_delivery(std::size_t tag, const Delivery& delivery) {
  const auto partitions = static_cast<std::size_t>(options_.partitions);
  sent_[tag % partitions][tag / partitions] = {delivery.error, delivery.offset};
  if (delivery.error == RD_KAFKA_RESP_ERR_NO_ERROR) ++acknowledged_;
}

void Load::finish() {
  stopping_ = true;
  thread_.join();
  producer_.flush();
}

}  // namespace kanal::e2e
