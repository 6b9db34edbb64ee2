// docs/configuration.md, from the tables.
#include "config_options.hpp"
#include "kanal/coordinator/topic_config.hpp"

namespace kanal::server {
namespace {

using coordinator::ConfigRow;
using coordinator::Treatment;

constexpr std::string_view kIntroduction = R"(# Configuration

Written by the tests from the option tables; do not edit it. (`UPDATE_DOCS=1 unit_server
--gtest_filter='*Document*'` writes it and `config/kanal.yaml` anew.)

## Where values come from

Later ones win: defaults, the file (`--config FILE`), the environment, the command line.

- **File**: YAML. The tables name options by their path: `threads.io` is `io` under `threads`.
  Kafka's broker settings stand under `kafka:` by their own names. `config/kanal.yaml` has every
  option with its default.
- **Environment**: `KANAL_` and the path in upper case, `_` for `.`: `KANAL_DATA_DIR`,
  `KANAL_THREADS_IO`, `KANAL_KAFKA_NUM_PARTITIONS`. An empty variable counts as not set. Variables
  that Kubernetes sets for a service (`KANAL_PORT`, `KANAL_SERVICE_HOST`, …) are left alone.
- **Command line**: `--data-dir DIR`, `--listen HOST:PORT`, and `--set KEY=VALUE` for everything,
  Kafka's settings with or without `kafka.` in front.

What is unknown, of the wrong type or out of range stops the start: each mistake is reported with
file, line and key, all of them at once, and the exit code is 2. `--check-config` only checks,
`--print-config` prints what is in force as a file that can be fed back.

## Listeners

A listener has a name, an address it binds to, and the one address it hands out to clients, which
is never looked up here:

```yaml
listeners:
  - {name: INSIDE, bind: "0.0.0.0:29092", advertised: "kanal:29092"}
  - {name: OUTSIDE, bind: "0.0.0.0:9092", advertised: "localhost:9092"}
```

Clients are told the address of the listener they came in on. An address that means every address
(`0.0.0.0`, `[::]`) is never handed out: `advertised` must be set then. `advertised` without a port
takes the bind port; without `advertised` the bind address is handed out. The same as one text,
which is what a container needs:

```
KANAL_LISTENERS=INSIDE://0.0.0.0:29092,OUTSIDE://0.0.0.0:9092
KANAL_ADVERTISED_LISTENERS=INSIDE://kanal:29092,OUTSIDE://localhost:9092
```

A single listener needs no name: `KANAL_LISTENERS=0.0.0.0:9092` and
`KANAL_ADVERTISED_LISTENERS=localhost:9092`.

## Options

| option | default | takes | what it does |
|---|---|---|---|
)";

std::string code(std::string_view text) {
  return text.empty() ? "" : "`" + std::string(text) + "`";
}

std::string value_text(const ConfigRow& row) {
  if (!row.default_value) return "not set";
  return row.default_value->empty() ? "empty" : code(*row.default_value);
}

std::string type_text(const ConfigRow& row) {
  std::string out(coordinator::name(row.type));
  if (!row.valid.empty()) out += " " + code(row.valid);
  return out;
}

std::string sentence(std::string_view text) {
  return std::string(text) + (text.ends_with('.') ? "" : ".");
}

void add_row(const ConfigRow& row, std::string& out) {
  out += "| " + code(row.name) + " | " + value_text(row) + " | " + type_text(row) + " | " +
         std::string(row.documentation);
  if (row.treatment == Treatment::kStored) out += " " + sentence(row.note);
  out += " |\n";
}

void add_table(std::span<const ConfigRow> rows, Treatment treatment, std::string_view heading,
               std::string& out) {
  out +=
      "\n" + std::string(heading) + "\n\n| name | default | takes | meaning |\n|---|---|---|---|\n";
  for (const ConfigRow& row : rows) {
    if (row.treatment == treatment) add_row(row, out);
  }
}

void add_refused(std::string& out) {
  out += "\n### Refused in the file\n\n| name | why, or what to use |\n|---|---|\n";
  for (const ConfigRow& row : coordinator::broker_config_rows()) {
    if (row.treatment == Treatment::kOwnKey) {
      out += "| " + code(row.name) + " | use " + code(row.note) + " |\n";
    } else if (row.treatment == Treatment::kRefused) {
      out += "| " + code(row.name) + " | " + sentence(row.note) + " |\n";
    }
  }
}

}  // namespace

std::string configuration_document() {
  std::string out(kIntroduction);
  for (const Option& option : options()) {
    out += "| " + code(option.key) + " | " +
           (option.default_text.empty() ? "empty" : code(option.default_text)) + " | " +
           range_text(option) + " | " + std::string(option.doc);
    if (!option.alias.empty()) out += " Also " + code(option.alias) + " under `kafka:`.";
    out += " |\n";
  }
  out +=
      "\n## Kafka's broker settings\n\nUnder `kafka:`, with the names, values and defaults of "
      "Apache Kafka 4.4. Clients read all of them with\nDescribeConfigs.\n";
  const auto brokers = coordinator::broker_config_rows();
  add_table(brokers, Treatment::kActs, "### In force", out);
  add_table(brokers, Treatment::kFulfilled, "### Fulfilled by one node whatever the value", out);
  add_table(brokers, Treatment::kStored, "### Kept and shown, without effect yet", out);
  add_refused(out);
  out +=
      "\n## Topic settings\n\nSet on a topic by CreateTopics; what a topic does not set comes from "
      "the broker's settings.\n";
  const auto topics = coordinator::topic_config_rows();
  add_table(topics, Treatment::kActs, "### In force", out);
  add_table(topics, Treatment::kFulfilled, "### Fulfilled by one node whatever the value", out);
  add_table(topics, Treatment::kStored, "### Kept and shown, without effect yet", out);
  return out;
}

}  // namespace kanal::server
