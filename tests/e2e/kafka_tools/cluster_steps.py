"""The tools that look at the cluster itself: log dirs, leaders, reassignments, features, quorum, and
records deleted, producers described. Answers of a real Kafka 4.4 lie in expected/cluster.

What differs, and why:
- features: Kafka also has group.version and others; kanald lists a feature with the code that serves
  it. The rows of metadata.version and transaction.version are compared.
- quorum: kanald has no controller listener; the voter's endpoint is the broker's. Offsets and epochs
  are each broker's own.
- cluster unregister of the node itself: Kafka obeys and is left without a broker, kanald refuses.
"""
import json
import re
import time

from expectations import Expectations

TOOLS = {
    "log-dirs": "LogDirsCommand",
    "leader-election": "LeaderElectionCommand",
    "reassign-partitions": "reassign.ReassignPartitionsCommand",
    "features": "FeatureCommand",
    "metadata-quorum": "MetadataQuorumCommand",
    "delete-records": "DeleteRecordsCommand",
    "transactions": "TransactionsCommand",
}
ALIKE = (
    (r'"logDir":"[^"]*"', '"logDir":"DIR"'),
    (r'"(total|usable)Bytes":[1-9]\d*', r'"\1Bytes":BYTES'),
    (r'"/[^"]*"', '"DIR"'),
    (r"SCRATCH/(kafka/)?data", "DIR"),
    (r"Epoch: \d+$", "Epoch: EPOCH"),
    (r"^((ClusterId|LeaderEpoch|HighWatermark): +).*", r"\1OWN"),
    (r'"(CONTROLLER|PLAINTEXT)://[^"]*"', '"ENDPOINT"'),
    (r"\b\d{13}\b", "TIME"),
    (r"\d+ ms ago", "AGO"),
    # The wording behind an error code is each broker's own.
    (r"(Can not|Could not)( \w+ [\w.]+?(?: to \d+)?\. ).*", r"\1\2TEXT"),
    (r"(request for broker ID \d+ failed: ).*", r"\1TEXT"),
    (r"adminclient-\d+", "adminclient-N"),
    # Columns are as wide as what they hold.
    (r"[ \t]+", " "),
    (r" +$", ""),
)


class ClusterExpectations(Expectations):
    more = ALIKE


class ClusterSteps:
    """`tools` is KafkaTools; `run()` deletes its topics, all `cluster.*`, at the end."""

    def __init__(self, tools):
        self.tools = tools
        self.broker = tools.broker
        self.checks = tools.checks
        common = tools.expectations
        self.expectations = ClusterExpectations(common.directory / "cluster", common.address,
                                                common.record)
        self.node = tools.node_id()
        # What is missing is looked for until the tool's deadline, a minute unless told otherwise.
        settings = self.broker.scratch / "impatient.properties"
        settings.write_text("default.api.timeout.ms=3000\nrequest.timeout.ms=1500\n")
        self.impatient = ("--command-config", settings)

    def run(self):
        self.tools.create("cluster.empty", 2)
        self.tools.create("cluster.full", 1)
        self.tools.tool("console-producer", "--topic", "cluster.full",
                        stdin="".join(f"record {number}\n" for number in range(100)).encode())
        self.log_dirs()
        self.leader_election()
        self.reassign_partitions()
        self.features()
        self.cluster()
        self.metadata_quorum()
        self.describe_producers()
        self.delete_records()
        self.tools.tool("topics", "--delete", "--topic", "cluster\\..*")

    def same(self, name, ran):
        problem = self.expectations.compare(name, ran)
        self.checks.check(not problem, f"{name}: as Kafka 4.4 prints it", problem)

    def file(self, name, content):
        path = self.broker.scratch / name
        path.write_text(json.dumps(content))
        return path

    def log_dirs(self):
        def ask(*arguments):
            return self.tools.tool("log-dirs", "--describe", *arguments)
        self.same("log-dirs-topic", ask("--topic-list", "cluster.empty"))
        self.same("log-dirs-topic-missing", ask("--topic-list", "cluster.none"))
        self.same("log-dirs-broker",
                  ask("--broker-list", self.node, "--topic-list", "cluster.empty"))
        self.same("log-dirs-broker-missing", ask("--broker-list", 99))
        ran = ask()
        found = json.loads(ran.out.splitlines()[-1])["brokers"][0]["logDirs"][0]
        sizes = {row["partition"]: row["size"] for row in found["partitions"]}
        segments = self.broker.channel_directory("cluster.full", 0).glob("*.log")
        written = sum(segment.stat().st_size for segment in segments)
        self.checks.check(sizes["cluster.full-0"] == written > 0 and sizes["cluster.empty-1"] == 0,
                          f"log-dirs: the sizes are those on disk ({written} bytes)", ran)
        directory = self.broker.channel_directory("cluster.full", 0)
        self.checks.check(str(directory).startswith(found["logDir"] + "/"),
                          "log-dirs: the directory is the one that holds the partitions", ran)

    def leader_election(self):
        def elect(*arguments):
            return self.tools.tool("leader-election", *arguments)
        for kind in ("preferred", "unclean"):
            self.same(f"leader-election-{kind}",
                      elect("--election-type", kind, "--topic", "cluster.empty", "--partition", 0))
            self.same(f"leader-election-{kind}-all",
                      elect("--election-type", kind, "--all-topic-partitions"))
        chosen = self.file("elect.json", {"partitions": [
            {"topic": "cluster.empty", "partition": 1}, {"topic": "cluster.full", "partition": 0}]})
        self.same("leader-election-file",
                  elect("--election-type", "preferred", "--path-to-json-file", chosen))
        self.same("leader-election-missing",
                  elect("--election-type", "preferred", "--topic", "cluster.empty",
                        "--partition", 7))

    def plan(self, replicas, partition=0, log_dirs=None, topic="cluster.empty"):
        row = {"topic": topic, "partition": partition, "replicas": replicas}
        if log_dirs:
            row["log_dirs"] = log_dirs
        return self.file("reassign.json", {"version": 1, "partitions": [row]})

    def reassign_partitions(self):
        def reassign(*arguments):
            return self.tools.tool("reassign-partitions", *arguments)
        node = int(self.node)
        topics = self.file("topics.json", {"version": 1, "topics": [{"topic": "cluster.empty"}]})
        self.same("reassign-generate",
                  reassign("--generate", "--topics-to-move-json-file", topics,
                           "--broker-list", node))
        self.same("reassign-generate-broker-missing",
                  reassign("--generate", "--topics-to-move-json-file", topics,
                           "--broker-list", f"{node},99"))
        plan = ("--reassignment-json-file", self.plan([node]))
        self.same("reassign-execute", reassign("--execute", *plan))
        self.same("reassign-verify", reassign("--verify", *plan))
        self.same("reassign-list", reassign("--list"))
        self.same("reassign-cancel", reassign("--cancel", *plan))
        directory = self.tools.tool("log-dirs", "--describe", "--topic-list", "cluster.empty")
        home = json.loads(directory.out.splitlines()[-1])["brokers"][0]["logDirs"][0]["logDir"]
        moved = ("--reassignment-json-file", self.plan([node], log_dirs=[home]))
        self.same("reassign-execute-dir", reassign("--execute", *moved))
        self.same("reassign-verify-dir", reassign("--verify", *moved))
        # One move that never ends would keep the tool trying: it waits for the directory.
        for name, replicas, partition, topic in (
                ("broker-missing", [99], 0, "cluster.empty"),
                ("twice", [node, node], 0, "cluster.empty"),
                ("partition-missing", [node], 7, "cluster.empty"),
                ("topic-missing", [node], 0, "cluster.none")):
            wrong = self.plan(replicas, partition, topic=topic)
            self.same(f"reassign-{name}",
                      reassign("--execute", "--reassignment-json-file", wrong))

    def features(self):
        def run(*arguments):
            return self.tools.tool("features", *arguments)
        described = run("describe")
        described.out = "".join(line + "\n" for line in described.out.splitlines()
                                if re.match("(Feature: )?(metadata|transaction)[.]version", line))
        self.same("features-describe", described)
        for name, arguments in (
                ("upgrade-same", ("upgrade", "--feature", "metadata.version=33")),
                ("upgrade-dry", ("upgrade", "--feature", "metadata.version=33", "--dry-run")),
                ("upgrade-too-high", ("upgrade", "--feature", "metadata.version=99")),
                ("upgrade-lower", ("upgrade", "--feature", "metadata.version=30")),
                ("upgrade-unknown", ("upgrade", "--feature", "nonsense=1")),
                ("upgrade-nothing", ("upgrade",)),
                ("downgrade", ("downgrade", "--feature", "metadata.version=30")),
                ("downgrade-unsafe",
                 ("downgrade", "--feature", "metadata.version=30", "--unsafe")),
                ("downgrade-dry", ("downgrade", "--feature", "metadata.version=30", "--dry-run")),
                ("downgrade-metadata", ("downgrade", "--metadata", "4.2-IV0")),
                ("disable", ("disable", "--feature", "metadata.version")),
                ("disable-dry", ("disable", "--feature", "metadata.version", "--dry-run")),
                ("version-mapping", ("version-mapping", "--release-version", "4.4-IV0")),
                ("version-mapping-bad", ("version-mapping", "--release-version", "9.9")),
                ("dependencies", ("feature-dependencies", "--feature", "metadata.version=33")),
                ("dependencies-bad", ("feature-dependencies", "--feature", "nonsense=1"))):
            self.same(f"features-{name}", run(*arguments))

    def cluster(self):
        def run(*arguments):
            return self.tools.host.run("cluster", *arguments, *self.tools.server)
        self.same("cluster-list-endpoints-fenced",
                  run("list-endpoints", "--include-fenced-brokers"))
        self.same("cluster-unregister-missing", run("unregister", "--id", 99))
        if self.broker.kind == "kanald":
            ran = run("unregister", "--id", self.node)
            self.checks.check(ran.code != 0 and "InvalidRequestException" in ran.out + ran.err,
                              "cluster unregister: the only broker stays", ran)

    def metadata_quorum(self):
        def describe(*arguments):
            return self.tools.tool("metadata-quorum", "describe", *arguments)
        self.same("quorum-status", describe("--status"))
        numbers = ("--replication",)
        described = describe(*numbers)
        # The log's end is the broker's own number.
        described.out = re.sub(r"^(\d+\s+[\w-]{22}\s+)\d+", r"\1END", described.out,
                               flags=re.MULTILINE)
        self.same("quorum-replication", described)
        readable = describe(*numbers, "--human-readable")
        readable.out = re.sub(r"^(\d+\s+[\w-]{22}\s+)\d+", r"\1END", readable.out,
                              flags=re.MULTILINE)
        self.same("quorum-replication-readable", readable)
        first = self.quorum_end()
        self.tools.create("cluster.one-more", 1)
        deadline = time.monotonic() + 30
        while self.quorum_end() <= first and time.monotonic() < deadline:
            time.sleep(0.1)
        self.checks.check(self.quorum_end() > first, "quorum: its offset rises with a new topic")

    def quorum_end(self):
        ran = self.tools.tool("metadata-quorum", "describe", "--status")
        return int(re.search(r"HighWatermark:\s+(\d+)", ran.out)[1])

    def describe_producers(self):
        def run(*arguments, impatient=False):
            options = self.impatient if impatient else ()
            ran = self.tools.tool("transactions", *options, "describe-producers", *arguments)
            # The producer's id is the broker's, its time the clock's.
            ran.out = re.sub(r"^\d+(\s+0\s)", r"ID\1", ran.out, flags=re.MULTILINE)
            return ran
        self.same("producers", run("--topic", "cluster.full", "--partition", 0))
        self.same("producers-broker", run("--topic", "cluster.full", "--partition", 0,
                                          "--broker-id", self.node))
        self.same("producers-none", run("--topic", "cluster.empty", "--partition", 0))
        self.same("producers-missing", run("--topic", "cluster.empty", "--partition", 7,
                                           "--broker-id", self.node, impatient=True))

    def delete_records(self):
        def delete(*rows, impatient=False):
            offsets = self.file("offsets.json", {"version": 1, "partitions": [
                {"topic": topic, "partition": partition, "offset": offset}
                for topic, partition, offset in rows]})
            options = self.impatient if impatient else ()
            return self.tools.tool("delete-records", "--offset-json-file", offsets, *options)
        self.same("delete-records", delete(("cluster.full", 0, 40)))
        self.same("delete-records-below", delete(("cluster.full", 0, 10)))
        self.same("delete-records-beyond", delete(("cluster.full", 0, 101)))
        self.same("delete-records-negative", delete(("cluster.full", 0, -2)))
        self.same("delete-records-missing", delete(("cluster.none", 0, 1), impatient=True))
        both = delete(("cluster.full", 0, -1), ("cluster.empty", 1, 0))
        both.out = "".join(line + "\n" for line in sorted(both.out.splitlines()))
        self.same("delete-records-all", both)
        self.same("delete-records-twice",
                  delete(("cluster.full", 0, 1), ("cluster.full", 0, 2)))
