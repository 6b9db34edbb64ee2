#include "connection_limits.hpp"

namespace kanal::server {

Admission::~Admission() {
  if (limits_ != nullptr) limits_->leave(address_);
}

bool ConnectionLimits::room_or_wait(std::function<void()> resume) {
  const std::lock_guard lock(mutex_);
  if (total_ < options_.total) return true;
  resume_.push_back(std::move(resume));
  return false;
}

std::optional<Admission> ConnectionLimits::admit(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto found = by_address_.try_emplace(address, 0).first;
  if (found->second >= limit_now(address)) {
    if (found->second == 0) by_address_.erase(found);
    return std::nullopt;
  }
  ++found->second;
  ++total_;
  return Admission(*this, address);
}

std::size_t ConnectionLimits::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

std::size_t ConnectionLimits::limit_of(std::string_view address) const {
  const std::lock_guard lock(mutex_);
  return limit_now(address);
}

std::size_t ConnectionLimits::per_second() const {
  const std::lock_guard lock(mutex_);
  return options_.per_second;
}

void ConnectionLimits::configure(Options options) {
  std::vector<std::function<void()>> resume;
  {
    const std::lock_guard lock(mutex_);
    options_ = std::move(options);
    resume.swap(resume_);
  }
  for (const auto& call : resume) call();
}

std::size_t ConnectionLimits::limit_now(std::string_view address) const {
  const auto found = options_.overrides.find(address);
  return found != options_.overrides.end() ? found->second : options_.per_address;
}

void ConnectionLimits::leave(const std::string& address) noexcept {
  std::vector<std::function<void()>> resume;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_address_.find(address);
    if (--found->second == 0) by_address_.erase(found);
    --total_;
    resume.swap(resume_);
  }
  for (const auto& call : resume) call();
}

}  // namespace kanal::server
