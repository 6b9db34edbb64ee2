// Encoding and checks of a transactional id's stored records, which are laid down in src/wire/
// schema/stored.yaml. Decoding errors are KAFKA_STORAGE_ERROR and say what is wrong; the caller
// names the channel. Plain functions.
#pragma once

#include "kanal/coordinator/txn.hpp"
#include "transitions.hpp"

#include <variant>

namespace kanal::coordinator {

[[nodiscard]] Buffer encode_transaction(const TransactionFacts& facts);
[[nodiscard]] Buffer encode_addition(const TransactionAddition& addition);

/// One of the two types that the channel may hold, with values that go together.
using TransactionChange = std::variant<TransactionFacts, TransactionAddition>;
[[nodiscard]] Result<TransactionChange> decode_transaction_record(Bytes body);

}  // namespace kanal::coordinator
