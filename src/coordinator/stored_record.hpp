// What the machines share for their stored records (src/wire/schema/stored.yaml: int16 type, int16
// version, body): encoding one, and the errors of records that say something impossible. Decoding
// errors say what is wrong; apply() names the channel with damaged(). Plain functions.
#pragma once

#include "kanal/base/bytes.hpp"
#include "kanal/base/error.hpp"
#include "kanal/wire/stored.hpp"
#include "kanal/wire/writer.hpp"

#include <string>
#include <string_view>
#include <utility>

namespace kanal::coordinator {

template <class StoredType>
[[nodiscard]] Buffer encode_record(const StoredType& record) {
  wire::Writer writer;
  wire::encode_stored(writer, record);
  const Bytes bytes = writer.bytes();
  return {bytes.begin(), bytes.end()};
}

[[nodiscard]] inline std::unexpected<Error> corrupt(std::string detail) {
  return fail(ErrorCode::KAFKA_STORAGE_ERROR, std::move(detail));
}
[[nodiscard]] inline std::unexpected<Error> of_another_channel() {
  return corrupt("holds a record of another channel's type");
}

/// The error of apply(): "_KAFKA_CONFIG_.orders: <what is wrong>".
[[nodiscard]] inline Error damaged(std::string_view channel, const Error& cause) {
  return {.code = ErrorCode::KAFKA_STORAGE_ERROR,
          .detail = std::string(channel) + ": " + cause.detail,
          .os_error = cause.os_error};
}

}  // namespace kanal::coordinator
