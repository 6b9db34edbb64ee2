// One entry for every message of the protocol, made by generated code: what round-trip tests, the
// seed writer and fuzz targets need without knowing the messages. Test code, single-threaded.
#pragma once

#include "kanal/wire/message.hpp"
#include "kanal/wire/reader.hpp"
#include "kanal/wire/writer.hpp"
#include "unit/wire/filler.hpp"

#include <span>
#include <string_view>

namespace kanal::wire {

struct CaseName {
  std::string_view name;    // "ProduceRequest"
  std::string_view spoken;  // as errors call it: "Produce request"
  int api_key;              // -1 for headers and stored records
  int record_type;          // -1 but for stored records
  std::int16_t flexible_from;
  std::int16_t min_version;
  std::int16_t max_version;
};

struct MessageCase : CaseName {
  /// The message, filled, in wire form.
  Buffer (*sample)(Filler& fill, std::int16_t version);
  /// Fill, encode, decode; whether the value came back and all bytes were used. `wire` gets the
  /// bytes.
  bool (*round_trip)(Filler& fill, std::int16_t version, Buffer& wire);
  /// The same with a message as the constructor leaves it.
  bool (*defaults_come_back)(std::int16_t version);
  /// Decode and encode again, for bytes that did not come from a Filler.
  Result<Buffer> (*recode)(MutableBytes wire, std::int16_t version);

  [[nodiscard]] bool is_request() const { return name.ends_with("Request"); }
};

[[nodiscard]] std::span<const MessageCase> message_cases();

template <class Message>
Buffer encoded(std::int16_t version, const Message& value) {
  Writer writer;
  encode(writer, version, value);
  return {writer.bytes().begin(), writer.bytes().end()};
}

template <class Message>
MessageCase make_case(CaseName name) {
  MessageCase result{name, nullptr, nullptr, nullptr, nullptr};
  result.sample = [](Filler& fill, std::int16_t version) {
    Message value;
    fill_message(fill, version, value);
    return encoded(version, value);
  };
  result.round_trip = [](Filler& fill, std::int16_t version, Buffer& wire) {
    Message value;
    fill_message(fill, version, value);
    wire = encoded(version, value);
    Reader reader{MutableBytes(wire)};
    Message again;
    const Result<void> decoded = decode(reader, version, again);
    return decoded.has_value() && reader.remaining() == 0 && again == value &&
           encoded(version, again) == wire;
  };
  result.defaults_come_back = [](std::int16_t version) {
    Buffer wire = encoded(version, Message{});
    Reader reader{MutableBytes(wire)};
    Message again;
    return decode(reader, version, again).has_value() && reader.remaining() == 0 &&
           encoded(version, again) == wire;
  };
  result.recode = [](MutableBytes wire, std::int16_t version) -> Result<Buffer> {
    Reader reader(wire);
    Message value;
    if (auto decoded = decode(reader, version, value); !decoded)
      return std::unexpected(decoded.error());
    return encoded(version, value);
  };
  return result;
}

}  // namespace kanal::wire
