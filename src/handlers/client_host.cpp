#include "client_host.hpp"

#include <arpa/inet.h>

#include <array>
#include <charconv>
#include <string_view>

namespace kanal::handlers {

std::string client_host(const std::string& address) {
  constexpr std::string_view kMapped = "::ffff:";  // IPv4 on an IPv6 socket
  if (address.starts_with(kMapped) && address.contains('.'))
    return "/" + address.substr(kMapped.size());
  in6_addr parsed{};
  if (::inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &parsed) != 1)
    return "/" + address;
  std::string text = "/";
  for (std::size_t i = 0; i < 16; i += 2) {
    if (i > 0) text += ':';
    std::array<char, 4> digits{};
    const unsigned group = static_cast<unsigned>(parsed.s6_addr[i] << 8 | parsed.s6_addr[i + 1]);
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), group, 16).ptr;
    text.append(digits.data(), end);
  }
  return text;
}

}  // namespace kanal::handlers
