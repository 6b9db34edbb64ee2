"""kafka-transactions: transactions listed, described, looked for and ended. Answers of a real Kafka 4.4 lie in
expected/transactions.

The transactions are those of raw requests, so that they stay open as long as the steps need. Epochs of the
coordinator are each broker's own. Times are the brokers', but for those of the records.
"""
import pathlib
import re
import sys

from expectations import Expectations

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "conformance"))
import batch  # noqa: E402
import transactional  # noqa: E402
import world  # noqa: E402

TOPIC = "txn.t"
TIMEOUT_MS = 800_000  # nothing ends by itself
TRANSACTIONAL = 16
OWN = {"ProducerId": "ID", "CurrentTransactionStartTimeMs": "TIME", "TransactionDurationMs": "AGO"}
EPOCHS = ("LatestCoordinatorEpoch", "CoordinatorEpoch")


class TransactionExpectations(Expectations):
    more = ((r"adminclient-\d+", "adminclient-N"), (r"\b179\d{10}\b|\b1[89]\d{11}\b", "TIME"), (r"\d+ ms ago", "AGO"), (r"\bproducerId=\d+", "producerId=ID"),
            (r"coordinatorEpoch=\d+", "coordinatorEpoch=EPOCH"), (r" producerId \d+", " producerId ID"))


class TransactionSteps:
    """`tools` is KafkaTools; `run()` deletes its topic at the end, its transactional ids stay."""

    def __init__(self, tools):
        self.tools = tools
        self.checks = tools.checks
        common = tools.expectations
        self.expectations = TransactionExpectations(common.directory / "transactions", common.address,
                                                    common.record)
        host, _, port = tools.broker.address.rpartition(":")
        self.world = world.World((host, int(port)), "txn")
        self.node = tools.node_id()
        self.producers = {}

    def run(self):
        self.tools.create(TOPIC, 2)
        self.prepare()
        self.list()
        self.describe()
        self.find_hanging()
        self.abort()
        self.terminate()
        self.world.close()
        self.tools.tool("topics", "--delete", "--topic", TOPIC)

    def prepare(self):
        while self.world.ask("FindCoordinator", 3, {"Key": "a", "KeyType": 1})["ErrorCode"] != 0:
            pass  # Kafka makes a topic first
        for name, partitions in (("open", (0, 1)), ("other", (1,)), ("committed", (1,)), ("aborted", (1,)),
                                 ("second", (1,)), ("empty", ())):
            producer = transactional.Producer(self.world, name, TIMEOUT_MS)
            self.producers[name] = producer
            if partitions and name != "second":
                producer.begin([(TOPIC, list(partitions))])
            if partitions:
                self.send(producer, partitions[0], 12 if name == "second" else 9)
        self.producers["committed"].end(True)
        self.producers["aborted"].end(False)
        self.producers["second"].end(True, 5)

    def send(self, producer, partition, version):
        """From version 12 on the partition becomes part of the transaction by that."""
        records = batch.batch(b"a", b"b", pid=producer.own["ProducerId"], sequence=0,
                              epoch=producer.own["ProducerEpoch"], attributes=TRANSACTIONAL)
        body = {**world.produce_body(TOPIC, records, partition), "TransactionalId": producer.id}
        told = self.world.ask("Produce", version, body)["Responses"][0]["PartitionResponses"][0]
        self.checks.check(told["ErrorCode"] == 0, f"produce in transaction {producer.id}", told)

    def ask(self, *arguments):
        ran = self.tools.tool("transactions", *arguments)
        ran.out = alike(ran.out)
        return ran

    def same(self, name, ran):
        problem = self.expectations.compare(name, ran)
        self.checks.check(not problem, f"transactions {name}: as Kafka 4.4 prints it", problem)

    def list(self):
        self.same("list", self.ask("list"))
        self.same("list-longer", self.ask("list", "--duration-filter", 3_600_000))
        self.same("list-pattern",
                  self.ask("list", "--transactional-id-pattern", "txn\\.(o.*|empty)"))
        self.same("list-pattern-both", self.ask("list", "--transactional-id-pattern", "txn\\..*d",
                                                "--duration-filter", 0))
        self.same("list-pattern-bad", self.ask("list", "--transactional-id-pattern", "("))

    def describe(self):
        for name in ("open", "other", "committed", "aborted", "second", "empty", "none"):
            self.same(f"describe-{name}", self.ask("describe", "--transactional-id", f"txn.{name}"))
        for partition in (0, 1):
            self.same(f"producers-{partition}", self.described(partition))

    def described(self, partition):
        return self.ask("describe-producers", "--topic", TOPIC, "--partition", partition)

    def find_hanging(self):
        """Their records are old, but the coordinator knows of them: none hangs."""
        for name, where in (("broker", ("--broker-id", self.node)), ("topic", ("--topic", TOPIC)),
                            ("partition", ("--topic", TOPIC, "--partition", 0)),
                            ("both", ("--topic", TOPIC, "--broker-id", self.node)),
                            ("nowhere", ())):
            self.same(f"find-hanging-{name}",
                      self.ask("find-hanging", *where, "--max-transaction-timeout", 1))

    def abort(self):
        at = ("--topic", TOPIC, "--partition")
        self.same("abort-nothing-there", self.ask("abort", *at, 0, "--start-offset", 7))
        self.same("abort", self.ask("abort", *at, 0, "--start-offset", 0))
        self.same("abort-again", self.ask("abort", *at, 0, "--start-offset", 0))
        self.same("producers-aborted", self.described(0))
        self.same("describe-aborted-there", self.ask("describe", "--transactional-id", "txn.open"))
        other = self.producers["other"].own

        def by_producer(epoch, coordinator):
            return self.ask("abort", *at, 1, "--producer-id", other["ProducerId"], "--producer-epoch",
                            epoch, "--coordinator-epoch", coordinator)
        self.same("abort-by-producer", by_producer(0, 3))
        self.same("abort-older-coordinator", by_producer(0, 2))
        self.same("abort-later-epoch", by_producer(1, 3))
        self.same("abort-older-epoch", by_producer(0, 3))
        self.same("abort-without-offset", self.ask("abort", *at, 1))
        self.same("producers-aborted-by-producer", self.described(1))

    def terminate(self):
        def terminate(name):
            return self.ask("forceTerminateTransaction", "--transactionalId", f"txn.{name}")
        self.same("terminate", terminate("open"))
        self.producers["open"].settle()
        self.same("describe-terminated", self.ask("describe", "--transactional-id", "txn.open"))
        self.same("terminate-ended", terminate("committed"))
        self.same("terminate-unknown", terminate("unknown"))
        self.same("list-at-end", self.ask("list"))


def alike(text):
    """Rows in their order, what each broker has of its own blanked by the name of its column."""
    lines = [line.split() for line in text.splitlines()]
    names = next((line for line in lines if "ProducerId" in line), None)
    if names is None:
        return text
    start = lines.index(names)
    rows = []
    for line in lines[start + 1:]:
        row = dict(zip(names, line))
        if "TransactionalId" in row and not row["TransactionalId"].startswith("txn."):
            continue
        for name, blank in OWN.items():
            if row.get(name, "None").lstrip("-").isdigit() and row[name] != "-1":
                row[name] = blank
        for name in EPOCHS:
            if re.fullmatch(r"\d+", row.get(name, "")):
                row[name] = "EPOCH"
        if "TopicPartitions" in row:
            row["TopicPartitions"] = ",".join(sorted(row["TopicPartitions"].split(",")))
        rows.append(" ".join(row.values()))
    return "\n".join([" ".join(names), *sorted(rows)]) + "\n"


def run(tools):
    TransactionSteps(tools).run()
