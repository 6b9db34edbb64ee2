// Task<T>: the coroutine type of broker, handlers and server. An alias: no coroutine type of our
// own. GCC 12 trap: name every aggregate and lambda on the line above a co_await, never inside it.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace kanal::broker {
template <class T>
using Task = boost::asio::awaitable<T>;
}  // namespace kanal::broker
