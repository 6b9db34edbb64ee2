// Result<T>: what a client, a disk or a configuration file can get wrong. Bugs are CHECKs, not
// Errors.
#pragma once

#include "kanal/base/error_code.hpp"

#include <expected>
#include <string>
#include <utility>

namespace kanal {

struct Error {
  ErrorCode code = ErrorCode::UNKNOWN_SERVER_ERROR;
  std::string
      detail;        // a sentence for the client or the operator; never record data, never a secret
  int os_error = 0;  // errno where a system call failed, else 0
};

template <class T>
using Result = std::expected<T, Error>;

[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string detail = {},
                                                 int os_error = 0) {
  return std::unexpected(Error{code, std::move(detail), os_error});
}

}  // namespace kanal
