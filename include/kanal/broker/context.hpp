// What a handler gets beside its request: who asks, over which listener, the broker, and this I/O
// thread. Lives in the connection's slot for the request until its answer has left; used on the
// connection's I/O thread only.
#pragma once

#include "kanal/broker/io_thread.hpp"
#include "kanal/broker/task.hpp"
#include "kanal/log/channel_log.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kanal::broker {

class Broker;

struct Listener {         // as clients see it
  std::string name;       // "PLAINTEXT" unless configured
  std::string host;       // advertised
  std::int32_t port = 0;  // advertised
};

/// One client connection, as handlers see it.
struct Peer {
  const Listener* listener = nullptr;
  std::string principal = "User:ANONYMOUS";
  std::string address;                          // the client's IP, as text
  std::string software_name, software_version;  // from ApiVersions
};

struct Context;

/// Told when a request begins to wait parked: what it changes is done, so later requests of its
/// connection may start.
class ParkObserver {
 public:
  virtual void on_parked(Context& context) = 0;

 protected:
  ~ParkObserver() = default;
};

struct Context {
  Broker& broker;
  IoThread& io;
  Peer& peer;
  std::string_view client_id;  // view into the frame; empty if null
  std::int16_t api_key = 0;
  std::int16_t api_version = 0;
  std::int32_t correlation_id = 0;

  bool suppress_response = false;  // acks=0: the slot is released without bytes
  bool close_connection = false;   // close after this answer (or without one where suppressed)
  std::vector<log::Slice> slices;  // record pieces that wire::ExternalRecords of the answer name
  Event* parked = nullptr;  // set while the handler waits; fired by the connection when it closes
  ParkObserver* observer = nullptr;  // Broker::park tells it
  bool cancelled =
      false;  // the connection is gone or the broker stops: answer at once with what is there
};

}  // namespace kanal::broker
