// What one logger says while this object lives. For tests on one thread: spdlog does not guard its
// list of sinks.
#pragma once

#include "kanal/base/logging.hpp"

#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>
#include <string>
#include <string_view>

namespace kanal::test {

class LogLines {
 public:
  explicit LogLines(std::string_view layer)
      : logger_(logger(layer)), sink_(std::make_shared<spdlog::sinks::ostream_sink_st>(text_)) {
    logger_.sinks().push_back(sink_);
  }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  ~LogLines() { std::erase(logger_.sinks(), sink_); }

  /// How many lines hold these words.
  [[nodiscard]] std::size_t with(std::string_view words) const {
    std::istringstream lines(text_.str());
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) count += line.contains(words) ? 1 : 0;
    return count;
  }
  [[nodiscard]] std::string text() const { return text_.str(); }

 private:
  spdlog::logger& logger_;
  std::ostringstream text_;
  spdlog::sink_ptr sink_;
};

}  // namespace kanal::test
