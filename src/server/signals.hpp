// SIGTERM and SIGINT: the first asks for an orderly stop, the second ends the process at once.
// SIGPIPE is ignored. One per process; made before any thread, waited for by the main thread.
#pragma once

namespace kanal::server {

class StopSignals {
 public:
  StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Blocks until the first one; its number.
  int wait();
};

}  // namespace kanal::server
