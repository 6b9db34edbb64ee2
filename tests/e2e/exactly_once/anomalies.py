"""Issue 6, "Must show" 3: random transactions of several client libraries, and no anomaly.

Workers send, poll, commit, abort, take each other's transactional ids away and are killed, the broker
is killed (-9), readers come and go. All that they did and saw is a history, which checker.py holds
against what transactions promise. The seed decides what each worker tries and when who is killed, not
what happens meanwhile. A history with anomalies is kept, and its name printed.
"""
import argparse
import json
import pathlib
import random
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("lib", "clients"):
    sys.path.insert(0, str(HERE.parent / folder))
import checker  # noqa: E402
import groups  # noqa: E402
from broker import REPOSITORY, add_broker_arguments, broker_from, require  # noqa: E402
from checks import Checks  # noqa: E402
from transactors import LIBRARIES, Gone, Reader, Refused, Transactor  # noqa: E402

TOPICS, PARTITIONS = ("random.0", "random.1"), 2
INPUT, INPUT_PARTITIONS, GROUP = "random.input", 3, "random.group"
FEED_EVERY, FEED = 5, 10  # transactions; records to each partition of the input
POLL_AT_MOST = 12
TIMEOUT_MS = 15_000  # of a transaction: who dies may leave one open
NO_PROGRESS_S = 120
ISOLATIONS = ("read_committed", "read_uncommitted")


class HistoryReader(Reader):
    def __init__(self, world, library, isolation, session):
        self.world, self.session = world, f"{library.name} {isolation} {session}"
        world.note("open", reader=self.session, isolation=isolation)
        log = world.log_dir / f"{library.name}.read"
        super().__init__(library, world.broker.address, log, isolation, TOPICS)

    def take(self, line):
        if line is not None:
            fields = {name: line[name] for name in ("topic", "partition", "offset", "value")}
            self.world.note("read", reader=self.session, **fields)
        super().take(line)


class Worker:
    """A thread with a process: one transaction after the other, whatever comes of it."""

    def __init__(self, world, library, number):
        self.world, self.library, self.number = world, library, number
        self.dice = random.Random(f"{world.options.seed} {number}")
        self.process, self.ready = None, set()
        self.thread = threading.Thread(target=self.run)
        self.trouble = None

    def run(self):
        try:
            while not self.world.stopping.is_set():
                self.one()
        except Exception as error:  # a worker that ends early is a failure of the test
            self.trouble = error
            raise
        finally:
            self.end_process()

    def end_process(self):
        if self.process:
            self.process.kill()
        self.process, self.ready = None, set()

    def one(self):
        """A transaction, from a process to its end."""
        if self.process is None:
            log = self.world.log_dir / f"{self.library.name}-{self.number}.stderr"
            self.process = Transactor(self.library, self.world.broker.address, log)
        handle = self.dice.choices(("plain", "copy", "stolen"), (40, 55, 5))[0]
        try:
            records = self.prepare(handle)
        except (Refused, Gone):
            self.end_process()
            return
        if records is not None:
            self.transaction(handle, records)

    def prepare(self, handle):
        """Its producer is there; the records to copy, None if there are none."""
        if handle == "stolen":
            identity = self.dice.choice(self.world.identities())
            self.process.ask("init", handle, identity, TIMEOUT_MS)
            return []
        if handle not in self.ready:
            words = (GROUP, INPUT, POLL_AT_MOST) if handle == "copy" else ()
            self.process.ask("init", handle, f"{handle}-{self.number}", TIMEOUT_MS, *words)
            self.ready.add(handle)
        if handle == "plain":
            return []
        return self.process.ask("poll", handle)["records"] or None

    def transaction(self, handle, records):
        world, txn = self.world, self.world.new_transaction()
        world.note("begin", txn=txn)
        how = "aborted"
        try:
            self.process.ask("begin", handle)
            self.fill(handle, txn, records)
            ending = self.dice.choices(("commit", "abort", "die", "die asking"), (74, 20, 2, 4))[0]
            how = self.finish(handle, txn, ending)
        except Refused:
            self.give_up(handle)
        except Gone:
            self.end_process()
        world.ended(txn, how)

    def fill(self, handle, txn, records):
        values = [f"copy:{GROUP}:{p}:{offset}:{txn}" for p, offset, _value in records]
        values += [f"{txn}.{i}" for i in range(self.dice.randrange(1, 6))]
        while values:
            topic, some = self.dice.choice(TOPICS), self.dice.randrange(1, len(values) + 1)
            batch, values = values[:some], values[some:]
            placed = [(self.dice.randrange(PARTITIONS), value) for value in batch]
            for partition, value in placed:
                self.world.note("send", txn=txn, topic=topic, partition=partition, value=value)
            words = [f"{partition}:{value}" for partition, value in placed]
            offsets = self.process.ask("send", handle, topic, *words)["offsets"]
            for (partition, value), offset in zip(placed, offsets):
                self.world.note("sent", txn=txn, topic=topic, partition=partition, offset=offset,
                                value=value)
        if records:
            self.process.ask("offsets", handle)

    def finish(self, handle, txn, ending):
        """How it ended, as far as this side knows."""
        if ending == "die":
            self.end_process()
            return "aborted"
        if ending == "abort":
            self.process.ask("abort", handle)
            return "aborted"
        self.world.note("asked", txn=txn)
        if ending == "die asking":
            threading.Timer(self.dice.random() * 0.01, self.process.process.kill).start()
        try:
            answer = self.process.ask("commit", handle)
            return "aborted" if answer.get("aborted") else "committed"
        except (Refused, Gone):
            self.end_process()
            return "unknown"

    def give_up(self, handle):
        """What was refused has to be aborted; who cannot do even that is not of use any more."""
        try:
            self.process.ask("abort", handle)
        except (Refused, Gone):
            self.end_process()


class World:
    def __init__(self, options, broker, checks):
        self.options, self.broker, self.checks = options, broker, checks
        self.dice = random.Random(options.seed)
        self.changed = threading.Condition()
        self.history, self.transactions, self.ends = [], 0, {}
        self.stopping = threading.Event()
        self.log_dir = broker.scratch / "clients"
        self.log_dir.mkdir()
        wanted = [library for library in LIBRARIES if library.name in options.libraries]
        usable, feeder = groups.prepare(wanted, REPOSITORY / "build/clients", NothingMissing())
        self.libraries = [usable[name] for name in options.libraries]
        self.go = next(library for library in LIBRARIES if library.name == "franz-go")
        self.go.command = (feeder[0], self.go.program)
        self.feeder = groups.Feeder(feeder, broker.address, open(self.log_dir / "feeder", "wb"))
        self.fed = self.sessions = 0
        self.readers, self.workers = [], []

    def note(self, event, **fields):
        with self.changed:
            self.history.append({"event": event, **fields})

    def new_transaction(self):
        with self.changed:
            self.transactions += 1
            return f"t{self.transactions}"

    def ended(self, txn, how):
        with self.changed:
            self.history.append({"event": "end", "txn": txn, "how": how})
            self.ends[how] = self.ends.get(how, 0) + 1
            self.changed.notify_all()

    def identities(self):
        return [f"{handle}-{n}" for n in range(self.options.workers) for handle in ("plain", "copy")]

    def feed(self):
        self.feeder.ask("produce", topic=INPUT, partitions=INPUT_PARTITIONS, first=self.fed,
                        count=FEED)
        self.fed += FEED

    def plain(self):
        """A record of no transaction in each partition; the places."""
        places = set()
        for topic in TOPICS:
            answer = self.feeder.ask("produce", topic=topic, partitions=PARTITIONS, first=self.fed,
                                     count=1, text=f"plain-{topic}")
            for partition, offset in answer["offsets"]:
                value = f"plain-{topic}-{partition}-{self.fed}"
                self.note("plain", topic=topic, partition=partition, value=value)
                places.add((topic, partition, offset))
        self.fed += 1
        return places

    def open_reader(self, library, isolation):
        self.sessions += 1
        return HistoryReader(self, library, isolation, self.sessions)

    def exchange_reader(self):
        at = self.dice.randrange(len(self.readers))
        old = self.readers[at]
        old.kill()
        self.readers[at] = self.open_reader(old.library, old.isolation)

    def kill_broker(self):
        self.broker.kill9()
        self.broker.start()

    def strikes(self):
        """(transactions ended, what happens then), in this order."""
        count = self.options.transactions
        drawn = [(self.dice.randrange(count // 20, count), self.kill_broker)
                 for _ in range(self.options.broker_kills)]
        drawn += [(n, self.feed) for n in range(0, count, FEED_EVERY)]
        drawn += [(n, self.exchange_reader) for n in range(count // 8, count, count // 8)]
        drawn += [(n, self.plain) for n in range(count // 20, count, count // 20)]
        return sorted(drawn, key=lambda strike: strike[0])

    def run(self):
        for topic in TOPICS:
            self.feeder.ask("create", topic=topic, partitions=PARTITIONS)
        self.feeder.ask("create", topic=INPUT, partitions=INPUT_PARTITIONS)
        self.readers = [self.open_reader(library, isolation) for library in self.libraries
                        for isolation in ISOLATIONS]
        self.workers = [Worker(self, self.libraries[n % len(self.libraries)], n)
                        for n in range(self.options.workers)]
        begin = time.monotonic()
        try:
            for worker in self.workers:
                worker.thread.start()
            for count, strike in self.strikes():
                self.wait_for_ends(count)
                strike()
            self.wait_for_ends(self.options.transactions)
        finally:
            self.stopping.set()
            for worker in self.workers:
                worker.thread.join()
            self.conclude()
        took = time.monotonic() - begin
        print(f"      {took:.0f} s, {len(self.history)} events, transactions: {self.ends}", flush=True)

    def wait_for_ends(self, count):
        with self.changed:
            total, since = -1, time.monotonic()
            while (now := sum(self.ends.values())) < count:
                if now > total:
                    total, since = now, time.monotonic()
                self.changed.wait(1)
                troubles = [worker.trouble for worker in self.workers if worker.trouble]
                if troubles or time.monotonic() - since > NO_PROGRESS_S:
                    raise TimeoutError(f"{now} transactions have ended: {troubles}")

    def conclude(self):
        """Ends what is open, reads everything anew."""
        try:
            ender = Transactor(self.go, self.broker.address, self.log_dir / "ender")
            for identity in self.identities():
                ender.ask("init", identity, identity, TIMEOUT_MS)
            ender.kill()
            last = self.plain()
            self.readers += [self.open_reader(library, isolation) for library in self.libraries
                             for isolation in ISOLATIONS]
            for reader in self.readers:
                missing = reader.wait_for(last, NO_PROGRESS_S)
                self.checks.check(not missing, f"{reader.session} reads to the end", sorted(missing))
            for reader in self.readers[-len(ISOLATIONS):]:
                for topic, partition, offset, value in reader.records:
                    self.note("final", isolation=reader.isolation, topic=topic, partition=partition,
                              offset=offset, value=value)
            answer = self.feeder.ask("offsets", group=GROUP, topic=INPUT)
            self.note("offsets", group=GROUP, offsets=answer["offsets"])
        finally:
            for reader in self.readers:
                reader.kill()
            self.feeder.close()


class NothingMissing:
    """In place of matrix.Results: whoever wants this test has all that it needs."""

    def absent(self, name, reason):
        raise RuntimeError(f"{name}: {reason}")


def keep(history, path):
    with open(path, "w", encoding="utf-8") as file:
        for event in history:
            print(json.dumps(event), file=file)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_broker_arguments(parser)
    parser.add_argument("--transactions", type=int, default=600)
    parser.add_argument("--broker-kills", type=int, default=4)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--libraries", type=lambda text: text.split(","),
                        default=["franz-go", "confluent-kafka", "java"])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--history", help="where to keep the history, anomalies or not")
    return parser.parse_args()


def main():
    options = parse_options()
    require("go", "java", "javac", "mvn", "kcat")
    print(f"--seed {options.seed}", flush=True)
    checks = Checks()
    with checks:
        with broker_from(options, groups.SETTINGS) as broker:
            world = World(options, broker, checks)
            world.run()
        found = checker.check(world.history)
        text = "\n".join(f"{rule}: {one}" for rule, texts in found.items() for one in texts)
        checks.check(not found, "no anomaly", text)
        if options.history or found:
            path = options.history or tempfile.mktemp(prefix="kanal-transactions-", suffix=".jsonl")
            keep(world.history, path)
            print(f"      the history: {path}")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
