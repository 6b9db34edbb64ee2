"""Transactions of every client library: ended well and badly, fenced, with offsets, read by all.

matrix.py runs this with a broker of its own, because the broker is killed and started again.
README.md tells the story. Waiting is for answers and records, never for time.
"""

import concurrent.futures
import re
import threading
import time
import traceback

import groups
from transactors import LIBRARIES, Gone, Reader, Refused, Transactor

PARTITIONS = 3
INPUT_BATCH = 10  # records to each partition of an input topic
COPY_AT_MOST = 8  # of them in one transaction
AT_ONCE = 4
READ_DEADLINE_S = 90
TIMEOUT_MS = 120_000  # of a transaction: none ends by it
# What libraries say of a producer whose place another one took, with Apache Kafka 4.4 as well.
FENCED = re.compile("fenced|invalid_?producer_?epoch|old epoch", re.IGNORECASE)


class Writer:
    """One library's part: what it wrote, and what of it was committed."""

    def __init__(self, world, library, process):
        self.world, self.name, self.process = world, library.name, process
        self.topic, self.input = f"txn.{library.name}", f"txn.{library.name}.input"
        self.id, self.group = f"id.{library.name}", f"group.{library.name}"
        self.fencer = None  # the process of another library
        self.written, self.committed = {}, set()  # (partition, offset): value; of these
        self.count = 0
        self.open = []

    def check(self, good, name, detail=""):
        self.world.check(self.name, None if good else f"{name}: {detail or 'not so'}")

    def send(self, process, handle, values):
        """Sends to all partitions in turn; returns the places."""
        words = [f"{i % PARTITIONS}:{value}" for i, value in enumerate(values)]
        offsets = process.ask("send", handle, self.topic, *words)["offsets"]
        places = [(i % PARTITIONS, offset) for i, offset in enumerate(offsets)]
        self.written.update(zip(places, values))
        return places

    def send_new(self, process, handle, count):
        self.count += count
        return self.send(
            process, handle, [f"{self.name}-{i}" for i in range(self.count - count, self.count)]
        )

    def transaction(self, process, handle, count, end):
        process.ask("begin", handle)
        places = self.send_new(process, handle, count)
        process.ask(end, handle)
        if end == "commit":
            self.committed.update(places)

    def plain(self):
        """A record behind all others of each partition, of no transaction; the places."""
        answer = self.world.feeder.ask(
            "produce", topic=self.topic, partitions=PARTITIONS, first=self.count, count=1
        )
        places = [tuple(place) for place in answer["offsets"]]
        self.written.update({place: str(self.count) for place in places})
        self.committed.update(places)
        return places

    # The story. README.md tells it too.

    def writes(self):
        self.world.feeder.ask("create", topic=self.topic, partitions=PARTITIONS)
        self.ends_well_and_badly()
        self.is_fenced()
        self.takes_offsets_along()

    def ends_well_and_badly(self):
        self.process.ask("init", "a", self.id, TIMEOUT_MS)
        for count, end in ((60, "commit"), (60, "abort"), *((1, "commit"), (2, "abort")) * 4):
            self.transaction(self.process, "a", count, end)
        self.check(True, "commits and aborts")

    def is_fenced(self):
        """Another library takes its transactional id while a transaction is open, and loses it."""
        other = self.fencer
        self.process.ask("begin", "a")
        self.send_new(self.process, "a", 3)
        other.ask("init", self.name, self.id, TIMEOUT_MS)
        self.expect_fenced("a zombie", self.process, "a")
        self.transaction(other, self.name, 3, "commit")
        other.ask("begin", self.name)
        self.send_new(other, self.name, 3)
        self.process.ask("init", "b", self.id, TIMEOUT_MS)
        self.expect_fenced("who fenced it", other, self.name)
        self.transaction(self.process, "b", 3, "commit")

    def expect_fenced(self, who, process, handle):
        """It can neither send nor commit; and says why."""
        said = ""
        for what, work in (
            ("send", lambda: self.send_new(process, handle, 3)),
            ("commit", lambda: process.ask("commit", handle)),
        ):
            try:
                work()
                self.check(False, f"{who} is refused to {what}")
            except Refused as refused:
                said += f"{refused}; "
                self.check(True, f"{who} is refused to {what}")
        self.check(FENCED.search(said), f"{who} is told that it is fenced", said)

    def takes_offsets_along(self):
        feed = self.world.feeder.ask
        feed("create", topic=self.input, partitions=PARTITIONS)
        feed("produce", topic=self.input, partitions=PARTITIONS, first=0, count=INPUT_BATCH)
        init = "init", "c", f"{self.id}.c", TIMEOUT_MS
        self.process.ask(*init, self.group, self.input, COPY_AT_MOST)
        done = self.copy("commit")
        self.check_stored("a commit takes the offsets along", done)
        left = self.copy("abort")
        self.check_stored("an abort leaves the offsets", done)
        while len(done) < PARTITIONS * INPUT_BATCH:
            done += self.copy("commit")
        self.check(set(left) <= set(done), "what was aborted is read again", f"{left}, {done}")
        self.check(len(set(done)) == len(done), "each record is copied once", done)
        self.check_stored("all offsets are committed", done)

    def copy(self, end):
        """A transaction of records that were read and the offsets behind them; the records."""
        records = []
        deadline = time.monotonic() + READ_DEADLINE_S
        while not records:
            records = self.process.ask("poll", "c")["records"]
            if time.monotonic() > deadline:
                raise Refused(f"no record to copy in {READ_DEADLINE_S} s")
        self.process.ask("begin", "c")
        values = [f"{self.name}-of-{p}-{offset}-{end}" for p, offset, _value in records]
        places = self.send(self.process, "c", values)
        self.process.ask("offsets", "c")
        self.process.ask(end, "c")
        if end == "commit":
            self.committed.update(places)
        return [(partition, offset) for partition, offset, _value in records]

    def check_stored(self, name, done):
        answer = self.world.feeder.ask("offsets", group=self.group, topic=self.input)["offsets"]
        wanted = {}
        for partition, offset in done:
            wanted[str(partition)] = max(wanted.get(str(partition), 0), offset + 1)
        self.check(answer == wanted, name, f"wanted {wanted}, got {answer}")

    def leaves_one_open(self):
        self.process.ask("begin", "b")
        self.open = self.send_new(self.process, "b", 3)
        self.plain()

    def ends_the_open_one(self):
        """Begun before the broker's kill -9. Every second library aborts it."""
        end = "abort" if self.world.writers.index(self) % 2 else "commit"
        self.process.ask(end, "b")
        if end == "commit":
            self.committed.update(self.open)
        self.transaction(self.process, "b", 3, "commit")
        self.plain()


class World:
    """The broker, the feeder, a writer of each library and two readers of each."""

    def __init__(self, broker, usable, feeder_command, results, log_dir):
        self.broker, self.results, self.log_dir = broker, results, log_dir
        self.lock = threading.Lock()
        self.libraries = list(usable.values())
        with open(log_dir / "feeder.stderr", "wb") as log:
            self.feeder = groups.Feeder(feeder_command, broker.address, log)
        self.readers, self.failed = [], set()
        self.writers = [
            Writer(self, one, Transactor(one, broker.address, log_dir / f"{one.name}.stderr"))
            for one in self.libraries
        ]
        for writer, fencer in zip(self.writers, self.writers[1:] + self.writers[:1]):
            writer.fencer = fencer.process

    def check(self, row, problem, column="writes"):
        with self.lock:
            self.results.check(row, column, "+", problem)

    def chapter(self, story):
        """Runs it for all libraries that have come so far."""

        def one(writer):
            try:
                story(writer)
            except (Refused, Gone, groups.StepFailed) as failure:
                where = traceback.extract_tb(failure.__traceback__)[1].name
                self.failed.add(writer)
                self.check(writer.name, f"the story breaks off in {where}: {failure}")

        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, [w for w in self.writers if w not in self.failed]))
        print(f"{story.__name__.replace('_', ' ')}: {time.monotonic() - begin:.0f} s", flush=True)

    def start_readers(self):
        topics = [writer.topic for writer in self.writers]
        self.readers = [
            Reader(one, self.broker.address, self.log_dir / f"{one.name}.read", isolation, topics)
            for one in self.libraries
            for isolation in ("read_committed", "read_uncommitted")
        ]

    def expected(self, reader, writer):
        """(topic, partition, offset): value, of what it may see."""
        every = writer.written.items()
        shown = (
            every
            if reader.isolation == "read_uncommitted"
            else [item for item in every if item[0] in writer.committed]
        )
        return {(writer.topic, *place): value for place, value in shown}

    def all_is_read(self, when, hidden=frozenset()):
        """Waits until each reader has read what it may see, all but the hidden places."""
        begin, slowest = time.monotonic(), (0, "")
        for reader in self.readers:
            wanted = {
                place
                for writer in self.writers
                if writer not in self.failed
                for place in self.expected(reader, writer)
            }
            if reader.isolation == "read_committed":
                wanted -= hidden
            missing = reader.wait_for(wanted, READ_DEADLINE_S)
            slowest = max(slowest, (reader.last, reader.name))
            problem = f"{when}: {len(missing)} missing: {sorted(missing)[:5]}" if missing else None
            self.check(reader.name, problem, "reads all")
        took = time.monotonic() - begin
        print(f"all is read {when}: {took:.0f} s, last by {slowest[1]}", flush=True)

    def readers_agree(self):
        """Each reader has read just what was to be read, once, in order."""
        for reader in self.readers:
            for writer in self.writers:
                if writer in self.failed:
                    continue
                got = [r for r in reader.records if r[0] == writer.topic]
                wanted = [(*place, v) for place, v in sorted(self.expected(reader, writer).items())]
                problem = None
                if sorted(got) != wanted:
                    extra, missing = set(got) - set(wanted), set(wanted) - set(got)
                    problem = f"too many {sorted(extra)[:5]}, missing {sorted(missing)[:5]}"
                for partition in range(PARTITIONS):
                    offsets = [offset for _t, p, offset, _v in got if p == partition]
                    if offsets != sorted(set(offsets)):
                        problem = problem or f"partition {partition}: out of order, or twice"
                self.check(reader.name, problem and f"of {writer.name}: {problem}", writer.name)

    def run(self):
        try:
            self.chapter(Writer.writes)
            for writer in self.writers:
                writer.plain()
            self.start_readers()
            self.all_is_read("at first")
            closed = {(w.topic, *place) for w in self.writers for place in w.written}
            self.chapter(Writer.leaves_one_open)
            every = {(w.topic, *place) for w in self.writers for place in w.written}
            self.all_is_read("while transactions are open", every - closed)
            self.broker.kill9()
            self.broker.start()
            self.hides_what_is_open(every - closed)
            self.chapter(Writer.ends_the_open_one)
            self.all_is_read("at last")
            self.readers_agree()
        finally:
            for process in [*self.readers, *(writer.process for writer in self.writers)]:
                process.kill()
            self.feeder.close()

    def hides_what_is_open(self, hidden):
        for reader in self.readers:
            if reader.isolation == "read_committed":
                seen = hidden & reader.places
                problem = f"saw what is open, or behind it: {sorted(seen)[:5]}" if seen else None
                self.check(reader.name, problem, "reads all")


def run(broker, names, build, results):
    """broker: one that can be killed and started again; names: the libraries, None for all."""
    wanted = [library for library in LIBRARIES if names is None or library.name in names]
    usable, feeder = groups.prepare(wanted, build, results)
    if not usable:
        return
    log_dir = build / "transaction-logs"
    log_dir.mkdir(exist_ok=True)
    for old in log_dir.iterdir():
        old.unlink()
    begin = time.monotonic()
    world = World(broker, usable, feeder, results, log_dir)
    world.run()
    rows = [library.name for library in world.libraries]
    results.table("transactions (+: a check passed, !: failed)", rows, ["writes"])
    rows = [reader.name for reader in world.readers]
    results.table("what was read (+: all of it and nothing else)", rows, ["reads all", *usable])
    print(f"ran in {time.monotonic() - begin:.0f} s; what the programs said: {log_dir}")
