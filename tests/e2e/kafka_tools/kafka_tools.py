"""Apache Kafka 4.4's command-line tools, each checked for what it prints.

Where an answer is the same on every broker, the tool's output (times, ids, ports made alike) is
compared with what a real Kafka 4.4 printed: expected/NAME.txt, written by `run.sh --kafka HOME
--record`. The rest is checked for its meaning (dump-log, perf-test, API versions, broker configs). The
APIs that kanald lists have to be those of SERVED, each with Kafka's range of versions.
"""
import argparse
import pathlib
import re
import select
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from broker import REPOSITORY, add_broker_arguments, broker_from, require  # noqa: E402
import cluster_steps  # noqa: E402
import compaction_steps  # noqa: E402
import configs_steps  # noqa: E402
from checks import Checks  # noqa: E402
from dump_log import dump_log_problems  # noqa: E402
from expectations import Expectations  # noqa: E402
import group_steps  # noqa: E402
import groups_common  # noqa: E402
import transaction_steps  # noqa: E402

BUILT = REPOSITORY / "build/kafka-tools"
TOOL_DEADLINE_S = 120
PERF_RECORDS = 50000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOOLS = {
    "topics": "TopicCommand",
    "configs": "ConfigCommand",
    "get-offsets": "GetOffsetShell",
    "dump-log": "DumpLogSegments",
    "broker-api-versions": "BrokerApiVersionsCommand",
    "cluster": "ClusterTool",
    "producer-perf-test": "ProducerPerformance",
    "console-producer": "ConsoleProducer",
    "console-consumer": "consumer.ConsoleConsumer",
    **cluster_steps.TOOLS,
    **groups_common.TOOLS,
}
# Every API that is served, by its key: who adds a handler adds it here. Each has the range of Kafka's, in
# expected/broker-api-versions; none is missing, and none is listed that is not here.
SERVED = {*range(0, 4), *range(8, 17), *range(18, 29), *range(32, 36), 37, *range(42, 48),
          55, 57, 60, 61, 64, 65, 66, 74, 75}


class Ran:
    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    def __str__(self):
        return f"exit code {self.code}\n{self.out}{self.err}"


class ToolHost:
    """One JVM that runs tool after tool (ToolHost.java)."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.log = open(scratch / "tools.log", "wb")
        command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                   f"-Djava.io.tmpdir={scratch}",
                   f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
                   "-cp", f"{BUILT / 'classes'}:{BUILT / 'libs'}/*", "ToolHost"]
        self.jvm = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                    stderr=self.log)

    def run(self, tool, *arguments, stdin=b""):
        files = [self.scratch / name for name in ("stdin", "stdout", "stderr")]
        files[0].write_bytes(stdin)
        line = [*map(str, files), "org.apache.kafka.tools." + TOOLS[tool], *map(str, arguments)]
        self.jvm.stdin.write("\t".join(line).encode() + b"\n")
        self.jvm.stdin.flush()
        if not select.select([self.jvm.stdout], [], [], TOOL_DEADLINE_S)[0]:
            stacks = subprocess.run(["jstack", str(self.jvm.pid)], capture_output=True, check=False)
            self.close()
            raise TimeoutError(f"{tool} {arguments}: no end after {TOOL_DEADLINE_S} s\n"
                               + stacks.stdout.decode())
        code = int(self.jvm.stdout.readline())
        out, err = (file.read_text(errors="backslashreplace") for file in files[1:])
        return Ran(code, out, err)

    def close(self):
        self.jvm.kill()
        self.jvm.wait()
        self.log.close()


class KafkaTools:
    def __init__(self, broker, host, checks, expectations):
        self.broker = broker
        self.host = host
        self.checks = checks
        self.expectations = expectations
        self.server = ("--bootstrap-server", broker.address)

    def run(self):
        self.topics()
        self.api_versions()
        self.configs()
        configs_steps.run(self)
        cluster_steps.ClusterSteps(self).run()
        self.console()
        self.offsets()
        self.dump_log()
        compaction_steps.run(self)
        self.perf_test()
        self.cluster()
        self.delete_topics()
        transaction_steps.run(self)
        group_steps.run(self)

    def tool(self, name, *arguments, stdin=b""):
        return self.host.run(name, *self.server, *arguments, stdin=stdin)

    def same(self, name, ran):
        """The output is that of a real Kafka."""
        problem = self.expectations.compare(name, ran)
        self.checks.check(not problem, f"{name}: as Kafka 4.4 prints it", problem)

    def create(self, topic, partitions):
        self.tool("topics", "--create", "--topic", topic, "--partitions", partitions)
        self.settle()

    def settle(self):
        """Kafka answers before its broker part knows of a change; kanald gets no such time."""
        if self.broker.kind == "kafka":
            # It may send NOT_LEADER_OR_FOLLOWER right after a creation; pipelined batches behind
            # the refused one are stored, and an idempotent producer is stuck for good.
            time.sleep(0.5)

    def quiet(self, ran):
        """Without a warning, but for what Kafka does with topics that make themselves."""
        return not ran.err or self.broker.kind == "kafka"

    def works(self, name, ran, good=True):
        self.checks.check(ran.code == 0 and good, name, ran)

    def topics(self):
        run = self.tool
        self.same("topics-create",
                  run("topics", "--create", "--topic", "tools.a", "--partitions", 3,
                      "--replication-factor", 1, "--config", "retention.ms=3600000",
                      "--config", "cleanup.policy=compact"))
        self.same("topics-create-defaults", run("topics", "--create", "--topic", "tools.defaults"))
        self.same("topics-create-again", run("topics", "--create", "--topic", "tools.a"))
        self.same("topics-create-if-not-exists",
                  run("topics", "--create", "--if-not-exists", "--topic", "tools.a"))
        self.same("topics-create-bad-name", run("topics", "--create", "--topic", "tools a"))
        self.same("topics-create-bad-config", run("topics", "--create", "--topic", "tools.bad",
                                                  "--config", "retention.ms=soon"))
        self.same("topics-create-replicas", run("topics", "--create", "--topic", "tools.bad",
                                                "--replication-factor", 3))
        self.settle()
        self.same("topics-describe", run("topics", "--describe", "--topic", "tools.a"))
        self.same("topics-describe-many", run("topics", "--describe", "--topic", "tools\\..*"))
        self.same("topics-describe-missing", run("topics", "--describe", "--topic", "none"))
        ran = run("topics", "--describe", "--topics-with-overrides", "--topic", "tools\\..*")
        # Where Kafka has ELR switched on, its min.insync.replicas counts as one for every topic.
        ran.out = re.sub(r".*Configs: (min.insync.replicas=1)?\n", "", ran.out)
        self.same("topics-describe-overrides", ran)
        self.same("topics-describe-under-replicated",
                  run("topics", "--describe", "--under-replicated-partitions"))
        self.same("topics-alter", run("topics", "--alter", "--topic", "tools.a", "--partitions", 6))
        self.same("topics-alter-shrink",
                  run("topics", "--alter", "--topic", "tools.a", "--partitions", 2))
        self.settle()
        self.same("topics-describe-altered", run("topics", "--describe", "--topic", "tools.a"))
        self.same("topics-list", run("topics", "--list"))
        described = run("topics", "--describe", "--topic", "tools.a").out
        topic_id = re.search(r"TopicId: (\S+)", described)
        self.same("topics-describe-by-id",
                  run("topics", "--describe", "--topic-id", topic_id[1] if topic_id else "?"))

    def api_versions(self):
        ran = self.tool("broker-api-versions")
        self.expectations.store("broker-api-versions", ran)
        want = api_ranges(self.expectations.stored("broker-api-versions"))
        have = api_ranges(ran.out)
        # Kafka serves a range as wide as the tool's client can use; 71, 72 only with a plugin.
        differ = [f"{key}: {have.get(key)} but Kafka has {want.get(key)}"
                  for key in sorted(SERVED | have.keys()) if have.get(key) != want.get(key)]
        if self.broker.kind == "kanald":
            differ += [f"{key}: not in SERVED" for key in sorted(have.keys() - SERVED)]
        self.works(f"broker-api-versions: {len(have)} APIs, ranges as Kafka's",
                   Ran(ran.code, "\n".join(differ), ran.err if differ else ""), not differ)
        self.checks.check(self.broker.address in ran.out, "broker-api-versions: names the node",
                          ran)

    def configs(self):
        run = self.tool
        self.same("configs-topic", run("configs", "--describe", "--topic", "tools.a"))
        self.same("configs-topic-all", run("configs", "--describe", "--topic", "tools.a", "--all"))
        self.same("configs-topic-none", run("configs", "--describe", "--topic", "tools.defaults"))
        self.same("configs-topic-missing", run("configs", "--describe", "--topic", "none"))
        node = self.node_id()
        dynamic = run("configs", "--describe", "--broker", node)
        self.works("configs: dynamic configs of the broker", dynamic,
                   f"Dynamic configs for broker {node} are:" in dynamic.out)
        every = run("configs", "--describe", "--broker", node, "--all")
        self.expectations.store("configs-broker-all", every)
        want = config_lines(self.expectations.stored("configs-broker-all"))
        have = config_lines(every.out)
        missing = sorted(want.keys() - have.keys())
        extra = sorted(have.keys() - want.keys())
        self.works(f"configs: all {len(want)} broker configs are listed",
                   Ran(every.code, f"missing {missing}\nextra {extra}\n", every.err),
                   not missing and not extra)
        # Values that the two start-up files set apart, and what follows from them, may differ.
        differ = [f"{name}: {have[name]}\n  Kafka: {want[name]}" for name in sorted(want)
                  if name in have and is_default(want[name]) and is_default(have[name])
                  and have[name] != want[name]]
        self.checks.check(not differ, "configs: defaults of the broker configs are Kafka's",
                          "\n".join(differ))

    def node_id(self):
        found = re.search(r"\(id: (\d+) ", self.tool("broker-api-versions").out)
        return found[1] if found else "1"

    def console(self):
        run = self.tool
        lines = [f"key-{number % 17}:word {number} \u00fc" for number in range(150)]
        self.create("tools.console", 6)
        sent = run("console-producer", "--topic", "tools.console", "--reader-property",
                   "parse.key=true", "--reader-property", "key.separator=:",
                   stdin="\n".join(lines).encode() + b"\n")
        self.works("console-producer: 150 records with keys", sent, self.quiet(sent))
        self.same("get-offsets-by-key-hash", run("get-offsets", "--topic", "tools.console"))
        for partition, end in self.ends("tools.console"):
            if end != "0":
                self.same(f"console-consumer-{partition}",
                          self.consume("tools.console", partition, end))
        self.same("console-consumer-offset", self.consume("tools.console", 0, 2, offset=3))
        headers = b"h1:v1,h2:\tkey\tvalue\nh3:v3\t\tno key\n"
        sent = run("console-producer", "--topic", "tools.headers", "--reader-property",
                   "parse.headers=true", "--reader-property", "parse.key=true", stdin=headers)
        self.works("console-producer: headers, topic made by itself", sent)
        for partition, end in self.ends("tools.headers"):
            if end != "0":
                ran = self.consume("tools.headers", partition, end)
                good = "h1:v1,h2: | key | value" in ran.out and "h3:v3 |  | no key" in ran.out
                self.works("console-consumer: headers, an empty key", ran, good)

    def ends(self, topic):
        """[(partition, end offset)] as text."""
        return re.findall(r":(\d+):(\d+)", self.tool("get-offsets", "--topic", topic).out)

    def consume(self, topic, partition, count, offset="earliest"):
        separator = "\x1e"
        ran = self.tool("console-consumer", "--topic", topic, "--partition", partition,
                        "--offset", offset, "--max-messages", count,
                        "--formatter-property", f"key.separator={separator}",
                        *(part for name in ("key", "offset", "partition", "headers")
                          for part in ("--formatter-property", f"print.{name}=true")))
        ran.out = ran.out.replace(separator, " | ")
        return ran

    def offsets(self):
        """Records of a known order in time: 40, a pause, 60, a pause, one; the clock is ours."""
        run = self.tool
        self.create("tools.time", 2)
        send = ("console-producer", "--topic", "tools.time", "--reader-property", "parse.key=true",
                "--reader-property", "key.separator=:")
        middles = []
        for count in (40, 60, 1):
            sent = run(*send, stdin=b"k:record\n" * count)
            self.works(f"console-producer: {count} records", sent, self.quiet(sent))
            middles.append(later_millisecond())
        ask = ("get-offsets", "--topic-partitions", "tools.time:0-2", "--time")
        for when in ("latest", "earliest", "max-timestamp", "-4", "-5", "-6", "0"):
            self.same(f"get-offsets-time-{when.strip('-')}", run(*ask, when))
        for name, when in zip(("before-60", "before-last", "after-all"), middles):
            self.same(f"get-offsets-{name}", run(*ask, when))
        self.same("get-offsets-regex", run("get-offsets", "--topic", "tools\\.(a|t.*)"))
        self.same("get-offsets-missing", run("get-offsets", "--topic", "none"))

    def dump_log(self):
        """The segment files as Kafka's own tool reads them, for each codec."""
        lines = [f"line {number} of a text that compresses" for number in range(300)]
        for codec in CODECS:
            topic = f"tools.dump.{codec}"
            self.create(topic, 1)
            half = len(lines) // 2
            for part in (lines[:half], lines[half:]):
                self.tool("console-producer", "--topic", topic, "--compression-codec", codec,
                          stdin="\n".join(part).encode() + b"\n")
            segments = sorted(self.broker.channel_directory(topic, 0).glob("*.log"))
            ran = self.host.run("dump-log", "--print-data-log", "--deep-iteration",
                                "--files", ",".join(map(str, segments)))
            problems = dump_log_problems(ran.out, codec, lines)
            self.works(f"dump-log: {codec}, {len(segments)} segment", ran, ran.code == 0)
            self.checks.check(segments and not problems, f"dump-log: {codec}, offsets and payloads",
                              "\n".join(problems) or "no segment file")

    def perf_test(self):
        for acks in ("1", "all"):
            topic = f"tools.perf.{acks}"
            self.create(topic, 3)
            ran = self.tool("producer-perf-test", "--topic", topic, "--num-records", PERF_RECORDS,
                            "--record-size", 100, "--throughput", -1,
                            "--command-property", f"acks={acks}")
            done = re.search(rf"{PERF_RECORDS} records sent, [\d.]+ records/sec .*99.9th", ran.out)
            self.works(f"producer-perf-test: acks={acks} {done[0][:70] if done else ''}", ran, done)
            total = sum(int(end) for _, end in self.ends(topic))
            self.checks.check(total == PERF_RECORDS,
                              f"producer-perf-test: {total} of {PERF_RECORDS} records are there")

    def cluster(self):
        ran = self.host.run("cluster", "cluster-id", *self.server)
        found = re.search(r"^Cluster ID: \S{22}$", ran.out, re.MULTILINE)
        self.works("cluster: has an id", ran, found)
        self.same("cluster-list-endpoints",
                  self.host.run("cluster", "list-endpoints", *self.server))

    def delete_topics(self):
        run = self.tool
        self.same("topics-delete", run("topics", "--delete", "--topic", "tools.a"))
        self.settle()
        self.same("topics-delete-again", run("topics", "--delete", "--topic", "tools.a"))
        self.same("topics-delete-many", run("topics", "--delete", "--topic", "tools\\.dump\\..*"))
        self.same("topics-create-anew", run("topics", "--create", "--topic", "tools.a"))
        self.settle()
        self.same("get-offsets-anew", run("get-offsets", "--topic", "tools.a"))
        self.same("topics-list-at-end", run("topics", "--list"))


def later_millisecond():
    """A time after everything so far and before everything to come, in ms."""
    time.sleep(0.003)
    now = int(time.time() * 1000)
    time.sleep(0.003)
    return now


def api_ranges(text):
    """{key: "min to max"} of kafka-broker-api-versions."""
    return {int(key): span for key, span in
            re.findall(r"\((\d+)\): (\d+(?: to \d+)?) \[usable", text)}


def config_lines(text):
    """{name: rest of the line} of kafka-configs --all, but for what Kafka has no definition of."""
    lines = (line for line in text.splitlines()
             if " sensitive=" in line and "=null sensitive=true synonyms={STATIC_" not in line)
    return dict(line.strip().split("=", 1) for line in lines)


def is_default(line):
    return "STATIC_BROKER_CONFIG" not in line and "DYNAMIC" not in line


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_broker_arguments(parser)
    parser.add_argument("--record", action="store_true", help="store the answers in expected/")
    arguments = parser.parse_args()
    require("java", "javac", "mvn", "kcat")
    checks = Checks()
    with checks:
        subprocess.run([HERE / "fetch.sh"], check=True)
        run_on(arguments, checks)
    return checks.finish()


def run_on(arguments, checks):
    settings = ["kafka.num.partitions=4", "kafka.group.initial.rebalance.delay.ms=0"]
    with broker_from(arguments, settings) as broker:
        host = ToolHost(broker.scratch)
        try:
            expectations = Expectations(HERE / "expected", broker.address, arguments.record)
            KafkaTools(broker, host, checks, expectations).run()
        finally:
            host.close()
        if broker.kind == "kanald":
            checks.check(broker.stop() == 0, "SIGTERM afterwards ends with 0", broker.log_tail())


if __name__ == "__main__":
    sys.exit(main())
