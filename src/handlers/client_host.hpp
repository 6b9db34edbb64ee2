// A client's address as Kafka shows it to others: "/127.0.0.1", "/0:0:0:0:0:0:0:1". Plain function:
// any thread. Tools print it, and some parse it, so it has Java's form.
#pragma once

#include <string>

namespace kanal::handlers {

/// `address`: the client's IP as text.
[[nodiscard]] std::string client_host(const std::string& address);

}  // namespace kanal::handlers
