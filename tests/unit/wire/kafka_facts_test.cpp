// Every schema, in every version served, against the definitions of Apache Kafka 4.4; and that a
// planted difference of any kind is found.
#include "layout.hpp"
#include "parse.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

namespace kanal::wiregen {
namespace {

const Protocol& protocol() {
  static const Protocol kProtocol = load_directory(KANAL_SCHEMA_DIR);
  return kProtocol;
}

TEST(KafkaFacts, EveryMessageIsKafkasInEveryServedVersion) {
  ASSERT_GE(protocol().apis.size(), 14U);
  for (const Api& api : protocol().apis) {
    EXPECT_EQ(difference(api.request, kafka_definition(api.request.name)), "");
    EXPECT_EQ(difference(api.response, kafka_definition(api.response.name)), "");
    EXPECT_EQ(kafka_definition(api.request.name).at("apiKey").as_int64(), api.key) << api.name;
  }
  for (const Message& message : protocol().headers) {
    EXPECT_EQ(difference(message, kafka_definition(message.name)), "");
  }
}

bool has_flexible_version(const Message& message) {
  return message.flexible_from <= message.versions.max;
}

TEST(KafkaFacts, ServedVersionsAreWithinKafkas) {
  std::ifstream facts(std::string(KANAL_GOLDEN_DIR) + "/kafka-4.4/apis.tsv");
  std::string line;
  std::getline(facts, line);  // column names
  std::size_t found = 0;
  while (std::getline(facts, line)) {
    std::istringstream stream(line);
    std::vector<std::string> columns;  // key, name, min, max ("6 (unstable)"), flexible from
    for (std::string column; std::getline(stream, column, '\t');) columns.push_back(column);
    ASSERT_GE(columns.size(), 5U) << line;
    const std::string& name = columns[1];
    for (const Api& api : protocol().apis) {
      if (std::to_string(api.key) != columns[0]) continue;
      ++found;
      EXPECT_EQ(api.name, name);
      EXPECT_GE(api.versions.min, std::stoi(columns[2])) << name;
      EXPECT_LE(api.versions.max, std::stoi(columns[3])) << name;
      const int flexible_from = has_flexible_version(api.request) ? api.flexible_from : -1;
      EXPECT_EQ(std::to_string(flexible_from), columns[4]) << name;
    }
  }
  EXPECT_EQ(found, protocol().apis.size());
}

using Undo = std::function<void()>;  // empty where the mutation does not apply

struct Mutation {
  std::string what;
  std::function<Undo(Struct&, std::size_t)> plant;
};

template <class T>
Undo set(T& place, T value) {
  return [&place, old = std::exchange(place, std::move(value))] { place = old; };
}

Undo other_type(Struct& in, std::size_t i) {
  Field& field = in.fields[i];
  if (field.structure != nullptr) return {};
  return set(field.type, find_type(field.kind() == Kind::kInt32 ? "int64" : "int32"));
}

Undo other_default(Struct& in, std::size_t i) {
  Field& field = in.fields[i];
  return [null = set(field.default_null, false),
          text = set(field.default_text, std::optional<std::string>("77"))] {
    null();
    text();
  };
}

Undo other_order(Struct& in, std::size_t i) {
  if (i + 1 >= in.fields.size()) return {};
  Field& a = in.fields[i];
  Field& b = in.fields[i + 1];
  const bool together = a.versions.max >= b.versions.min && b.versions.max >= a.versions.min;
  if (a.tagged() || b.tagged() || !together) return {};
  std::swap(a, b);
  return [&a, &b] { std::swap(a, b); };
}

Undo missing(Struct& in, std::size_t i) {
  auto lost = std::make_shared<Field>(std::move(in.fields[i]));
  const auto at = static_cast<std::ptrdiff_t>(i);
  in.fields.erase(in.fields.begin() + at);
  return [&in, at, lost] { in.fields.insert(in.fields.begin() + at, std::move(*lost)); };
}

constexpr const char* kNeverCompact = "never compact";  // says nothing where no version is flexible

const std::vector<Mutation>& mutations() {
  static const std::vector<Mutation> kMutations = {
      {"another name",
       [](Struct& in, std::size_t i) { return set(in.fields[i].name, in.fields[i].name + "_x"); }},
      {"another type", other_type},
      {"a list or not",
       [](Struct& in, std::size_t i) {
         return set(in.fields[i].is_array, !in.fields[i].is_array);
       }},
      {"a later start",
       [](Struct& in, std::size_t i) {
         return set(in.fields[i].versions.min, in.fields[i].versions.min + 1);
       }},
      {"an earlier end",
       [](Struct& in, std::size_t i) {
         return set(in.fields[i].versions.max, in.fields[i].versions.max - 1);
       }},
      {"null or not",
       [](Struct& in, std::size_t i) {
         Field& field = in.fields[i];
         return set(field.nullable, field.nullable.empty() ? field.versions : Versions{});
       }},
      {"another default", other_default},
      {"another tag",
       [](Struct& in, std::size_t i) {
         return set(in.fields[i].tag, std::optional<int>(in.fields[i].tag.value_or(4) + 5));
       }},
      {kNeverCompact,
       [](Struct& in, std::size_t i) {
         return set(in.fields[i].always_inflexible, !in.fields[i].always_inflexible);
       }},
      {"another order", other_order},
      {"missing", missing},
  };
  return kMutations;
}

/// A fresh copy that a test may change.
Api reload(const Api& api) {
  std::ifstream stream(api.file);
  std::ostringstream text;
  text << stream.rdbuf();
  return load_api(api.file, text.str());
}

void expect_every_mutation_found(Message& message) {
  const boost::json::value definition = kafka_definition(message.name);
  std::vector<Layout> kafka;
  for (int version = message.versions.min; version <= message.versions.max; ++version) {
    kafka.push_back(kafka_layout(definition, version));
  }
  const auto differs = [&] {
    for (int version = message.versions.min; version <= message.versions.max; ++version) {
      if (our_layout(message, version) !=
          kafka[static_cast<std::size_t>(version - message.versions.min)])
        return true;
    }
    return false;
  };
  ASSERT_FALSE(differs());
  for (const Struct* found : structs_of(message)) {
    Struct& structure = const_cast<Struct&>(*found);
    for (std::size_t i = 0; i < structure.fields.size(); ++i) {
      const std::string name = structure.fields[i].name;
      const int last = std::min(structure.fields[i].versions.max, message.versions.max);
      for (const Mutation& mutation : mutations()) {
        if (mutation.what == kNeverCompact && last < message.flexible_from) continue;
        const Undo undo = mutation.plant(structure, i);
        if (!undo) continue;
        EXPECT_TRUE(differs()) << message.name << " " << name << ": " << mutation.what;
        undo();
      }
    }
  }
  ASSERT_FALSE(differs());
}

TEST(KafkaFacts, APlantedDifferenceInAnyFieldIsFound) {
  for (const Api& api : protocol().apis) {
    Api mutant = reload(api);
    expect_every_mutation_found(mutant.request);
    expect_every_mutation_found(mutant.response);
  }
}

TEST(KafkaFacts, AWrongFlexibleVersionIsFound) {
  for (const Api& api : protocol().apis) {
    Message mutant = reload(api).request;
    if (!has_flexible_version(mutant)) continue;
    const boost::json::value definition = kafka_definition(mutant.name);
    mutant.flexible_from += 1;
    EXPECT_NE(difference(mutant, definition), "") << api.name;
  }
}

TEST(KafkaFacts, AVersionKafkaDoesNotHaveIsFound) {
  Message mutant = reload(protocol().apis.front()).request;
  ++mutant.versions.max;
  EXPECT_NE(difference(mutant, kafka_definition(mutant.name)).find("no such version"),
            std::string::npos);
}

}  // namespace
}  // namespace kanal::wiregen
