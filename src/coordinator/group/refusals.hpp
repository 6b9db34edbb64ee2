// The answers to JoinGroup and SyncGroup that only say why not. Plain functions.
#pragma once

#include "kanal/wire/messages/join_group.hpp"
#include "kanal/wire/messages/sync_group.hpp"

#include <string_view>

namespace kanal::coordinator {

[[nodiscard]] inline wire::JoinGroupResponse join_refusal(std::string_view member_id,
                                                          ErrorCode error) {
  wire::JoinGroupResponse response;
  response.error_code = error;
  response.member_id = member_id;
  response.protocol_name = std::nullopt;
  return response;
}

[[nodiscard]] inline wire::SyncGroupResponse sync_refusal(ErrorCode error) {
  wire::SyncGroupResponse response;
  response.error_code = error;
  return response;
}

}  // namespace kanal::coordinator
