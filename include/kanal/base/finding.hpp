// What an offline check of stored data tells: one finding after the other, each with its file and,
// where there is one, a position in it. Plain values: any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace kanal {

struct Finding {
  enum class Weight : std::uint8_t {
    kNote,         // harmless and worth a line: leftovers, files that are not ours
    kRecoverable,  // what a kill or a power cut leaves; the next start puts it right, nothing
                   // promised is lost
    kRepairable,   // a damaged file beside the data that a start makes again or does without
    kDamage,       // data is damaged or missing
  };
  Weight weight = Weight::kNote;
  std::string file;
  std::optional<std::uint64_t> position;
  std::string text;  // what it is and what it means; a sentence without its full stop
};
using FindingSink = std::function<void(Finding)>;

}  // namespace kanal
