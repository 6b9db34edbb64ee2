// The protocol as wiregen sees it: parsed from src/wire/schema, checked, then only read by the
// emitters. Used by the generator and by the test that holds the schemas against Kafka's own;
// single-threaded.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace kanal::wiregen {

/// A mistake in a schema: "file:line: what".
class SchemaError : public std::runtime_error {
 public:
  SchemaError(const std::string& file, int line, const std::string& what)
      : std::runtime_error(file + ":" + std::to_string(line) + ": " + what) {}
};

inline constexpr int kForever = std::numeric_limits<std::int16_t>::max();

/// An inclusive range of versions; empty if max < min. "9+" ends at kForever until the checker cuts
/// it.
struct Versions {
  int min = 0;
  int max = -1;
  [[nodiscard]] bool empty() const { return max < min; }
  [[nodiscard]] bool contains(int version) const { return version >= min && version <= max; }
  friend bool operator==(const Versions&, const Versions&) = default;
};

enum class Kind {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint16,
  kUint32,
  kFloat64,
  kUuid,
  kString,
  kBytes,
  kRecords,
  kStruct
};
enum class Wrap { kPlain, kStrong, kErrorCode, kMilliseconds };  // what a number is in C++

struct Type {
  std::string name;  // as written in schemas
  Kind kind;
  std::string cpp;  // for numbers and uuid
  Wrap wrap = Wrap::kPlain;
};
/// nullptr for a name that is not a built-in type.
[[nodiscard]] const Type* find_type(const std::string& name);
/// Kafka's name of what is on the wire: "int32", "string", …; "struct" for structs.
[[nodiscard]] std::string wire_name(Kind kind);

struct Struct;

struct Field {
  std::string name;
  std::string type_name;  // without []
  bool is_array = false;
  const Type* type = nullptr;      // set for built-in types
  Struct* structure = nullptr;     // set by the checker for struct types
  std::unique_ptr<Struct> nested;  // owned where the struct is written in place
  std::optional<int> since, until;
  Versions versions;                      // set by the checker: where the field is on the wire
  std::optional<Versions> nullable_text;  // as written
  Versions nullable;                      // set by the checker
  std::optional<std::string> default_text;
  bool default_null = false;
  std::optional<int> tag;
  bool always_inflexible = false;  // `flexible: false`
  std::string notes;
  int line = 0;

  [[nodiscard]] Kind kind() const { return structure != nullptr ? Kind::kStruct : type->kind; }
  [[nodiscard]] bool can_be_null() const { return !nullable.empty() && kind() != Kind::kRecords; }
  [[nodiscard]] bool tagged() const { return tag.has_value(); }
};

struct Struct {
  std::string name;
  std::string qualified;  // set by the checker: "ProduceRequest::Topic"
  std::vector<Field> fields;
  Versions versions;  // set by the checker
  int line = 0;
};

enum class Role { kRequest, kResponse, kHeader, kRecord };

struct Message {
  std::string name;  // "ProduceRequest"
  Role role = Role::kRequest;
  Versions versions;
  int flexible_from = kForever;
  std::vector<std::unique_ptr<Struct>> common;
  Struct root;
  bool views = false;   // strings and bytes are views into the frame
  int record_type = 0;  // Role::kRecord
  std::string channel;  // Role::kRecord
  std::map<int, std::string> notes;
  std::string file;
};

struct Api {
  int key = 0;
  std::string name;        // "Produce"
  std::string snake_name;  // "produce"
  Versions versions;
  int advertised_min = 0;
  int flexible_from = kForever;
  std::optional<int> response_header;  // where it does not follow `flexible`
  std::map<int, std::string> notes;
  Message request, response;
  std::string file;
};

struct Protocol {
  std::vector<Api> apis;  // by rising key
  std::vector<Message> headers;
  std::vector<Message> records;
};

/// All structs of a message, innermost first, the root last.
[[nodiscard]] std::vector<const Struct*> structs_of(const Message& message);

/// The fewest bytes a field or struct takes in one version.
[[nodiscard]] int min_size(const Field& field, const Message& message, int version);
[[nodiscard]] int min_size(const Struct& structure, const Message& message, int version);

}  // namespace kanal::wiregen
