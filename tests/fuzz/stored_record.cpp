// Any bytes as a record of a reserved channel: refused with a storage error, or read and written
// back the same way.
#include "kanal/wire/stored.hpp"
#include "kanal/wire/writer.hpp"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kanal;
  using namespace kanal::wire;
  const Result<StoredRecord> record = decode_stored(std::as_bytes(std::span(data, size)));
  if (!record) {
    if (record.error().code != ErrorCode::KAFKA_STORAGE_ERROR) std::abort();
    return 0;
  }
  Writer out;
  std::visit([&out](const auto& value) { encode_stored(out, value); }, *record);
  const Result<StoredRecord> again = decode_stored(out.bytes());
  if (!again || *again != *record) std::abort();
  return 0;
}
