#include "network.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <variant>

#include "kanal/handlers/route.hpp"
#include "process.hpp"
#include "world.hpp"

namespace kanal::sim {
namespace {

/// The answer as it goes over the wire: the writer's bytes with the files' bytes in its gaps.
Result<Buffer> assemble(const wire::Writer& out, const std::vector<log::Slice>& slices) {
  Buffer all;
  all.reserve(out.total_bytes());
  std::size_t at = 0;
  for (const wire::Gap& gap : out.gaps()) {
    append(all, out.bytes().subspan(at, gap.position - at));
    at = gap.position;
    for (std::size_t i = gap.first_slice; i < gap.first_slice + gap.slice_count; ++i) {
      if (const auto* memory = std::get_if<log::MemorySlice>(&slices[i].where)) {
        append(all, memory->bytes);
        continue;
      }
      const auto& file = std::get<log::FileSlice>(slices[i].where);
      Buffer part(file.length);
      const auto got = file.file->read_at(file.offset, part);
      if (!got) return std::unexpected(got.error());
      part.resize(*got);
      append(all, part);
    }
  }
  append(all, out.bytes().subspan(at));
  return all;
}

}  // namespace

Call::Call(World& world, Duration limit)
    : event_(world.client_io()),
      begun_(world.clock().now()),
      limit_(begun_ + limit),
      opened_{.verdict = server::Verdict::kRefuse,
              .header = {},
              .route = nullptr,
              .body = wire::Reader({}),
              .reason = {}} {}

std::string Call::name() const {
  if (opened_.route == nullptr) return "a request";
  return std::string(opened_.route->name) + " v" + std::to_string(opened_.header.version) + " #" +
         std::to_string(number_);
}

void Call::on_parked(broker::Context&) {
  if (connection_ == nullptr || connection_->exclusive_ != this) return;
  connection_->exclusive_ = nullptr;
  connection_->start_next();
}

void Call::cancel() {
  context_->cancelled = true;
  if (context_->parked != nullptr) context_->parked->fire();
}

broker::Task<bool> answered(Call& call) {
  co_await call.event().wait_until(Time::max());
  co_return call.arrived();
}

Connection::Connection(World& world, Process& process, std::string client_id)
    : world_(world), process_(&process), peer_client_id_(std::move(client_id)) {
  peer_.listener = &process.listener();
  peer_.address = "127.0.0.1";
}

void Connection::send(std::shared_ptr<Call> call) {
  call->number_ = world_.count_request();
  call->connection_ = shared_from_this();
  call->opened_ = server::open_request(call->frame_, &handlers::find_route);
  CHECK(call->opened_.verdict == server::Verdict::kRun, "the simulation sends what is served");
  if (closed_) return lose(call);
  call->fate_ = world_.roll_fate();
  if (call->fate_ == Call::Fate::kRequestIsLost) {
    lose(call);
    return close();
  }
  receive(std::move(call));
}

void Connection::receive(std::shared_ptr<Call> call) {
  received_.push_back(std::move(call));
  start_next();
}

void Connection::start_next() {
  while (!closed_ && exclusive_ == nullptr && !received_.empty()) {
    const std::shared_ptr<Call> call = std::move(received_.front());
    received_.pop_front();
    start(call);
  }
}

void Connection::start(const std::shared_ptr<Call>& call) {
  running_.push_back(call);
  exclusive_ = call.get();
  const server::RequestHeader& header = call->opened_.header;
  call->context_.emplace(broker::Context{.broker = process_->broker(),
                                         .io = process_->io(),
                                         .peer = peer_,
                                         .client_id = header.client_id,
                                         .api_key = header.key,
                                         .api_version = header.version,
                                         .correlation_id = header.correlation_id,
                                         .slices = {},
                                         .observer = call.get()});
  process_->add_running(call);
  boost::asio::co_spawn(process_->io().context(), run(call, world_), boost::asio::detached);
}

broker::Task<void> Connection::run(std::shared_ptr<Call> call, World&) {
  const handlers::Route& route = *call->opened_.route;
  const std::int16_t version = call->opened_.header.version;
  server::write_response_header(call->out_, route, version, call->opened_.header.correlation_id);
  const Result<void> handled =
      co_await route.run(*call->context_, call->opened_.body, version, call->out_);
  call->connection_->finish(call, handled.has_value());
}

void Connection::finish(const std::shared_ptr<Call>& call, bool understood) {
  call->finished_ = true;
  if (exclusive_ == call.get()) exclusive_ = nullptr;
  const bool alive = process_ != nullptr && !process_->dead();
  if (process_ != nullptr) process_->remove_running(call);
  if (alive) {
    if (!understood) world_.violate(call->name() + ": the broker could not decode it");
    if (!call->context_->suppress_response) {
      auto bytes = assemble(call->out_, call->context_->slices);
      if (!bytes) return close();  // died while it sent
      call->answer_ = std::move(*bytes);
      world_.fold(call->number_, call->answer_);
      wire::Reader body{MutableBytes(call->answer_)};
      (void)body.int32("correlation id");
      if (call->opened_.route->response_header(call->opened_.header.version) > 0) body.skip_tags();
      if (auto taken = call->take_answer(body, call->opened_.header.version); !taken) {
        world_.violate(call->name() + ": its answer cannot be read: " + taken.error().detail);
      }
    }
  }
  if (!alive || closed_) {
    lose(call);
    return;
  }
  deliver_answers();
  start_next();
}

void Connection::deliver_answers() {
  while (!running_.empty() && running_.front()->finished_) {
    const std::shared_ptr<Call> call = std::move(running_.front());
    running_.pop_front();
    const bool closes = call->context_->close_connection;
    if (call->fate_ == Call::Fate::kAnswerIsLost) {
      lose(call);
      return close();
    }
    deliver(call);
    if (closes) return close();
  }
}

void Connection::deliver(const std::shared_ptr<Call>& call) {
  call->arrived_ = !call->lost_;
  world_.check_limit(*call);
  call->event_.fire();
  call->connection_.reset();
}

void Connection::lose(const std::shared_ptr<Call>& call) {
  if (!call->lost_ && !call->arrived_) {
    call->lost_ = true;
    world_.check_limit(*call);
    call->event_.fire();
  }
  if (call->finished_ || !call->context_) call->connection_.reset();
}

void Connection::close() {
  if (closed_) return;
  closed_ = true;
  const auto self = shared_from_this();
  for (const auto& call : received_) lose(call);
  received_.clear();
  for (const auto& call : running_) {
    if (!call->finished_) call->cancel();
    lose(call);
  }
  running_.clear();
}

void Connection::abandon() {
  close();
  process_ = nullptr;
}

}  // namespace kanal::sim
