// What a schema can get wrong, and that the message says where: file:line: what.
#include "parse.hpp"

#include <gtest/gtest.h>

namespace kanal::wiregen {
namespace {

std::string error_of(const std::string& text, const std::string& file = "99_test.yaml") {
  try {
    static_cast<void>(load_api(file, text));
  } catch (const SchemaError& error) {
    return error.what();
  }
  return "no error";
}

// An API of versions 2-9, flexible from 5, with the given request fields: the first of them is on
// line 5.
std::string api_with(const std::string& fields) {
  return "api: Test\nversions: 2-9\nflexible: 5+\nrequest:\n" + fields + "\nresponse: []\n";
}
std::string field_error(const std::string& fields) {
  return error_of(api_with(fields));
}

TEST(Schema, AGoodOneIsRead) {
  const Api api =
      load_api("26_end_txn.yaml",
               "api: EndTxn\nversions: 0-5\nflexible: 3+\n"
               "request:\n  - {name: id, type: ProducerId, since: 5, default: -1}\nresponse: []\n");
  EXPECT_EQ(api.key, 26);
  EXPECT_EQ(api.snake_name, "end_txn");
  EXPECT_EQ(api.request.name, "EndTxnRequest");
  EXPECT_EQ(api.request.root.fields[0].versions, (Versions{5, 5}));
  EXPECT_EQ(api.advertised_min, 0);
}

TEST(Schema, ErrorsNameFileAndLine) {
  EXPECT_EQ(field_error("  - {name: a, type: int32}\n  - {name: b, typ: int32}"),
            "99_test.yaml:6: unknown key 'typ'");
  EXPECT_EQ(field_error("  - {name: a, type: int33}"), "99_test.yaml:5: unknown type 'int33'");
  EXPECT_EQ(error_of("api: Test\nversion: 0-1\n"), "99_test.yaml:2: unknown key 'version'");
  EXPECT_EQ(error_of("api: Test\nversions: 0-1\nflexible: none\nresponse: []\n"),
            "99_test.yaml:1: 'request' is missing");
  EXPECT_EQ(error_of("api: [\n"), "99_test.yaml:2: end of sequence flow not found");
}

TEST(Schema, KeysAndFileNames) {
  EXPECT_EQ(field_error("  - {name: a, type: int8, name: b}"),
            "99_test.yaml:5: key 'name' is written twice");
  EXPECT_EQ(field_error("  - {type: int8}"), "99_test.yaml:5: 'name' is missing");
  EXPECT_EQ(field_error("  - int8"), "99_test.yaml:5: a mapping of key: value is expected here");
  EXPECT_EQ(error_of(api_with("  []"), "test.yaml"),
            "test.yaml:1: the file must be named <api key>_<name>.yaml");
}

TEST(Schema, VersionRanges) {
  EXPECT_EQ(field_error("  - {name: a, type: int8, since: 2}"),
            "99_test.yaml:5: 'since' of 'a' is not after the first version");
  EXPECT_EQ(field_error("  - {name: a, type: int8, since: 10}"),
            "99_test.yaml:5: 'since' of 'a' is after the last version");
  EXPECT_EQ(field_error("  - {name: a, type: int8, until: 9}"),
            "99_test.yaml:5: 'until' of 'a' is not before the last version");
  EXPECT_EQ(field_error("  - {name: a, type: int8, since: 6, until: 5}"),
            "99_test.yaml:5: 'a' is in no version");
  EXPECT_EQ(field_error("  - {name: a, type: int8, since: five}"),
            "99_test.yaml:5: 'since' must be a small number, not 'five'");
  EXPECT_EQ(field_error("  - name: a\n    type: '[]A'\n    since: 6\n    fields:\n      - {name: "
                        "b, type: int8, since: 4}"),
            "99_test.yaml:9: 'since' of 'b' is not after the first version");
  EXPECT_EQ(error_of("api: Test\nversions: 5-2\nflexible: none\nrequest: []\nresponse: []\n"),
            "99_test.yaml:2: 'versions' must be a range from low to high, not '5-2'");
  EXPECT_EQ(error_of("api: Test\nversions: 2+\nflexible: none\nrequest: []\nresponse: []\n"),
            "99_test.yaml:1: 'versions' must end");
  EXPECT_EQ(
      error_of(
          "api: Test\nversions: 2-9\nadvertise: 3-9\nflexible: none\nrequest: []\nresponse: []\n"),
      "99_test.yaml:1: 'advertise' must end where 'versions' ends and not start later");
  EXPECT_EQ(
      error_of(
          "api: Test\nversions: 2-9\nflexible: none\nnotes: {10: x}\nrequest: []\nresponse: []\n"),
      "99_test.yaml:1: a note for version 10, which is not served");
}

TEST(Schema, Tags) {
  EXPECT_EQ(field_error("  - {name: a, type: int8, since: 5, tag: 0}\n  - {name: b, type: int8, "
                        "since: 6, tag: 0}"),
            "99_test.yaml:6: tag 0 is used twice");
  EXPECT_EQ(field_error("  - {name: a, type: int8, since: 4, tag: 0}"),
            "99_test.yaml:5: a tagged field before the first flexible version");
  EXPECT_EQ(field_error("  - {name: a, type: records, since: 5, tag: 0}"),
            "99_test.yaml:5: records cannot be in an array or tagged");
}

TEST(Schema, NullsAndDefaults) {
  EXPECT_EQ(field_error("  - {name: a, type: int8, nullable: true}"),
            "99_test.yaml:5: type 'int8' has no null");
  EXPECT_EQ(field_error("  - {name: a, type: A, nullable: true, fields: []}"),
            "99_test.yaml:5: a struct that can be null must stand under 'structs'");
  EXPECT_EQ(field_error("  - {name: a, type: string, nullable: 10+}"),
            "99_test.yaml:5: 'nullable' of 'a' covers none of its versions");
  EXPECT_EQ(field_error("  - {name: a, type: string, nullable: 3-12}"),
            "99_test.yaml:5: 'nullable' of 'a' ends after the last version");
  EXPECT_EQ(field_error("  - {name: a, type: string, default: null}"),
            "99_test.yaml:5: default null, but 'a' has no null");
  EXPECT_EQ(field_error("  - {name: a, type: int8, default: 128}"),
            "99_test.yaml:5: default '128' does not fit int8");
  EXPECT_EQ(field_error("  - {name: a, type: bool, default: 1}"),
            "99_test.yaml:5: default of 'a' must be true or false");
  EXPECT_EQ(field_error("  - {name: a, type: uuid, default: 0}"),
            "99_test.yaml:5: type of 'a' takes no default");
}

TEST(Schema, NamesAndStructs) {
  EXPECT_EQ(field_error("  - {name: aB, type: int8}"),
            "99_test.yaml:5: field 'aB' is not snake_case");
  EXPECT_EQ(field_error("  - {name: a, type: int8}\n  - {name: a, type: int8}"),
            "99_test.yaml:6: field 'a' is there twice");
  EXPECT_EQ(field_error("  - {name: a, type: topic, fields: []}"),
            "99_test.yaml:5: struct 'topic' is not CamelCase");
  EXPECT_EQ(field_error("  - {name: a, type: Offset, fields: []}"),
            "99_test.yaml:5: 'fields' given for the built-in type 'Offset'");
  EXPECT_EQ(field_error("  - {name: a, type: A, fields: []}\n  - {name: b, type: A, fields: []}"),
            "99_test.yaml:6: struct 'A' is defined twice here");
  EXPECT_EQ(error_of("api: Test\nversions: 0\nflexible: 0+\nstructs:\n  - {name: A, fields: "
                     "[]}\nrequest: []\nresponse: []\n"),
            "99_test.yaml:5: struct 'A' is not used");
  EXPECT_EQ(error_of("api: Test\nversions: 0\nflexible: 0+\nstructs:\n  - {name: A, fields: "
                     "[{name: a, type: A}]}\n"
                     "request: [{name: a, type: A}]\nresponse: []\n"),
            "99_test.yaml:5: structs are nested deeper than 8");
}

TEST(Schema, RecordTypesAreUnique) {
  const std::string record =
      "  - {name: A, type: 1, channel: c, versions: 0, flexible: 0+, fields: []}\n";
  EXPECT_THROW(static_cast<void>(load_messages("stored.yaml", "records:\n" + record + record)),
               SchemaError);
  EXPECT_EQ(load_messages("stored.yaml", "records:\n" + record).size(), 1U);
}

}  // namespace
}  // namespace kanal::wiregen
