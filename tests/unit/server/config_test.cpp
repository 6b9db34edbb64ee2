#include "config.hpp"

#include "config_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace kanal::server {
namespace {

using ::testing::HasSubstr;
using Loaded = std::expected<Config, ConfigProblems>;

Loaded from_file(const std::string& text) {
  CommandLine command;
  command.config_file = "kanal.yaml";
  return load_config(command, {}, text);
}

Loaded from_environment(const Environment& environment) {
  return load_config({}, environment, std::nullopt);
}

Loaded from_arguments(std::vector<const char*> arguments,
                      const std::optional<std::string>& file = {}) {
  const auto command = parse_command_line(arguments);
  if (!command) return std::unexpected(command.error());
  return load_config(*command, {}, file);
}

/// All problems, a line each.
std::string problems_of(const Loaded& loaded) {
  if (loaded) return "";
  std::string out;
  for (const ConfigProblem& problem : loaded.error()) out += to_string(problem) + "\n";
  return out;
}

std::string contents(const std::string& path) {
  std::ifstream file(std::string(KANAL_GOLDEN_DIR) + "/../../" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Config, NothingAtAllIsAValidConfiguration) {
  const Loaded loaded = load_config({}, {}, std::nullopt);
  ASSERT_TRUE(loaded) << problems_of(loaded);
  EXPECT_EQ(loaded->data_dir, "./kanal-data");
  EXPECT_EQ(loaded->node_id, NodeId(1));
  ASSERT_EQ(loaded->listeners.size(), 1u);
  EXPECT_EQ(loaded->listeners[0].name, "PLAINTEXT");
  EXPECT_EQ(to_string(loaded->listeners[0].bind), "127.0.0.1:9092");
  EXPECT_EQ(to_string(loaded->listeners[0].advertised), "127.0.0.1:9092");
  EXPECT_EQ(loaded->kafka.node.max_partitions_per_topic, 10'000);
  EXPECT_EQ(loaded->kafka.num_partitions, 1);
}

TEST(Config, DefaultsOfTheTableAreTheDefaultsOfTheFields) {
  const Loaded loaded = load_config({}, {}, std::nullopt);
  ASSERT_TRUE(loaded);
  for (const Option& option : options()) {
    if (option.kind == OptionKind::kListeners || option.kind == OptionKind::kAddresses) continue;
    EXPECT_EQ(option_text(option, Config{}), option.default_text) << option.key;
    EXPECT_EQ(option_text(option, *loaded), option.default_text) << option.key;
    EXPECT_EQ(refuse_option(option, option.default_text), std::nullopt) << option.key;
  }
}

TEST(Config, FileSetsEveryOption) {
  const Loaded loaded = from_file(R"(
node: {id: 7, rack: "a b"}
data_dir: /var/lib/kanal
listeners:
  - {name: INSIDE, bind: "0.0.0.0:29092", advertised: "kanal:29092"}
  - {name: OUTSIDE, bind: "[::1]:9092"}
threads: {io: 3, helpers: 4}
limits:
  request_memory: 64MiB
  requests_per_connection: 5
  answer_bytes_per_connection: 100000
  max_partitions_per_topic: 6
  open_log_files: 70
logging: {level: debug}
kafka:
  num.partitions: 3
  log.cleanup.policy: [compact, delete]
  auto.create.topics.enable: false
)");
  ASSERT_TRUE(loaded) << problems_of(loaded);
  EXPECT_EQ(loaded->node_id, NodeId(7));
  EXPECT_EQ(loaded->kafka.node.id, NodeId(7));
  EXPECT_EQ(loaded->kafka.node.rack, "a b");
  EXPECT_EQ(loaded->data_dir, "/var/lib/kanal");
  ASSERT_EQ(loaded->listeners.size(), 2u);
  EXPECT_EQ(to_string(loaded->listeners[0].advertised), "kanal:29092");
  EXPECT_EQ(loaded->listeners[1].bind.host, "::1");
  EXPECT_EQ(to_string(loaded->listeners[1].advertised), "[::1]:9092");
  EXPECT_EQ(loaded->io_threads, 3u);
  EXPECT_EQ(loaded->helper_threads, 4u);
  EXPECT_EQ(loaded->request_memory, 64u << 20);
  EXPECT_EQ(loaded->requests_per_connection, 5u);
  EXPECT_EQ(loaded->answer_bytes_per_connection, 100'000u);
  EXPECT_EQ(loaded->kafka.node.max_partitions_per_topic, 6);
  EXPECT_EQ(loaded->open_log_files, 70u);
  EXPECT_EQ(loaded->log_level, "debug");
  EXPECT_EQ(loaded->kafka.num_partitions, 3);
  EXPECT_FALSE(loaded->kafka.auto_create_topics);
  EXPECT_EQ(effective_value(loaded->kafka, "log.cleanup.policy"), "compact,delete");
}

TEST(Config, AllMistakesOfAFileAreReportedWithLineAndKey) {
  const Loaded loaded = from_file(
      "node:\n"
      "  id: -4\n"
      "thread:\n"
      "  io: 2\n"
      "kafka:\n"
      "  num.partitons: 3\n"
      "  num.partitions: many\n"
      "  log.dirs: /data\n"
      "  zookeeper.connect: localhost\n"
      "  process.roles: broker\n");
  EXPECT_EQ(
      problems_of(loaded),
      "kanal.yaml:2: node.id: '-4' is out of range; it takes 0 to 2147483647\n"
      "kanal.yaml:4: thread.io: unknown key; did you mean threads.io?\n"
      "kanal.yaml:6: kafka.num.partitons: unknown key; did you mean num.partitions?\n"
      "kanal.yaml:7: kafka.num.partitions: Invalid value many for configuration num.partitions: "
      "Not a number of type INT\n"
      "kanal.yaml:8: kafka.log.dirs: is not set under kafka: here; use data_dir\n"
      "kanal.yaml:9: kafka.zookeeper.connect: unknown key\n"
      "kanal.yaml:10: kafka.process.roles: has no meaning here: This node is broker and "
      "controller in one\n");
}

TEST(Config, KafkasOwnKeysNameOurs) {
  EXPECT_THAT(problems_of(from_file("kafka: {listeners: 'PLAINTEXT://:9092'}")),
              HasSubstr("use listeners"));
  EXPECT_THAT(problems_of(from_file("kafka: {advertised.listeners: 'x:1'}")),
              HasSubstr("use listeners[].advertised"));
  EXPECT_THAT(problems_of(from_file("kafka: {node.id: 3}")), HasSubstr("use node.id"));
  EXPECT_THAT(problems_of(from_file("kafka: {broker.id: 3}")), HasSubstr("use node.id"));
  EXPECT_THAT(problems_of(from_file("kafka: {ssl.keystore.location: /k}")),
              HasSubstr("TLS is not served yet"));
}

TEST(Config, NamesInTheWrongPlaceAreExplained) {
  EXPECT_THAT(problems_of(from_file("num.partitions: 3")),
              HasSubstr("did you mean num.partitions under kafka:?"));
  EXPECT_THAT(problems_of(from_file("kafka: {retention.ms: 3}")),
              HasSubstr("did you mean log.retention.ms?"));
  EXPECT_THAT(problems_of(from_file("dataDir: x")), HasSubstr("did you mean data_dir?"));
  EXPECT_THAT(problems_of(from_file("limits: {requestMemory: 1}")),
              HasSubstr("did you mean limits.request_memory?"));
  EXPECT_THAT(problems_of(from_file("listeners: [{name: A, bnd: 'h:1'}]")),
              HasSubstr("listeners[0].bnd: unknown key; did you mean bind?"));
}

TEST(Config, EverySettingIsInForceOnlyOnce) {
  EXPECT_THAT(problems_of(from_file("data_dir: a\nnode: {id: 1}\ndata_dir: b\n")),
              HasSubstr("kanal.yaml:3: data_dir: The key is there twice, first in line 1"));
  EXPECT_THAT(problems_of(from_file("node: {id: 1}\nnode.id: 2\n")),
              HasSubstr("is there twice, first in line 1"));
  EXPECT_THAT(problems_of(from_file(
                  "limits: {max_partitions_per_topic: 1}\nkafka: {max.partitions.per.topic: 2}\n")),
              HasSubstr("kanal.yaml:2"));
}

TEST(Config, ConflictsOfKafkaSettingsCarryTheirLine) {
  EXPECT_EQ(
      problems_of(from_file("kafka:\n  num.partitions: 1\n  queued.max.request.bytes: 1000\n")),
      "kanal.yaml:3: kafka.queued.max.request.bytes: It must not be less than "
      "socket.request.max.bytes\n");
}

TEST(Config, EnvironmentNamesEveryOption) {
  const Loaded loaded = from_environment({{"KANAL_DATA_DIR", "/data"},
                                          {"KANAL_NODE_ID", "9"},
                                          {"KANAL_THREADS_IO", "2"},
                                          {"KANAL_LIMITS_REQUEST_MEMORY", "1GiB"},
                                          {"KANAL_MAX_PARTITIONS_PER_TOPIC", "12"},
                                          {"KANAL_KAFKA_NUM_PARTITIONS", "5"},
                                          {"KANAL_NODE_RACK", ""},
                                          {"PATH", "/bin"}});
  ASSERT_TRUE(loaded) << problems_of(loaded);
  EXPECT_EQ(loaded->data_dir, "/data");
  EXPECT_EQ(loaded->node_id, NodeId(9));
  EXPECT_EQ(loaded->io_threads, 2u);
  EXPECT_EQ(loaded->request_memory, 1u << 30);
  EXPECT_EQ(loaded->kafka.node.max_partitions_per_topic, 12);
  EXPECT_EQ(loaded->kafka.num_partitions, 5);
  EXPECT_FALSE(loaded->kafka.node.rack);
}

TEST(Config, ContainerIsSetUpByEnvironmentAlone) {
  const Loaded one = from_environment(
      {{"KANAL_LISTENERS", "0.0.0.0:9092"}, {"KANAL_ADVERTISED_LISTENERS", "localhost:19092"}});
  ASSERT_TRUE(one) << problems_of(one);
  EXPECT_EQ(to_string(one->listeners.at(0).bind), "0.0.0.0:9092");
  EXPECT_EQ(to_string(one->listeners.at(0).advertised), "localhost:19092");
  const Loaded two =
      from_environment({{"KANAL_LISTENERS", "IN://0.0.0.0:29092, OUT://[::]:9092"},
                        {"KANAL_ADVERTISED_LISTENERS", "OUT://no.such.name,IN://kanal:29092"}});
  ASSERT_TRUE(two) << problems_of(two);
  EXPECT_EQ(to_string(two->listeners.at(0).advertised), "kanal:29092");
  EXPECT_EQ(to_string(two->listeners.at(1).advertised), "no.such.name:9092");
}

TEST(Config, VariablesOfOthersAreLeftAloneAndTyposAreNot) {
  const Loaded kubernetes = from_environment({{"KANAL_PORT", "tcp://10.0.0.1:9092"},
                                              {"KANAL_PORT_9092_TCP_ADDR", "10.0.0.1"},
                                              {"KANAL_SERVICE_HOST", "10.0.0.1"},
                                              {"KANAL_BROKER_SERVICE_PORT", "9092"}});
  EXPECT_TRUE(kubernetes) << problems_of(kubernetes);
  EXPECT_EQ(problems_of(from_environment({{"KANAL_DATADIR", "x"}})),
            "environment KANAL_DATADIR: datadir: unknown key; did you mean data_dir?\n");
  EXPECT_THAT(problems_of(from_environment({{"KANAL_KAFKA_NUM_PARTITION", "2"}})),
              HasSubstr("did you mean num.partitions?"));
}

TEST(Config, LaterLayersWin) {
  const std::string file =
      "data_dir: file\nnode: {id: 2}\nkafka: {num.partitions: 2, message.max.bytes: 7}\n";
  const auto command =
      parse_command_line(std::vector<const char*>{"--set", "num.partitions=4", "--data-dir=line"});
  ASSERT_TRUE(command);
  const Loaded loaded =
      load_config(*command, {{"KANAL_KAFKA_NUM_PARTITIONS", "3"}, {"KANAL_NODE_ID", "3"}}, file);
  ASSERT_TRUE(loaded) << problems_of(loaded);
  EXPECT_EQ(loaded->data_dir, "line");
  EXPECT_EQ(loaded->node_id, NodeId(3));
  EXPECT_EQ(loaded->kafka.num_partitions, 4);
  EXPECT_EQ(effective_value(loaded->kafka, "message.max.bytes"), "7");
}

TEST(Config, SetTakesKafkasNamesWithAndWithoutTheirPart) {
  EXPECT_EQ(from_arguments({"--set", "kafka.num.partitions=3"})->kafka.num_partitions, 3);
  EXPECT_EQ(from_arguments({"--set", "num.partitions=3"})->kafka.num_partitions, 3);
  EXPECT_EQ(
      from_arguments({"--set", "max.partitions.per.topic=3"})->kafka.node.max_partitions_per_topic,
      3);
  EXPECT_EQ(from_arguments({"--set", "node.id=3"})->node_id, NodeId(3));
  EXPECT_THAT(problems_of(from_arguments({"--set", "log.dirs=/x"})), HasSubstr("use data_dir"));
  EXPECT_THAT(problems_of(from_arguments({"--set", "nonsense=1"})),
              HasSubstr("command line: nonsense: unknown key"));
}

TEST(Config, ListenReplacesTheListenersOfTheFile) {
  const std::string file = "listeners: [{bind: '0.0.0.0:1', advertised: 'x:1'}]";
  const Loaded one = from_arguments({"--listen", "127.0.0.1:0"}, file);
  ASSERT_TRUE(one) << problems_of(one);
  ASSERT_EQ(one->listeners.size(), 1u);
  EXPECT_EQ(to_string(one->listeners[0].advertised), "127.0.0.1:0");
  const Loaded two = from_arguments({"--listen", "[::1]:9092", "--listen", "localhost:9093"});
  ASSERT_TRUE(two) << problems_of(two);
  EXPECT_EQ(two->listeners.at(0).name, "PLAINTEXT");
  EXPECT_EQ(two->listeners.at(1).name, "PLAINTEXT_2");
  EXPECT_EQ(two->listeners.at(1).bind.host, "localhost");
}

TEST(Listeners, WildcardIsNeverHandedOut) {
  for (const char* bind : {"0.0.0.0:9092", "[::]:9092", "0:9092", "[0:0:0:0:0:0:0:0]:1",
                           "[::ffff:0.0.0.0]:1", "0.0.0.0:0"}) {
    const std::string problem = problems_of(from_arguments({"--listen", bind}));
    EXPECT_THAT(problem, HasSubstr("cannot be handed out")) << bind;
    EXPECT_THAT(problem, HasSubstr("KANAL_ADVERTISED_LISTENERS=PLAINTEXT://HOST:PORT")) << bind;
  }
  EXPECT_THAT(
      problems_of(from_file("\nlisteners:\n  - {bind: '1.2.3.4:5', advertised: '0.0.0.0:5'}\n")),
      HasSubstr("kanal.yaml:3: listeners[0].advertised: 0.0.0.0:5 means every address"));
}

TEST(Listeners, EachHasExactlyOneAdvertisedAddress) {
  EXPECT_THAT(problems_of(from_environment(
                  {{"KANAL_LISTENERS", "A://h:1"}, {"KANAL_ADVERTISED_LISTENERS", "B://h:1"}})),
              HasSubstr("There is no listener named B"));
  EXPECT_THAT(problems_of(from_environment({{"KANAL_LISTENERS", "A://h:1"},
                                            {"KANAL_ADVERTISED_LISTENERS", "A://h:1,A://h:2"}})),
              HasSubstr("A has more than one advertised address"));
  EXPECT_THAT(problems_of(from_file("listeners: [{bind: 'h:1'}, {bind: 'h:2'}]")),
              HasSubstr("two listeners named PLAINTEXT"));
  EXPECT_THAT(problems_of(from_file("listeners: [{name: a b, bind: 'h:1'}]")),
              HasSubstr("no listener name"));
  EXPECT_THAT(problems_of(from_file("listeners: [{bind: 'h:1', advertised: 'h:0'}]")),
              HasSubstr("Port 0"));
  EXPECT_THAT(problems_of(from_file("listeners: []")), HasSubstr("At least one listener"));
  EXPECT_THAT(problems_of(from_file("listeners: [x]")), HasSubstr("A listener is a map"));
  EXPECT_THAT(problems_of(from_file("listeners: [{name: A}]")),
              HasSubstr("listeners[0].bind: '' is not host:port"));
}

TEST(Listeners, HostPortTexts) {
  EXPECT_EQ(parse_host_port("localhost:9092"), (HostPort{"localhost", 9092}));
  EXPECT_EQ(parse_host_port("[::1]:0"), (HostPort{"::1", 0}));
  EXPECT_EQ(parse_host_port("[fe80::1%eth0]:1"), (HostPort{"fe80::1%eth0", 1}));
  for (const char* bad : {"", ":", "localhost", "localhost:", ":9092", "h:65536", "h:-1", "h:9x",
                          "::1:9092", "[::1]", "[x]:1", "a b:1", "h:1/", "h/:1", "*:1"}) {
    EXPECT_EQ(parse_host_port(bad), std::nullopt) << bad;
  }
}

TEST(CommandLineOptions, AreParsedAndMistakesNamed) {
  const auto line = parse_command_line(
      std::vector<const char*>{"--config", "a.yaml", "--ready-file=r", "--print-config",
                               "--check-config", "--version", "-h", "--set", "a=b=c"});
  ASSERT_TRUE(line);
  EXPECT_EQ(line->config_file, "a.yaml");
  EXPECT_EQ(line->ready_file, "r");
  EXPECT_TRUE(line->print_config && line->check_config && line->version && line->help);
  EXPECT_EQ(line->settings.at(0).second, "b=c");
  const auto problem = [](std::vector<const char*> arguments) {
    return problems_of(from_arguments(std::move(arguments)));
  };
  EXPECT_EQ(problem({"--data-dri", "x"}),
            "command line: --data-dri: unknown option; did you mean --data-dir?\n"
            "command line: x: not an option; see --help\n");
  EXPECT_THAT(problem({"--config"}), HasSubstr("it takes FILE"));
  EXPECT_THAT(problem({"--set", "novalue"}), HasSubstr("it takes KEY=VALUE"));
  EXPECT_THAT(problem({"--version=1"}), HasSubstr("it takes no value"));
  EXPECT_THAT(help_text(), HasSubstr("--check-config"));
}

TEST(HostileFile, IsRefusedAndNeverCrashes) {
  std::string deep(5'000, '[');
  std::string deep_maps, laughs = "a0: &a0 [x, x, x, x, x, x, x, x]\n";
  for (int i = 0; i < 50; ++i) deep_maps += std::string(static_cast<std::size_t>(i), ' ') + "k:\n";
  deep_maps += std::string(50, ' ') + "v: 1\n";
  for (int i = 1; i < 12; ++i) {
    const std::string a = std::to_string(i), b = std::to_string(i - 1);
    laughs += "a" + a + ": &a" + a + " {p: *a" + b + ", q: *a" + b + ", r: *a" + b + ", s: *a" + b +
              "}\n";
  }
  for (const std::string& text : {deep,
                                  deep_maps,
                                  laughs,
                                  std::string("\0\xff\xfe", 3),
                                  std::string("a: &a [*a]"),
                                  std::string("a: &a {b: *a}"),
                                  std::string("*x"),
                                  std::string("- a"),
                                  std::string("just text"),
                                  std::string("a: b: c"),
                                  std::string("\t- x"),
                                  std::string("? [1, 2]\n: 3"),
                                  std::string("a: 1\n---\nb: 2\n"),
                                  std::string("kafka: {num.partitions: }"),
                                  std::string("kafka: {num.partitions: {a: b}}"),
                                  std::string("data_dir: \"a\\0b\""),
                                  std::string("data_dir: ''"),
                                  std::string("!!python/object:x {a: 1}"),
                                  std::string("node: &n\n  id: 1\n  <<: *n\n"),
                                  std::string("%YAML 9.9\n---\na: 1"),
                                  std::string(100'000, '{'),
                                  std::string("\"unfinished"),
                                  std::string("listeners: {a: b}"),
                                  std::string("listeners: [[[]]]"),
                                  std::string("listeners: [{bind: [1]}]")}) {
    const Loaded loaded = from_file(text);
    EXPECT_FALSE(loaded) << text.substr(0, 60);
    for (const ConfigProblem& problem : loaded ? ConfigProblems{} : loaded.error()) {
      const std::string line = to_string(problem);
      EXPECT_EQ(line.find('\n'), std::string::npos);
      EXPECT_LT(line.size(), 2'000u);
    }
  }
}

TEST(HostileFile, EmptyFilesAndAliasesAreFine) {
  for (const char* text : {"", "# nothing\n", "---\n", "kafka:\n  # all commented out\nlimits:\n",
                           "node: {id: &n 4}\nthreads: {io: *n}\n"}) {
    EXPECT_TRUE(from_file(text)) << text << problems_of(from_file(text));
  }
}

TEST(HostileFile, MutatedFilesNeverCrash) {
  const std::string good = default_config_file() + "  num.partitions: 3\n";
  std::uint32_t state = 12345;
  const auto next = [&](std::size_t below) {
    state = state * 1664525u + 1013904223u;
    return static_cast<std::size_t>(state >> 8) % below;
  };
  const std::string_view pieces[] = {"{",  "}",  "[",  "]",    ":",     "- ",  "&a ",
                                     "*a", "\"", "'",  "\n",   "  ",    "\t",  "|",
                                     ">",  "#",  "? ", "!!x ", "---\n", "\xff"};
  for (int round = 0; round < 150; ++round) {
    std::string text = good.substr(0, 2'500);
    for (std::size_t i = 0; i <= next(4); ++i) {
      text.replace(next(text.size()), next(6), pieces[next(std::size(pieces))]);
    }
    (void)from_file(text);
  }
}

TEST(PrintedConfig, IsTakenBackAndPrintsTheSame) {
  const Loaded loaded = from_file(
      "node: {id: 7, rack: 'a \"b\" \\\\c'}\ndata_dir: 'null'\n"
      "listeners: [{name: A, bind: '[::]:1', advertised: 'x:2'}, {name: B, bind: 'h:0'}]\n"
      "kafka: {num.partitions: 3, log.cleanup.policy: '', log.retention.ms: -1}\n");
  ASSERT_TRUE(loaded) << problems_of(loaded);
  const std::string printed = print_config(*loaded);
  const Loaded again = from_file(printed);
  ASSERT_TRUE(again) << problems_of(again) << printed;
  EXPECT_EQ(print_config(*again), printed);
  EXPECT_EQ(again->kafka.node.rack, loaded->kafka.node.rack);
  EXPECT_EQ(again->data_dir, "null");
  EXPECT_EQ(again->listeners.size(), 2u);
  EXPECT_EQ(again->kafka.num_partitions, 3);
}

TEST(ConfigDocument, CommittedFilesAreUpToDate) {
  const std::pair<const char*, std::string> files[] = {
      {"docs/configuration.md", configuration_document()},
      {"config/kanal.yaml", default_config_file()}};
  for (const auto& [path, text] : files) {
    if (std::getenv("UPDATE_DOCS") != nullptr) {
      std::ofstream(std::string(KANAL_GOLDEN_DIR) + "/../../" + path) << text;
    }
    EXPECT_TRUE(contents(path) == text)
        << path << " is out of date: run this test with UPDATE_DOCS=1";
  }
}

TEST(ConfigDocument, DefaultFileNamesEveryOptionWithItsDefault) {
  const std::string file = contents("config/kanal.yaml");
  const Loaded loaded = from_file(file);
  ASSERT_TRUE(loaded) << problems_of(loaded);
  EXPECT_EQ(print_config(*loaded), print_config(*load_config({}, {}, std::nullopt)));
  for (const Option& option : options()) {
    const auto name = option.key.substr(option.key.find('.') + 1);
    EXPECT_THAT(file, HasSubstr(std::string(name) + ":")) << option.key;
  }
  for (const auto& row : coordinator::broker_config_rows()) {
    const bool accepted = row.treatment != coordinator::Treatment::kRefused &&
                          row.treatment != coordinator::Treatment::kOwnKey;
    EXPECT_EQ(file.find("# " + std::string(row.name) + ":") != std::string::npos, accepted)
        << row.name;
  }
}

TEST(ConfigDocument, CommentedKafkaSettingsOfTheDefaultFileAreValid) {
  std::string file = default_config_file();
  for (const auto& row : coordinator::broker_config_rows()) {
    const std::string comment = "  # " + std::string(row.name) + ": ";
    if (const auto at = file.find(comment); at != std::string::npos) file.replace(at, 4, "  ");
  }
  const Loaded loaded = from_file(file);
  ASSERT_TRUE(loaded) << problems_of(loaded);
  EXPECT_EQ(print_config(*loaded), print_config(*load_config({}, {}, std::nullopt)));
}

TEST(Machine, ZeroIsResolvedToWhatThereIs) {
  Config config;
  EXPECT_GE(resolved_io_threads(config), 1u);
  EXPECT_LE(resolved_io_threads(config), 16u);
  EXPECT_GE(resolved_request_memory(config), 64u << 20);
  config.io_threads = 5;
  config.request_memory = 77;
  EXPECT_EQ(resolved_io_threads(config), 5u);
  EXPECT_EQ(resolved_request_memory(config), 77u);
  config.kafka.queued_max_request_bytes = 99;
  EXPECT_EQ(resolved_request_memory(config), 99u);
}

}  // namespace
}  // namespace kanal::server
