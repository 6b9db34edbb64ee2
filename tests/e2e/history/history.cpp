#include "history.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace kanal::e2e {
namespace {

constexpr std::array<const char*, 17> kKinds{
    "topic",   "producer", "produce", "read",   "final", "bounds", "trim",    "commit", "committed",
    "resumed", "create",   "delete",  "listed", "alter", "config", "stopped", "started"};
constexpr std::array<const char*, 3> kAnswers{"ok", "refused", "unknown"};

template <class Enum, std::size_t N>
Enum parse(const std::array<const char*, N>& names, const std::string& text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
  }
  throw std::runtime_error("not part of a history: " + text);
}

}  // namespace

std::int64_t History::now() {
  const std::lock_guard hold(mutex_);
  return ++moment_;
}

void History::add(Event event) {
  const std::lock_guard hold(mutex_);
  if (event.end == 0) event.end = ++moment_;
  if (event.begin == 0) event.begin = event.end;
  if (event.kind == Kind::kCreate) made_.push_back(event.topic);
  events_.push_back(std::move(event));
}

std::vector<std::string> History::made(std::size_t count) const {
  const std::lock_guard hold(mutex_);
  return {made_.end() - static_cast<std::ptrdiff_t>(std::min(count, made_.size())), made_.end()};
}

Events History::events() const {
  const std::lock_guard hold(mutex_);
  return events_;
}

std::string to_string(const Event& event) {
  std::ostringstream out;
  out << kKinds.at(static_cast<std::size_t>(event.kind)) << '\t'
      << kAnswers.at(static_cast<std::size_t>(event.answer)) << '\t' << event.begin << '\t'
      << event.end << '\t' << event.who << '\t' << event.topic << '\t' << event.partition << '\t'
      << event.source << '\t' << event.key << '\t' << event.number << '\t' << event.offset;
  return out.str();
}

void write_history(const std::filesystem::path& file, const Events& events) {
  std::ofstream out(file);
  for (const Event& event : events) out << to_string(event) << '\n';
}

Events read_history(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  Events events;
  for (std::string line; std::getline(in, line);) {
    std::array<std::string, 11> fields;
    std::istringstream text(line);
    for (std::string& field : fields) std::getline(text, field, '\t');
    Event event;
    event.kind = parse<Kind>(kKinds, fields[0]);
    event.answer = parse<Answer>(kAnswers, fields[1]);
    event.begin = std::stoll(fields[2]);
    event.end = std::stoll(fields[3]);
    event.who = fields[4];
    event.topic = fields[5];
    event.partition = std::stoi(fields[6]);
    event.source = fields[7];
    event.key = fields[8];
    event.number = std::stoll(fields[9]);
    event.offset = std::stoll(fields[10]);
    events.push_back(std::move(event));
  }
  return events;
}

}  // namespace kanal::e2e
