// The rows of broker_config_rows(), by area, and the sentences that several of them share. For the
// tables alone; everybody else asks broker_config_rows() and topic_config_rows().
#pragma once

#include "kanal/coordinator/config_table.hpp"

namespace kanal::coordinator {

inline constexpr std::string_view kNoteSasl = "SASL is not served yet";
inline constexpr std::string_view kNoteOne = "There is one node, which talks to no other broker";
inline constexpr std::string_view kNoteClient = "The broker sends no requests of its own";
inline constexpr std::string_view kNoteJvm = "It names a Java class, and there are no plug-ins";
inline constexpr std::string_view kNoteDirs = "There is one data directory";
inline constexpr std::string_view kNotePurg =
    "Answered requests are gone at once, there is nothing to clear away";
inline constexpr std::string_view kNoteShare = "In force once share groups are served";
inline constexpr std::string_view kNoteCkpt = "Checkpoints follow the log's own rule";
inline constexpr std::string_view kNoteRem = "There is no remote storage";
inline constexpr std::string_view kNoteTxnretry = "One node never has to retry this";
inline constexpr std::string_view kNoteTop =
    "This state is kept in reserved channels, not in a topic";
inline constexpr std::string_view kNoteGroup =
    "In force once the group protocol of KIP-848 is served";
inline constexpr std::string_view kNoteStreams = "In force once streams groups are served";
inline constexpr std::string_view kNoteCoord =
    "Coordinators work on the I/O threads and write at once";
inline constexpr std::string_view kNoteCtl = "There is no controller quorum";
inline constexpr std::string_view kNoteQuota = "Client quotas are not served yet";
inline constexpr std::string_view kNoteMetalog = "There is no metadata log";
inline constexpr std::string_view kNoteRep = "There is one node, so nothing is replicated";
inline constexpr std::string_view kNoteMet = "There are no metrics reporters";
inline constexpr std::string_view kNoteDt = "Delegation tokens are not served";
inline constexpr std::string_view kNoteTls = "TLS is not served yet";

[[nodiscard]] std::span<const ConfigRow> network_rows() noexcept;
[[nodiscard]] std::span<const ConfigRow> topics_rows() noexcept;
[[nodiscard]] std::span<const ConfigRow> log_rows() noexcept;
[[nodiscard]] std::span<const ConfigRow> groups_rows() noexcept;
[[nodiscard]] std::span<const ConfigRow> cluster_rows() noexcept;
[[nodiscard]] std::span<const ConfigRow> remote_rows() noexcept;
[[nodiscard]] std::span<const ConfigRow> security_rows() noexcept;

}  // namespace kanal::coordinator
