// Checks a parsed message and fills in what follows from it: version ranges, struct references,
// qualified names.
#pragma once

#include "model.hpp"

namespace kanal::wiregen {

void check(Message& message);

}  // namespace kanal::wiregen
