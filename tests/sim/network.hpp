// The network between simulated clients and the broker. A Connection serves its requests as
// kanald's does: one at a time until it parks, answers in order. Requests are real frames through
// dispatch and the generated route. A connection may break before a request arrives or before its
// answer does. Answers are looked at where they leave the broker (Call::take_answer), so that a
// checker sees those too that never arrive. One thread.
#pragma once

#include "dispatch.hpp"
#include "kanal/broker/context.hpp"
#include "kanal/wire/reader.hpp"
#include "kanal/wire/writer.hpp"
#include "tamper.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace kanal::sim {

class Connection;
class Process;
class World;

/// One request and its answer.
class Call : public broker::ParkObserver, public std::enable_shared_from_this<Call> {
 public:
  enum class Fate { kArrives, kRequestIsLost, kAnswerIsLost };
  Call(World& world, Duration limit);
  virtual ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  void on_parked(broker::Context& context) override;
  /// Decodes what the broker answered and shows it to whoever watches; an error is a bug.
  virtual Result<void> take_answer(wire::Reader& body, std::int16_t version) = 0;
  [[nodiscard]] bool arrived() const noexcept { return arrived_; }
  [[nodiscard]] broker::Event& event() noexcept { return event_; }
  [[nodiscard]] Time begun() const noexcept { return begun_; }
  [[nodiscard]] Time limit() const noexcept { return limit_; }
  [[nodiscard]] std::string name() const;
  /// The broker stops or is dead: the handler is not to wait any more.
  void cancel();
  void set_frame(Buffer frame) { frame_ = std::move(frame); }

 protected:
  void arrive() {
    arrived_ = true;
    event_.fire();
  }
  Buffer answer_;  // what views of the answer point into

 private:
  friend class Connection;
  friend class Process;
  friend class World;

  broker::Event event_;
  const Time begun_, limit_;
  std::uint64_t number_ = 0;
  Fate fate_ = Fate::kArrives;
  Buffer frame_;
  server::OpenedRequest opened_;
  std::optional<broker::Context> context_;
  wire::Writer out_;
  std::shared_ptr<Connection> connection_;
  bool finished_ = false;  // the handler has returned
  bool arrived_ = false;   // the client has its answer
  bool lost_ = false;      // it never will
};

template <class Response>
class Pending final : public Call {
 public:
  using Watch = std::function<void(Response&)>;
  Pending(World& world, Duration limit, Watch watch)
      : Call(world, limit), watch_(std::move(watch)) {}
  Result<void> take_answer(wire::Reader& body, std::int16_t version) override {
    if (auto decoded = decode(body, version, response); !decoded) return decoded;
    if (body.remaining() != 0) return fail(ErrorCode::UNKNOWN_SERVER_ERROR, "bytes are left");
    if (watch_) watch_(response);
    return {};
  }
  /// Answered without the broker.
  void answer_locally(Response forged) {
    response = std::move(forged);
    if (watch_) watch_(response);
    arrive();
  }
  Response response;

 private:
  Watch watch_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(World& world, Process& process, std::string client_id);

  void send(std::shared_ptr<Call> call);
  /// Both sides learn of it: what is parked is cancelled, what was not answered is lost.
  void close();
  /// The process is gone.
  void abandon();
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  [[nodiscard]] const std::string& client_id() const noexcept { return peer_client_id_; }

 private:
  friend class Call;
  void receive(std::shared_ptr<Call> call);
  void start_next();
  void start(const std::shared_ptr<Call>& call);
  static broker::Task<void> run(std::shared_ptr<Call> call, World& world);
  void finish(const std::shared_ptr<Call>& call, bool understood);
  void deliver_answers();
  void deliver(const std::shared_ptr<Call>& call);
  void lose(const std::shared_ptr<Call>& call);

  World& world_;
  Process* process_;
  const std::string peer_client_id_;
  broker::Peer peer_;
  std::deque<std::shared_ptr<Call>> received_;  // not started
  std::deque<std::shared_ptr<Call>> running_;   // started, in order; done ones wait for the first
  Call* exclusive_ = nullptr;
  bool closed_ = false;
};

/// Waits for the answer: whether there is one.
[[nodiscard]] broker::Task<bool> answered(Call& call);

}  // namespace kanal::sim
