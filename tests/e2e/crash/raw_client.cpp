#include "raw_client.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <type_traits>

namespace kanal::e2e {
namespace {

template <class T>
void put(std::string& out, T value) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(value);
  for (int shift = 8 * (static_cast<int>(sizeof(T)) - 1); shift >= 0; shift -= 8) {
    out += static_cast<char>(static_cast<unsigned char>(bits >> shift));
  }
}

void put(std::string& out, const std::string& text) {
  put(out, static_cast<std::int16_t>(text.size()));
  out += text;
}

template <class T>
T get(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value = value << 8 | static_cast<unsigned char>(bytes.at(at + i));
  return static_cast<T>(value);
}

}  // namespace

RawClient::RawClient(const std::string& address)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port =
      htons(static_cast<std::uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    throw std::runtime_error("no connection");
}

RawClient::~RawClient() {
  ::close(fd_);
}

std::string RawClient::call(std::int16_t key, std::int16_t version, const std::string& body) {
  std::string request;
  put(request, key);
  put(request, version);
  put(request, std::int32_t{1});
  put(request, std::string("raw"));
  request += body;
  std::string frame;
  put(frame, static_cast<std::int32_t>(request.size()));
  frame += request;
  if (::send(fd_, frame.data(), frame.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(frame.size())) {
    throw std::runtime_error("not sent");
  }
  const auto receive = [&](std::size_t size) {
    std::string bytes(size, '\0');
    if (size > 0 && ::recv(fd_, bytes.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) {
      throw std::runtime_error("closed without an answer");
    }
    return bytes;
  };
  const std::string answer = receive(get<std::uint32_t>(receive(4), 0));
  return answer.substr(4);  // behind the correlation id
}

std::int64_t RawClient::new_producer_id() {
  std::string body;
  put(body, std::int16_t{-1});
  put(body, std::int32_t{60'000});
  const std::string answer = call(22, 0, body);
  if (get<std::int16_t>(answer, 4) != 0) throw std::runtime_error("InitProducerId failed");
  return get<std::int64_t>(answer, 6);
}

int RawClient::list_offsets_error(const std::string& topic, std::int32_t partition,
                                  std::int64_t time) {
  std::string body;
  put(body, std::int32_t{-1});
  put(body, std::int32_t{1});
  put(body, topic);
  put(body, std::int32_t{1});
  put(body, partition);
  put(body, time);
  const std::string answer = call(2, 1, body);
  return get<std::int16_t>(answer, 4 + 2 + topic.size() + 4 + 4);
}

int RawClient::fetch_error(const std::string& topic, std::int32_t partition, std::int64_t offset) {
  std::string body;
  put(body, std::int32_t{-1});
  put(body, std::int32_t{0});
  put(body, std::int32_t{0});
  put(body, std::int32_t{1 << 20});
  body += '\0';
  put(body, std::int32_t{1});
  put(body, topic);
  put(body, std::int32_t{1});
  put(body, partition);
  put(body, offset);
  put(body, std::int32_t{1 << 20});
  const std::string answer = call(1, 4, body);
  return get<std::int16_t>(answer, 4 + 4 + 2 + topic.size() + 4 + 4);
}

}  // namespace kanal::e2e
