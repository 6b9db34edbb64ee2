#include "daemon.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <map>

#include "kanal/base/logging.hpp"
#include "kanal/handlers/route.hpp"
#include "snapshot.hpp"

namespace kanal::server {
namespace {

constexpr std::size_t kOtherDescriptors = 128;  // RocksDB, epoll, timers, standard streams
constexpr std::int32_t kBacklog = 4096;
constexpr std::size_t kMostDescriptors = 1 << 20;

/// Raises the soft limit to the hard one; the number of descriptors the process may use.
std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kMostDescriptors);
  if (limit.rlim_cur < before || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = before;
  return static_cast<std::size_t>(std::min<rlim_t>(limit.rlim_cur, kMostDescriptors));
}

std::size_t as_limit(std::int32_t value) {
  return value < 0 ? SIZE_MAX : static_cast<std::size_t>(value);
}

bool is_set(const coordinator::BrokerConfig& kafka, std::string_view name) {
  return kafka.layers.fixed.contains(name);
}

/// Kafka's default of 100 KiB would cap a loopback or long-distance connection: the system's own
/// sizing stays in force unless the operator sets a size.
std::int32_t buffer_bytes(const coordinator::BrokerConfig& kafka, std::string_view name,
                          std::int32_t value) {
  return is_set(kafka, name) ? value : -1;
}

Duration max_idle(std::int64_t ms) {
  constexpr std::int64_t kCentury = 100LL * 366 * 24 * 3600 * 1000;
  return std::chrono::milliseconds(std::min(ms, kCentury));
}

/// Kafka takes host names there too.
std::map<std::string, std::size_t, std::less<>> limits_by_address(
    const coordinator::BrokerConfig& kafka) {
  std::map<std::string, std::size_t, std::less<>> limits;
  boost::asio::io_context context;
  boost::asio::ip::tcp::resolver resolver(context);
  for (const auto& [host, limit] : kafka.max_connections_per_ip_overrides) {
    boost::system::error_code error;
    const auto found = resolver.resolve(host, "", error);
    if (error) {
      logger("server").warn("A host of max.connections.per.ip.overrides is not known. host={}",
                            host);
    }
    for (const auto& entry : found) {
      limits.emplace(entry.endpoint().address().to_string(), as_limit(limit));
    }
  }
  return limits;
}

ConnectionLimits::Options connection_limits(const coordinator::BrokerConfig& kafka,
                                            std::size_t descriptors) {
  return {.total = std::min(as_limit(kafka.max_connections), descriptors),
          .per_address = as_limit(kafka.max_connections_per_ip),
          .overrides = limits_by_address(kafka),
          .per_second = as_limit(kafka.max_connection_creation_rate)};
}

std::string join_listeners(const std::vector<std::unique_ptr<Listener>>& listeners) {
  std::string text;
  for (const auto& listener : listeners) {
    if (!text.empty()) text += ",";
    text += listener->facts().name + "://" + to_string(listener->bound());
  }
  return text;
}

}  // namespace

Daemon::Daemon(const Config& config)
    : config_(config),
      files_(make_system_file_system()),
      helpers_(config.helper_threads),
      syncs_(1),
      at_ease_(config.helper_threads, HelperPool::Pace::kAtEase),
      request_memory_(resolved_request_memory(config)) {}

Daemon::~Daemon() {
  for (const auto& io : io_) io->stop();
  threads_.clear();
  stop_helpers();
}

void Daemon::stop_helpers() {
  at_ease_.stop();
  syncs_.stop();
  helpers_.stop();
}

Result<std::unique_ptr<Daemon>> Daemon::start(const Config& config, std::string_view version,
                                              const std::optional<std::string>& ready_file) {
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  const Time begin = daemon->clock_.now();
  const Descriptors descriptors = share_descriptors(config);
  broker::StartReport report;
  if (auto done = daemon->start_broker(report, descriptors.log_files); !done)
    return std::unexpected(done.error());
  if (auto done = daemon->start_listeners(descriptors.connections); !done)
    return std::unexpected(done.error());
  daemon->run_io_threads();
  const auto took = (daemon->clock_.now() - begin) / std::chrono::milliseconds(1);
  logger("server").info(
      "Serving. version={} data_dir={} listeners={} topics={} partitions={} groups={} "
      "transactional_ids={} "
      "recovered={} broken={} cut_logs={} cut_bytes={} io_threads={} took_ms={}",
      version, config.data_dir, join_listeners(daemon->listeners_), report.topics,
      report.partitions, report.groups, report.transactional_ids, report.recovered, report.broken,
      report.cut_logs, report.cut_bytes, daemon->io_.size(), took);
  if (auto done = daemon->open_doors(ready_file); !done) {
    (void)daemon->stop();
    return std::unexpected(done.error());
  }
  return daemon;
}

Daemon::Descriptors Daemon::share_descriptors(const Config& config) {
  const std::size_t all = raise_descriptor_limit();
  const std::size_t usable =
      all > 2 * kOtherDescriptors ? all - kOtherDescriptors : kOtherDescriptors;
  Descriptors share;
  share.log_files = config.open_log_files != 0 ? config.open_log_files : usable / 2;
  share.connections =
      usable > share.log_files + kOtherDescriptors ? usable - share.log_files : kOtherDescriptors;
  return share;
}

Result<void> Daemon::start_broker(broker::StartReport& report, std::size_t log_files) {
  const std::uint32_t threads = resolved_io_threads(config_);
  for (std::uint32_t i = 0; i < threads; ++i) {
    io_.push_back(std::make_unique<broker::IoThread>(clock_, static_cast<int>(i)));
  }
  broker::BrokerOptions options{.data_dir = resolved_data_dir(config_.data_dir),
                                .kafka = config_.kafka,
                                .max_open_log_files = log_files,
                                .cut_damaged_logs = config_.cut_damaged_logs,
                                .reserve_bytes = config_.reserve_bytes};
  const broker::Foundations foundations{
      *files_, helpers_, clock_, random_, reserved::open_rocks_store, &syncs_, &at_ease_};
  auto broker = broker::Broker::start(foundations, options, report);
  // A process that was killed holds its lock until the kernel has taken it apart: who starts the
  // next one at once waits for that, a second at most.
  for (int tries = 1; !broker && broker.error().os_error == EWOULDBLOCK && tries < 50; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    broker = broker::Broker::start(foundations, options, report);
  }
  if (!broker) return std::unexpected(broker.error());
  broker_ = std::move(*broker);
  for (const auto& io : io_) broker_->attach(*io);
  return {};
}

Result<void> Daemon::start_listeners(std::size_t connections) {
  const coordinator::BrokerConfig& kafka = config_.kafka;
  connection_options_.emplace(
      ConnectionOptions{.broker = *broker_,
                        .find_route = &handlers::find_route,
                        .request_memory = request_memory_,
                        .refusals = refusals_,
                        .largest_frame = kafka.socket_request_max_bytes,
                        .requests = config_.requests_per_connection,
                        .answer_bytes = config_.answer_bytes_per_connection,
                        .max_idle = max_idle(kafka.connections_max_idle_ms)});
  for (const auto& io : io_)
    groups_.push_back(std::make_unique<ConnectionGroup>(*io, *connection_options_));
  limits_.emplace(ConnectionLimits::Options{});
  // At once, and again whenever a client changes them.
  broker_->on_config_change([this, connections](const coordinator::BrokerConfig& now) {
    limits_->configure(connection_limits(now, connections));
  });
  const SocketOptions sockets{
      .send_buffer_bytes =
          buffer_bytes(kafka, "socket.send.buffer.bytes", kafka.socket_send_buffer_bytes),
      .receive_buffer_bytes =
          buffer_bytes(kafka, "socket.receive.buffer.bytes", kafka.socket_receive_buffer_bytes),
      // Kafka's default of 50 makes a burst of connections wait for repeated SYNs.
      .backlog =
          is_set(kafka, "socket.listen.backlog.size") ? kafka.socket_listen_backlog : kBacklog};
  listener_shared_.emplace(ListenerShared{*limits_, refusals_, sockets, groups_});
  for (const ListenerOptions& options : config_.listeners) {
    auto listener = Listener::bind(*io_.front(), options, *listener_shared_);
    if (!listener) return std::unexpected(listener.error());
    listeners_.push_back(std::move(*listener));
  }
  return {};
}

void Daemon::run_io_threads() {
  for (const auto& io : io_) {
    threads_.emplace_back([thread = io.get()] { thread->run(); });
    ::pthread_setname_np(threads_.back().native_handle(),
                         ("kanal-io-" + std::to_string(io->index())).c_str());
  }
  io_.front()->post([this] { tick_later(); });
}

void Daemon::tick_later() {
  auto on_time = [this] {
    broker_->tick();
    tick_later();
  };
  io_.front()->add_timer(clock_.now() + std::chrono::seconds(1), std::move(on_time));
}

Result<void> Daemon::open_doors(const std::optional<std::string>& ready_file) {
  if (auto done = open_control(); !done) return done;
  for (const auto& listener : listeners_) {
    if (auto done = listener->listen(); !done) return done;
  }
  if (!ready_file) return {};
  std::string lines;
  for (const auto& listener : listeners_) lines += to_string(listener->bound()) + "\n";
  return replace_file(*files_, *ready_file, as_bytes(lines));
}

Result<void> Daemon::open_control() {
  auto answer = [this](const std::string& line, const std::function<bool()>& cancelled) {
    return answer_control(*broker_, line, cancelled);
  };
  auto control =
      ControlSocket::open(*files_, resolved_data_dir(config_.data_dir), std::move(answer));
  if (!control) {
    // Nothing but snapshots needs it, and some file systems have no sockets.
    logger("server").warn("No snapshots can be asked for. reason={}", control.error().detail);
    return {};
  }
  control_ = std::move(*control);
  return {};
}

Result<void> Daemon::stop() {
  control_.reset();  // a snapshot that is being made is given up
  const Time begin = clock_.now();
  io_.front()->post([this] {
    for (const auto& listener : listeners_) listener->stop();
  });
  broker_->release_parked();
  on_every_group(&ConnectionGroup::drain);
  if (!connections_end_by(begin + kStopTime / 2)) {
    on_every_group(&ConnectionGroup::close_all);
    connections_end_by(begin + kStopTime * 3 / 5);
  }
  const Result<void> stopped = broker_->stop(begin + kStopTime);
  const auto took = (clock_.now() - begin) / std::chrono::milliseconds(1);
  if (stopped)
    logger("server").info("Stopped. took_ms={}", took);
  else
    logger("server").error("Stopped, not cleanly. took_ms={} reason=\"{}\"", took,
                           stopped.error().detail);
  // A handler that does not end holds what would be taken from under it; all that matters is on
  // disk.
  if (!connections_end_by(begin)) ::_exit(stopped ? 0 : 1);
  for (const auto& io : io_) io->stop();
  threads_.clear();
  stop_helpers();
  return stopped;
}

bool Daemon::connections_end_by(Time deadline) {
  const auto all_empty = [this] {
    return std::ranges::all_of(
        groups_, [](const auto& group) { return group->size() == 0 && group->empty(); });
  };
  while (!all_empty()) {
    if (clock_.now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

void Daemon::on_every_group(void (ConnectionGroup::*action)()) {
  for (const auto& group : groups_) {
    group->io().post([group = group.get(), action] { (group->*action)(); });
  }
}

}  // namespace kanal::server
