// DeleteTopics (20): the catalog's record is synced, the files are renamed away, then it is
// answered; a topic made again under the same name has a new id and never meets the old bytes.
//
// Behavior
// - Each topic fails alone. Named twice, or by name and by its id: INVALID_REQUEST. A timeout of 0
// or less is
//   REQUEST_TIMED_OUT and nothing happens.
// Version notes
// - 6 names topics by name or id; the answer to an id has both.
#include <algorithm>
#include <map>

#include "kanal/broker/broker.hpp"
#include "kanal/wire/messages/delete_topics.hpp"

namespace kanal::handlers {
namespace {

using broker::Context;
using Request = wire::DeleteTopicsRequest;
using Response = wire::DeleteTopicsResponse;

class Deletion {
 public:
  Deletion(Context& context, const Request& request)
      : context_(context), request_(request), names_(count_names()), ids_(count_ids()) {}

  /// Whether any topic is named once and properly, so that it is worth looking up.
  [[nodiscard]] bool looks_up() const {
    const auto once = [](const auto& entry) { return entry.second == 1; };
    return std::ranges::any_of(names_, once) || std::ranges::any_of(ids_, once);
  }

  /// What can be deleted; everything else has its answer already.
  std::vector<coordinator::CatalogCommand> plan() {
    refuse_misnamed();
    for (const auto& [name, count] : names_) {
      if (count > 1)
        refuse(std::string(name), {}, ErrorCode::INVALID_REQUEST, "Duplicate topic name.");
    }
    for (const auto& [id, count] : ids_) {
      if (count > 1) refuse(std::nullopt, id, ErrorCode::INVALID_REQUEST, "Duplicate topic id.");
    }
    const auto topics = context_.broker.topics();
    for (const auto& [id, count] : ids_) {
      const auto topic = count == 1 ? topics->find(id) : nullptr;
      if (topic != nullptr)
        found_.emplace(id, topic->name());
      else if (count == 1)
        refuse(std::nullopt, id, ErrorCode::UNKNOWN_TOPIC_ID,
               "This server does not host this topic ID.");
    }
    for (const auto& [name, count] : names_) {
      if (count == 1) find_by_name(*topics, name);
    }
    std::vector<coordinator::CatalogCommand> commands;
    for (const auto& [id, name] : found_) commands.emplace_back(coordinator::DeleteTopic{name, id});
    return commands;
  }

  Response finish(const std::vector<coordinator::CatalogReply>& replies) {
    std::size_t next = 0;
    for (const auto& [id, name] : found_) {
      const auto& reply = replies[next++];
      refuse(name, id, reply ? ErrorCode::NONE : reply.error().code,
             reply ? std::string() : reply.error().detail);
    }
    return std::move(response_);
  }

 private:
  std::map<std::string_view, int> count_names() const {
    std::map<std::string_view, int> names;
    for (const std::string_view name : request_.topic_names) ++names[name];
    for (const auto& topic : request_.topics) {
      if (topic.name && topic.topic_id.is_zero()) ++names[*topic.name];
    }
    return names;
  }

  void refuse_misnamed() {
    for (const auto& topic : request_.topics) {
      if (topic.name && !topic.topic_id.is_zero()) {
        refuse(std::string(*topic.name), topic.topic_id, ErrorCode::INVALID_REQUEST,
               "You may not specify both topic name and topic id.");
      } else if (!topic.name && topic.topic_id.is_zero()) {
        refuse(std::nullopt, {}, ErrorCode::INVALID_REQUEST,
               "Neither topic name nor id were specified.");
      }
    }
  }

  std::map<Uuid, int> count_ids() const {
    std::map<Uuid, int> ids;
    for (const auto& topic : request_.topics) {
      if (!topic.name && !topic.topic_id.is_zero()) ++ids[topic.topic_id];
    }
    return ids;
  }

  void find_by_name(const broker::Topics& topics, std::string_view name) {
    const auto topic = topics.find(name);
    if (topic == nullptr) {
      refuse(std::string(name), {}, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
             "This server does not host this topic-partition.");
      return;
    }
    if (ids_.contains(topic->id())) {
      found_.erase(topic->id());
      refuse(std::string(name), topic->id(), ErrorCode::INVALID_REQUEST,
             "The provided topic name maps to an ID that was already supplied.");
      return;
    }
    found_.emplace(topic->id(), std::string(name));
  }

  void refuse(std::optional<std::string> name, const Uuid& id, ErrorCode code,
              std::string message) {
    auto& entry = response_.responses.emplace_back();
    entry.name = std::move(name);
    entry.topic_id = id;
    entry.error_code = code;
    if (!message.empty()) entry.error_message = std::move(message);
  }

  Context& context_;
  const Request& request_;
  const std::map<std::string_view, int> names_;  // how often each is named
  const std::map<Uuid, int> ids_;
  std::map<Uuid, std::string> found_;
  Response response_;
};

/// Every topic as it was named, with one error for all.
Response refuse_all(const Request& request, ErrorCode code,
                    const std::optional<std::string>& message) {
  Response response;
  const auto add = [&](std::optional<std::string> name, const Uuid& id) {
    auto& entry = response.responses.emplace_back();
    entry.name = std::move(name);
    entry.topic_id = id;
    entry.error_code = code;
    entry.error_message = message;
  };
  for (const std::string_view name : request.topic_names) add(std::string(name), {});
  for (const auto& topic : request.topics) {
    add(topic.name ? std::optional<std::string>(*topic.name) : std::nullopt, topic.topic_id);
  }
  return response;
}

}  // namespace

broker::Task<Response> handle(Context& context, Request request) {
  if (!context.broker.config()->delete_topic) {
    const ErrorCode code =
        context.api_version < 3 ? ErrorCode::INVALID_REQUEST : ErrorCode::TOPIC_DELETION_DISABLED;
    co_return refuse_all(request, code, "Topic deletion is disabled (delete.topic.enable=false).");
  }
  Deletion deletion(context, request);
  if (request.timeout.count() <= 0 && deletion.looks_up()) {
    co_return refuse_all(request, ErrorCode::REQUEST_TIMED_OUT, std::nullopt);
  }
  std::vector<coordinator::CatalogCommand> commands = deletion.plan();
  std::vector<coordinator::CatalogReply> replies;
  if (!commands.empty())
    replies = co_await context.broker.change_catalog(context, std::move(commands));
  co_return deletion.finish(replies);
}

}  // namespace kanal::handlers
