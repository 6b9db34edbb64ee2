// The Executor seam: work that may block (fsync, cold reads, unlink) goes to helper threads through
// this.
#pragma once

#include <functional>

namespace kanal {

class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(std::move_only_function<void()> work) = 0;  // any thread; runs once, later
};

}  // namespace kanal
