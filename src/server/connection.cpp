#include "connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstring>
#include <exception>

#include "connection_group.hpp"
#include "frame.hpp"
#include "kanal/base/logging.hpp"

namespace kanal::server {
namespace asio = boost::asio;

namespace {

constexpr std::size_t kSmallestRead = 512;
// A frame whose size was only announced gets its buffer in steps from here on.
constexpr std::size_t kFirstStep = 1 << 20;
// Rounds of handling and sending before other connections of the thread get their turn.
constexpr int kRoundsPerTurn = 4;

std::string api_name(const handlers::Route* route, std::int16_t key) {
  return route != nullptr ? std::string(route->name) : "key " + std::to_string(key);
}

}  // namespace

Connection::Connection(ConnectionGroup& group, Accepted accepted)
    : group_(group),
      socket_(group.io().context()),
      port_(accepted.port),
      admission_(std::move(accepted.admission)),
      answers_(group.writers_) {
  peer_.listener = accepted.listener;
  peer_.address = std::move(accepted.address);
  socket_.assign(accepted.ipv6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), accepted.socket);
  group_.alive_.fetch_add(1, std::memory_order_relaxed);
}

Connection::~Connection() {
  // Before alive_ falls: whoever waits for it may then destroy the pools that these return to.
  slots_.clear();
  buffer_.reset();
  group_.alive_.fetch_sub(1, std::memory_order_release);
}

void Connection::start() {
  last_active_ = group_.io().clock().now();
  place_ = group_.enter(shared_from_this());
  read_on();
}

std::string Connection::peer_name() const {
  const bool ipv6 = peer_.address.find(':') != std::string::npos;
  return (ipv6 ? "[" + peer_.address + "]" : peer_.address) + ":" + std::to_string(port_);
}

// Reading

void Connection::read_on() {
  if (closed_ || refusing_ || input_ended_ || reading_ || waiting_memory_ || draining_) return;
  if (slots_.size() >= group_.options_.requests) return;
  if (answers_.unsent_bytes() + held_answer_bytes_ > group_.options_.answer_bytes) return;
  const FrameExtent frame = next_frame();
  if (frame.state != FrameState::kPartial) return;  // what is here has to be started first
  if (!make_room(std::max(frame.bytes, end_ - begin_ + kSmallestRead))) return;
  std::size_t room = buffer_->capacity() - end_;
  // A large frame is read up to its end, so that the next one begins at the start of a buffer.
  if (frame.bytes > BufferPool::kSlab) room = std::min(room, begin_ + frame.bytes - end_);
  reading_ = true;
  auto on_done = [self = shared_from_this(), room](const boost::system::error_code& error,
                                                   std::size_t bytes) {
    self->reading_ = false;
    if (self->closed_) return;
    if (error == asio::error::operation_aborted) return self->read_on();  // shrink()
    if (error == asio::error::eof) return self->on_end_of_input();
    if (error) return self->close();
    if (bytes == room) self->usual_bytes_ = std::max(self->usual_bytes_, BufferPool::kSlab);
    self->end_ += bytes;
    self->group_.touch(*self);
    self->work();
  };
  socket_.async_read_some(asio::buffer(buffer_->data() + end_, room), std::move(on_done));
}

void Connection::on_end_of_input() {
  // A FIN does not say whether the other side still listens: what it asked is answered, but nothing
  // waits for it.
  input_ended_ = true;
  cancel_parked();
  work();
}

MutableBytes Connection::pending() const noexcept {
  if (!buffer_) return {};
  return {buffer_->data() + begin_, end_ - begin_};
}

FrameExtent Connection::next_frame() const noexcept {
  return find_frame(pending(), group_.options_.largest_frame);
}

bool Connection::make_room(std::size_t wanted) {
  const bool drained = begin_ == end_;
  if (buffer_ && drained && !buffer_->shared()) {
    begin_ = end_ = 0;
    const std::size_t capacity = buffer_->capacity();
    const bool contended = group_.options_.request_memory.contended();
    if (contended) usual_bytes_ = BufferPool::kSmall;
    // Far larger than what comes now, or others wait for the memory.
    if (capacity > BufferPool::kSmall && (contended || capacity > 4 * usual_bytes_))
      buffer_.reset();
  }
  if (buffer_ && begin_ + wanted <= buffer_->capacity()) {
    // Unless a larger one has proved useful and nothing needs copying now.
    if (!drained || buffer_->capacity() >= usual_bytes_) return true;
  } else if (buffer_ && !buffer_->shared() && wanted <= buffer_->capacity()) {
    std::memmove(buffer_->data(), buffer_->data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    return true;
  }
  return replace_buffer(wanted);
}

void Connection::learn_frame_size(std::size_t frame_bytes) noexcept {
  if (frame_bytes > BufferPool::kSmall) usual_bytes_ = std::max(usual_bytes_, frame_bytes);
  if (usual_bytes_ > BufferPool::kSlab && frame_bytes < usual_bytes_ / 2)
    usual_bytes_ -= usual_bytes_ / 16;
}

bool Connection::replace_buffer(std::size_t wanted) {
  const std::size_t have = end_ - begin_;
  std::size_t bytes = std::max(wanted, usual_bytes_);
  // Room is reserved for the whole frame, so that each frame that is let in can be completed;
  // memory comes as bytes do.
  const std::size_t reserved = BufferPool::class_of(bytes);
  if (wanted > kFirstStep && wanted > 2 * usual_bytes_)
    bytes = std::min(wanted, std::max(kFirstStep, 4 * have));
  Reservation reservation;
  if (reserved > BufferPool::kSmall) {
    if (buffer_ && !buffer_->shared() && buffer_->reservation().bytes() >= reserved) {
      reservation = std::move(buffer_->reservation());
    } else {
      reservation = group_.options_.request_memory.try_reserve(reserved);
    }
    if (reservation.bytes() == 0) {
      if (wanted <= BufferPool::kSmall) {
        bytes = BufferPool::kSmall;
      } else {
        wait_for_memory();
        return false;
      }
    }
    group_.sweep_later();
  }
  FrameRef larger = group_.buffers_.make(bytes, std::move(reservation));
  if (!larger) {
    logger("server").error("Closing a connection: no memory for its request. peer={} bytes={}",
                           peer_name(), bytes);
    close();
    return false;
  }
  if (have > 0) std::memcpy(larger->data(), buffer_->data() + begin_, have);
  buffer_ = std::move(larger);
  begin_ = 0;
  end_ = have;
  return true;
}

void Connection::wait_for_memory() {
  waiting_memory_ = true;
  RequestMemory& memory = group_.options_.request_memory;
  broker::IoThread& io = group_.io();
  auto wake = [weak = weak_from_this(), &memory, &io] {
    io.post([weak, &memory] {
      if (const auto self = weak.lock()) {
        self->waiting_memory_ = false;
        self->read_on();
      }
      memory.wake_next();
    });
  };
  memory.wait(std::move(wake));
}

void Connection::shrink() {
  if (!closed_ && !busy()) give_memory_back();
}

void Connection::give_memory_back() {
  if (!buffer_ || buffer_->capacity() == BufferPool::kSmall) return;
  if (begin_ != end_ || buffer_->shared()) return;
  usual_bytes_ = BufferPool::kSmall;
  boost::system::error_code ignored;
  if (reading_)
    socket_.cancel(ignored);  // the read comes back and goes on with a small buffer
  else
    buffer_.reset();
}

bool Connection::hoards() const noexcept {
  return buffer_ && buffer_->reservation().bytes() > BufferPool::kSlab && begin_ != end_ &&
         slots_.empty();
}

// Requests

void Connection::work() {
  for (int round = 0; !closed_; ++round) {
    if (round == kRoundsPerTurn) return schedule_work();
    start_requests();
    send_answers();
    // What was sent may have made room for requests that are here already.
    if (!may_start() || next_frame().state != FrameState::kComplete) break;
  }
  if (closed_) return;
  if (group_.options_.request_memory.contended()) give_memory_back();
  read_on();
}

void Connection::schedule_work() {
  if (work_scheduled_ || closed_) return;
  work_scheduled_ = true;
  auto later = [self = shared_from_this()] {
    self->work_scheduled_ = false;
    self->work();
  };
  asio::post(group_.io().context(), std::move(later));
}

bool Connection::may_start() noexcept {
  return !closed_ && !refusing_ && !draining_ && exclusive_ == nullptr &&
         slots_.size() < group_.options_.requests &&
         answers_.unsent_bytes() + held_answer_bytes_ <= group_.options_.answer_bytes;
}

void Connection::start_requests() {
  starting_ = true;
  while (may_start()) {
    const MutableBytes received = pending();
    const FrameExtent frame = next_frame();
    if (frame.state == FrameState::kPartial) break;
    if (frame.state == FrameState::kInvalid) {
      refuse_bytes(received);
      break;
    }
    begin_ += frame.bytes;
    learn_frame_size(frame.bytes);
    start_request(received.subspan(kSizeBytes, frame.bytes - kSizeBytes));
  }
  starting_ = false;
}

void Connection::start_request(MutableBytes frame) {
  OpenedRequest opened = open_request(frame, group_.options_.find_route);
  if (opened.verdict == Verdict::kRefuse) return refuse(opened.header, opened.route, opened.reason);
  const Verdict verdict = opened.verdict;
  slots_.push_back(std::make_unique<Slot>(*this, std::move(opened)));
  Slot& slot = *slots_.back();
  if (verdict == Verdict::kUnsupportedVersion) {
    const wire::Writer::Mark mark = slot.out->begin_frame();
    write_unsupported_version(*slot.out, *slot.route, slot.context.correlation_id);
    slot.out->end_frame(mark);
    return finish(slot);
  }
  exclusive_ = &slot;
  asio::co_spawn(group_.io().context(), run(shared_from_this(), slot), asio::detached);
}

Connection::Slot::Slot(Connection& owner, OpenedRequest opened)
    : connection(owner),
      frame(owner.buffer_),
      route(opened.route),
      body(std::move(opened.body)),
      context{.broker = owner.group_.options_.broker,
              .io = owner.group_.io(),
              .peer = owner.peer_,
              .client_id = opened.header.client_id,
              .api_key = opened.header.key,
              .api_version = opened.header.version,
              .correlation_id = opened.header.correlation_id,
              .slices = {},
              .observer = this,
              .cancelled = owner.cancelled_},
      out(owner.group_.writers_.take()) {}

broker::Task<void> Connection::run(std::shared_ptr<Connection> self, Slot& slot) {
  const wire::Writer::Mark mark = slot.out->begin_frame();
  write_response_header(*slot.out, *slot.route, slot.context.api_version,
                        slot.context.correlation_id);
  std::string failure;
  try {
    const Result<void> handled =
        co_await slot.route->run(slot.context, slot.body, slot.context.api_version, *slot.out);
    if (!handled) failure = handled.error().detail;
  } catch (const std::exception& error) {
    failure = std::string("the handler failed: ") + error.what();
  } catch (...) {
    failure = "the handler failed";
  }
  if (!failure.empty() && !self->closed_) {
    self->refuse({slot.context.api_key, slot.context.api_version, slot.context.correlation_id, {}},
                 slot.route, failure);
  }
  if (!failure.empty()) slot.context.close_connection = true;
  if (!failure.empty() || slot.context.suppress_response)
    slot.out->discard(mark);
  else
    slot.out->end_frame(mark);
  self->finish(slot);
}

void Connection::Slot::on_parked(broker::Context&) {
  if (connection.exclusive_ != this) return;
  connection.exclusive_ = nullptr;
  if (!connection.starting_) connection.schedule_work();
}

void Connection::finish(Slot& slot) {
  slot.done = true;
  slot.frame.reset();
  if (exclusive_ == &slot) exclusive_ = nullptr;
  held_answer_bytes_ += slot.out->total_bytes();
  if (!starting_) schedule_work();
}

void Connection::refuse(const RequestHeader& header, const handlers::Route* route,
                        std::string_view reason) {
  refusing_ = true;
  const auto left_out = group_.options_.refusals.take(group_.io().clock().now());
  if (!left_out) return;
  logger("server").warn(
      "Closing a connection: bad request. peer={} listener={} api={} version={} reason=\"{}\" "
      "left_out={}",
      peer_name(), peer_.listener->name, api_name(route, header.key), header.version, reason,
      *left_out);
}

void Connection::refuse_bytes(Bytes received) {
  refusing_ = true;
  const auto left_out = group_.options_.refusals.take(group_.io().clock().now());
  if (!left_out) return;
  logger("server").warn(
      "Closing a connection: no request. peer={} listener={} reason=\"{}\" left_out={}",
      peer_name(), peer_.listener->name,
      describe_invalid_frame(received, group_.options_.largest_frame), *left_out);
}

// Answers

void Connection::collect_answers() {
  while (!slots_.empty() && slots_.front()->done) {
    Slot& slot = *slots_.front();
    held_answer_bytes_ -= slot.out->total_bytes();
    const bool last = slot.context.close_connection;
    if (slot.out->total_bytes() > 0)
      answers_.push({std::move(slot.out), std::move(slot.context.slices)});
    else
      group_.writers_.give_back(std::move(slot.out));
    slots_.pop_front();
    if (last) {
      // Nothing after it is answered.
      refusing_ = dropping_ = true;
      cancel_parked();
      return;
    }
  }
}

void Connection::send_answers() {
  if (closed_) return;
  if (!dropping_) collect_answers();
  if (!answers_.empty() && !waiting_writable_) {
    switch (answers_.send(socket_.native_handle())) {
      case SendState::kEmpty:
        break;
      case SendState::kBlocked:
        return wait_writable();
      case SendState::kYield:
        return schedule_work();
      case SendState::kBroken:
        return close();
    }
  }
  const bool ending = refusing_ || input_ended_ || draining_;
  if (ending && answers_.empty() && (slots_.empty() || dropping_)) close();
}

void Connection::wait_writable() {
  waiting_writable_ = true;
  auto on_writable = [self = shared_from_this()](const boost::system::error_code&) {
    self->waiting_writable_ = false;
    if (self->closed_) return;
    self->group_.touch(*self);
    self->work();
  };
  socket_.async_wait(asio::ip::tcp::socket::wait_write, std::move(on_writable));
}

// The end

void Connection::cancel_parked() {
  cancelled_ = true;
  for (const auto& slot : slots_) {
    if (slot->done) continue;
    slot->context.cancelled = true;
    if (slot->context.parked != nullptr) slot->context.parked->fire();
  }
}

void Connection::drain() {
  if (closed_) return;
  draining_ = true;
  cancel_parked();
  schedule_work();
}

void Connection::close() {
  if (closed_) return;
  const auto self = shared_from_this();  // the group lets go of it
  closed_ = true;
  cancel_parked();
  // What the client sent and nobody read would turn the close into a reset, and that could take
  // back answers it has not read yet.
  std::byte unread[4096];
  for (int i = 0;
       i < 64 && ::recv(socket_.native_handle(), unread, sizeof unread, MSG_DONTWAIT) > 0; ++i) {
  }
  boost::system::error_code ignored;
  socket_.close(ignored);
  admission_ = Admission();
  group_.leave(place_);
  if (!buffer_ || reading_) return;
  buffer_.reset();
}

}  // namespace kanal::server
