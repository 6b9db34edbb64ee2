// One client connection, for life on one I/O thread: bytes in, frames, handlers started in order of
// arrival, answers out in the same order (errors and acks=0 included). Requests are handled
// pipelined: a handler that waits parked (a long poll, acks after sync) lets later ones start; one
// that waits for anything else holds them back, so that what they change happens in their order.
// Bounded by requests and answer bytes: over either the socket is not read.
#pragma once

#include "answer_queue.hpp"
#include "connection_limits.hpp"
#include "dispatch.hpp"
#include "frame.hpp"
#include "frame_buffer.hpp"
#include "kanal/broker/context.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>

namespace kanal::server {

class ConnectionGroup;

/// What the listener hands over.
struct Accepted {
  int socket = -1;  // non-blocking, owned by who adopts it
  bool ipv6 = false;
  const broker::Listener* listener = nullptr;  // outlives the connection
  std::string address;                         // the client's IP
  std::uint16_t port = 0;                      // the client's
  Admission admission;                         // its place among the broker's connections
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(ConnectionGroup& group, Accepted accepted);
  ~Connection();

  void start();
  /// No more requests; what is parked answers at once; closed when all is answered and sent.
  void drain();
  void close();

  [[nodiscard]] Time last_active() const noexcept { return last_active_; }
  /// A request is in flight: such a connection is not idle. One that only does not take its answers
  /// is.
  [[nodiscard]] bool has_requests() const noexcept { return !slots_.empty(); }
  [[nodiscard]] bool busy() const noexcept { return has_requests() || !answers_.empty(); }
  /// Memory of a connection that has been quiet: back to a small buffer.
  void shrink();
  /// Whether it holds room in the request memory for a frame that does not arrive.
  [[nodiscard]] bool hoards() const noexcept;
  [[nodiscard]] std::string peer_name() const;

 private:
  /// One request, from its frame to its answer.
  friend class ConnectionGroup;
  struct Slot final : broker::ParkObserver {
    Slot(Connection& owner, OpenedRequest opened);
    void on_parked(broker::Context& context) override;

    Connection& connection;
    FrameRef frame;  // keeps what body and context point into
    const handlers::Route* route;
    wire::Reader body;
    broker::Context context;
    std::unique_ptr<wire::Writer> out;
    bool done = false;
  };
  static broker::Task<void> run(std::shared_ptr<Connection> self, Slot& slot);

  void read_on();
  void on_read(bool failed, std::size_t bytes);
  void on_end_of_input();
  void work();
  void schedule_work();
  void start_requests();
  bool may_start() noexcept;
  void start_request(MutableBytes frame);
  void finish(Slot& slot);
  void refuse(const RequestHeader& header, const handlers::Route* route, std::string_view reason);
  void refuse_bytes(Bytes received);
  void cancel_parked();
  void collect_answers();
  void send_answers();
  void wait_writable();

  [[nodiscard]] MutableBytes pending() const noexcept;
  [[nodiscard]] FrameExtent next_frame() const noexcept;
  bool make_room(std::size_t wanted);
  void learn_frame_size(std::size_t frame_bytes) noexcept;
  bool replace_buffer(std::size_t wanted);
  void wait_for_memory();
  void give_memory_back();

  ConnectionGroup& group_;
  boost::asio::ip::tcp::socket socket_;
  broker::Peer peer_;
  std::uint16_t port_;
  Admission admission_;
  std::list<std::shared_ptr<Connection>>::iterator place_;  // in the group, by last activity
  Time last_active_;

  FrameRef buffer_;
  std::size_t begin_ = 0, end_ = 0;               // received and not yet taken as frames
  std::size_t usual_bytes_ = BufferPool::kSmall;  // the buffer this connection has proved to need
  std::deque<std::unique_ptr<Slot>> slots_;
  AnswerQueue answers_;
  std::uint64_t held_answer_bytes_ = 0;  // made, behind one that is not
  Slot* exclusive_ = nullptr;            // later requests wait for it

  bool reading_ = false, waiting_writable_ = false, waiting_memory_ = false,
       work_scheduled_ = false;
  bool starting_ = false;   // inside start_requests: who finishes now needs not schedule work
  bool cancelled_ = false;  // the other side has ended or the broker stops: nothing waits any more
  bool input_ended_ = false;  // no more bytes; the requests received are still answered
  bool draining_ = false;     // the broker stops: no more requests
  bool dropping_ = false;     // the last answer is on its way; those of later requests are dropped
  bool refusing_ = false;     // no more requests; close after the answers to those before
  bool closed_ = false;
};

}  // namespace kanal::server
