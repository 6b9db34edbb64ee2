// Broker configs of sockets and requests: name, type, default, valid values, what this broker makes
// of them.
#include "broker_rows.hpp"

namespace kanal::coordinator {
namespace {

using enum ConfigType;
using enum Treatment;

constexpr ConfigRow kRows[] = {
    {"advertised.listeners", kList, std::nullopt, "", kOwnKey, "listeners[].advertised",
     "Addresses handed out to clients, one for each listener."},
    {"connection.failed.authentication.delay.ms", kInt, "100", "[0,...]", kRefused, kNoteSasl,
     "How long a connection whose authentication failed stays open before it is closed."},
    {"connections.max.idle.ms", kLong, "600000", "", kActs, "",
     "A connection without traffic for this long is closed."},
    {"connections.max.reauth.ms", kLong, "0", "", kRefused, kNoteSasl,
     "Longest time an authenticated session lasts before the client must authenticate again."},
    {"early.start.listeners", kList, std::nullopt, "", kRefused,
     "All listeners open at the same time, once the node is ready",
     "Listeners to open before start-up has finished."},
    {"inter.broker.listener.name", kString, std::nullopt, "", kRefused, kNoteOne,
     "Listener that brokers use among themselves."},
    {"listener.security.protocol.map", kString,
     "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", "", kRefused,
     "Every listener speaks plain TCP", "Security protocol of each listener name."},
    {"listeners", kList, "PLAINTEXT://:9092", "", kOwnKey, "listeners",
     "Addresses to accept connections on."},
    {"max.connection.creation.rate", kInt, "2147483647", "[0,...]", kActs, "",
     "New connections accepted in a second, over all listeners."},
    {"max.connections", kInt, "2147483647", "[0,...]", kActs, "",
     "Open connections on all listeners together; further ones wait or are closed."},
    {"max.connections.per.ip", kInt, "2147483647", "[0,...]", kActs, "",
     "Open connections from one client address."},
    {"max.connections.per.ip.overrides", kString, "", "", kActs, "",
     "Other limits for single addresses, as address:limit pairs joined by commas."},
    {"num.io.threads", kInt, "8", "[1,...]", kOwnKey, "threads.io",
     "Threads that handle requests."},
    {"num.network.threads", kInt, "3", "[1,...]", kOwnKey, "threads.io",
     "Threads that read and write sockets."},
    {"queued.max.request.bytes", kLong, "-1", "", kActs, "",
     "Bytes of requests read and not yet answered over all connections; -1 leaves the limit to "
     "limits.request_memory."},
    {"queued.max.requests", kInt, "500", "[1,...]", kOwnKey, "limits.requests_per_connection",
     "Requests that may wait for a handler thread."},
    {"request.timeout.ms", kInt, "30000", "", kRefused, kNoteClient,
     "How long the broker's own client waits for an answer."},
    {"security.inter.broker.protocol", kString, "PLAINTEXT",
     "[PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL]", kRefused, kNoteOne,
     "Security protocol between brokers."},
    {"socket.connection.setup.timeout.max.ms", kLong, "30000", "", kRefused, kNoteClient,
     "Longest back-off of the broker's own client while connecting."},
    {"socket.connection.setup.timeout.ms", kLong, "10000", "", kRefused, kNoteClient,
     "How long the broker's own client waits for a connection."},
    {"socket.listen.backlog.size", kInt, "50", "[1,...]", kActs, "",
     "Connections the kernel keeps waiting until they are accepted."},
    {"socket.receive.buffer.bytes", kInt, "102400", "", kActs, "",
     "Receive buffer of each socket; -1 leaves it to the system."},
    {"socket.request.max.bytes", kInt, "104857600", "[1,...]", kActs, "",
     "Largest request frame that is read; a larger one closes the connection."},
    {"socket.send.buffer.bytes", kInt, "102400", "", kActs, "",
     "Send buffer of each socket; -1 leaves it to the system."},
};

}  // namespace

std::span<const ConfigRow> network_rows() noexcept {
  return kRows;
}

}  // namespace kanal::coordinator
