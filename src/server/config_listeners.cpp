// Listeners: host:port texts, the list of one text, and the rules that tie bind and advertised
// addresses together. Advertised hosts are never resolved: they mean something to clients.
#include "config_options.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>

namespace kanal::server {
namespace {

constexpr std::string_view kDefaultName = "PLAINTEXT";

/// 0.0.0.0, ::, and whatever else the system takes for "every address".
bool is_wildcard(const std::string& host) {
  in_addr four{};
  if (inet_aton(host.c_str(), &four) != 0) return four.s_addr == INADDR_ANY;
  in6_addr six{};
  if (inet_pton(AF_INET6, host.c_str(), &six) != 1) return host == "*";
  if (IN6_IS_ADDR_V4MAPPED(&six))
    return std::all_of(six.s6_addr + 12, six.s6_addr + 16, [](auto b) { return b == 0; });
  return IN6_IS_ADDR_UNSPECIFIED(&six);
}

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 255 && std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// An address to hand out: the port may be left out, then it is the bind port.
std::optional<HostPort> parse_advertised(std::string_view text, std::uint16_t port) {
  if (auto whole = parse_host_port(text)) return whole;
  const bool bracketed = text.starts_with('[') && text.ends_with(']');
  const bool bare = text.find(':') == std::string_view::npos;
  if (!bracketed && !bare) return std::nullopt;
  return parse_host_port(std::string(text) + ":" + std::to_string(port));
}

class Resolver {
 public:
  Resolver(const Setting& written, const Setting* advertised, ConfigProblems& problems)
      : written_(written), advertised_(advertised), problems_(problems) {}

  void run(std::vector<ListenerOptions>& into) {
    std::vector<ListenerText> texts = written_.listeners;
    if (texts.empty()) {
      auto parsed = parse_listeners(written_.value);
      if (!parsed) return problem(written_, written_.line, "listeners", parsed.error());
      texts = std::move(*parsed);
    }
    if (texts.empty())
      return problem(written_, written_.line, "listeners", "At least one listener is needed");
    read_overrides();
    for (std::size_t i = 0; i < texts.size(); ++i) add(texts[i], i, into);
    for (const auto& [name, address] : overrides_) {
      if (!names_.contains(name)) {
        problem(*advertised_, advertised_->line, "advertised_listeners",
                "There is no listener named " + name);
      }
    }
  }

 private:
  void read_overrides() {
    if (advertised_ == nullptr || advertised_->value.empty()) return;
    const auto parsed = parse_listeners(advertised_->value);
    if (!parsed)
      return problem(*advertised_, advertised_->line, "advertised_listeners", parsed.error());
    for (const ListenerText& text : *parsed) {
      const std::string name = text.name.value_or(std::string(kDefaultName));
      if (!overrides_.emplace(name, text.bind).second) {
        problem(*advertised_, advertised_->line, "advertised_listeners",
                "Listener " + name + " has more than one advertised address");
      }
    }
  }

  void add(const ListenerText& text, std::size_t index, std::vector<ListenerOptions>& into) {
    const std::string key = "listeners[" + std::to_string(index) + "]";
    const int line = text.line != 0 ? text.line : written_.line;
    ListenerOptions listener;
    listener.name = text.name.value_or(std::string(kDefaultName));
    if (!is_name(listener.name)) {
      return problem(
          written_, line, key + ".name",
          "'" + listener.name + "' is no listener name: upper-case letters, digits and _");
    }
    if (!names_.insert(listener.name).second) {
      return problem(written_, line, key + ".name",
                     "There are two listeners named " + listener.name);
    }
    const auto bind = parse_host_port(text.bind);
    if (!bind)
      return problem(written_, line, key + ".bind",
                     "'" + text.bind + "' is not host:port, such as 127.0.0.1:9092 or [::1]:9092");
    listener.bind = *bind;
    if (!advertise(text, key, line, listener)) return;
    into.push_back(std::move(listener));
  }

  /// Exactly one address to hand out: set for the listener, else the one it binds to.
  bool advertise(const ListenerText& text, const std::string& key, int line,
                 ListenerOptions& listener) {
    const auto override_at = overrides_.find(listener.name);
    const bool overridden = override_at != overrides_.end();
    const Setting& source = overridden ? *advertised_ : written_;
    const std::string source_key = overridden ? "advertised_listeners" : key + ".advertised";
    const int source_line = overridden ? advertised_->line : line;
    if (!overridden && !text.advertised) {
      listener.advertised = listener.bind;
      if (!is_wildcard(listener.bind.host)) return true;
      problem(source, source_line, source_key,
              listener.name + " binds to every address (" + to_string(listener.bind) +
                  "), which cannot be handed out: "
                  "set the address clients shall use, as " +
                  key +
                  ".advertised: HOST:PORT in the file, "
                  "KANAL_ADVERTISED_LISTENERS=" +
                  listener.name +
                  "://HOST:PORT in the environment or "
                  "--set advertised_listeners=" +
                  listener.name + "://HOST:PORT");
      return false;
    }
    const std::string& wanted = overridden ? override_at->second : *text.advertised;
    const auto address = parse_advertised(wanted, listener.bind.port);
    if (!address) {
      problem(source, source_line, source_key, "'" + wanted + "' is not host:port");
      return false;
    }
    if (is_wildcard(address->host)) {
      problem(source, source_line, source_key,
              to_string(*address) + " means every address and cannot be handed out to clients");
      return false;
    }
    if (address->port == 0 && listener.bind.port != 0) {
      problem(source, source_line, source_key, "Port 0 cannot be handed out to clients");
      return false;
    }
    listener.advertised = *address;
    return true;
  }

  void problem(const Setting& where, int line, std::string key, std::string text) {
    problems_.push_back({where.origin, line, std::move(key), std::move(text)});
  }

  const Setting& written_;
  const Setting* advertised_;
  ConfigProblems& problems_;
  std::map<std::string, std::string> overrides_;
  std::set<std::string> names_;
};

}  // namespace

std::optional<HostPort> parse_host_port(std::string_view text) {
  text = trimmed(text);
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  HostPort address;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size())
    return std::nullopt;
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
    in6_addr six{};
    // A zone (fe80::1%eth0) is no part of the number.
    const std::string number(host.substr(0, host.find('%')));
    if (inet_pton(AF_INET6, number.c_str(), &six) != 1) return std::nullopt;
  } else if (!is_host(host)) {
    return std::nullopt;
  }
  address.host = host;
  return address;
}

std::string to_string(const HostPort& address) {
  const bool six = address.host.find(':') != std::string::npos;
  return (six ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::expected<std::vector<ListenerText>, std::string> parse_listeners(std::string_view text) {
  std::vector<ListenerText> listeners;
  while (true) {
    const auto comma = text.find(',');
    const std::string_view item = trimmed(text.substr(0, comma));
    if (item.empty()) return std::unexpected("There is an empty address in the list");
    ListenerText& listener = listeners.emplace_back();
    const auto scheme = item.find("://");
    if (scheme != std::string_view::npos) listener.name = std::string(item.substr(0, scheme));
    listener.bind = item.substr(scheme == std::string_view::npos ? 0 : scheme + 3);
    if (comma == std::string_view::npos) return listeners;
    text.remove_prefix(comma + 1);
  }
}

void resolve_listeners(const Setting& written, const Setting* advertised,
                       std::vector<ListenerOptions>& into, ConfigProblems& problems) {
  Resolver(written, advertised, problems).run(into);
}

}  // namespace kanal::server
