"""Issue 6, "Must show" 2: consume, transform, produce, while workers and broker are killed.

Three workers copy a topic within transactions that take the offsets along. One of them, or the broker
(kill -9), is killed at random points of the output's growth. In the end read_committed has to show
the input exactly once, and what has one key in its order. The workers are, in turn:

    franz-go       its GroupTransactSession
    copier         Apache Kafka's TransactionalMessageCopier, a worker a partition, aborting at random
    copier-groups  the same, the workers being a group
    streams        a Kafka Streams application, exactly_once_v2, which counts in a store as well

The seed decides who is killed at which record, not what happens meanwhile.
"""
import argparse
import pathlib
import random
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
for folder in ("lib", "clients", "streams"):
    sys.path.insert(0, str(HERE.parent / folder))
import groups  # noqa: E402
import install  # noqa: E402
import streams_test  # noqa: E402
from broker import REPOSITORY, add_broker_arguments, broker_from, require  # noqa: E402
from checks import Checks  # noqa: E402
from transactors import LIBRARIES, Reader, Transactor  # noqa: E402

PARTITIONS = 3  # as many as workers
KEYS = 97
AT_MOST = 100  # records in a transaction
NO_PROGRESS_S = 120
LOOK_AGAIN_S = 0.2  # for workers that have ended
TIMEOUT_MS = 10_000  # of transactions that nobody ends
KINDS = ("franz-go", "copier", "copier-groups", "streams")
TOOLS = REPOSITORY / "build/kafka-tools"
JAVA = ("java", "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class OutputReader(Reader):
    """Counts the different values that it has seen, as they come."""

    def __init__(self, *arguments):
        self.values = set()
        super().__init__(*arguments)

    def take(self, line):
        if line is not None:
            self.values.add(line["value"].split(":")[0])
        super().take(line)


class Worker:
    def __init__(self, run, slot):
        self.run, self.slot = run, slot
        self.process, self.finished = None, False
        self.start()

    def start(self):
        run = self.run
        with open(run.scratch / f"worker-{self.slot}.log", "ab") as log:
            self.process = subprocess.Popen(run.command(self.slot), stdin=subprocess.PIPE, stdout=log,
                                            stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()

    def look_after(self):
        """Starts it again where it has ended by itself."""
        code = self.process.poll()
        if code is None or self.finished:
            return
        self.finished = code == 0 and self.run.kind == "copier"
        if not self.finished:
            self.process.stdin.close()
            self.run.ended += 1
            self.start()


class Run:
    """One kind of workers, on topics of its own."""

    def __init__(self, kind, world):
        self.kind, self.world, self.broker = kind, world, world.broker
        self.scratch = world.broker.scratch / kind
        self.scratch.mkdir()
        self.source, self.target = f"{kind}.input", f"{kind}.output"
        self.dice = random.Random(f"{world.options.seed} {kind}")
        self.ended = 0

    def command(self, slot):
        broker, identity = self.broker.address, f"{self.kind}-{slot}"
        if self.kind == "franz-go":
            return [self.world.go.command[0], "copier", broker, identity, self.kind, self.source,
                    self.target, str(AT_MOST)]
        if self.kind == "streams":
            return [*streams_test.JAVA, "CountingCopier", broker, self.kind, self.source, self.target,
                    str(self.scratch / f"state-{slot}")]
        log4j = HERE.parent / "kafka_tools/log4j2.properties"
        mode = ["--group-mode"] if self.kind == "copier-groups" else []
        return [*JAVA, f"-Dlog4j2.configurationFile={log4j}", "-cp", f"{TOOLS}/libs/*",
                "org.apache.kafka.tools.TransactionalMessageCopier", "--broker-list", broker,
                "--input-topic", self.source, "--input-partition", str(slot),
                "--output-topic", self.target, "--consumer-group", self.kind,
                "--transactional-id", identity, "--transaction-size", str(AT_MOST),
                "--transaction-timeout", str(TIMEOUT_MS), "--use-group-metadata",
                "--enable-random-aborts", *mode]

    def reader(self, isolation):
        log = self.scratch / f"{isolation}.log"
        return OutputReader(self.world.go, self.broker.address, log, isolation, [self.target])

    def draw_strikes(self):
        """(records in the output, who is killed then), in this order."""
        options = self.world.options
        who = ["broker"] * options.broker_kills + ["worker"] * options.worker_kills
        last = int(options.records * 0.95)
        return sorted((self.dice.randrange(last // 50, last), one) for one in who)

    def strike(self, who, workers):
        if who == "broker":
            self.broker.kill9()
            self.broker.start()
            return
        running = [worker for worker in workers if not worker.finished]
        if running:
            victim = self.dice.choice(running)
            victim.kill()
            victim.start()

    def grow_to(self, count, reader, workers):
        """Waits until the output has so many of the input's values."""
        seen, since = -1, time.monotonic()
        while len(reader.values) < count:
            with reader.changed:
                reader.changed.wait_for(lambda: len(reader.values) >= count, LOOK_AGAIN_S)
            if len(reader.values) > seen:
                seen, since = len(reader.values), time.monotonic()
            if reader.ended or time.monotonic() - since > NO_PROGRESS_S:
                raise TimeoutError(f"{self.kind}: the output stays at {seen} records")
            for worker in workers:
                worker.look_after()

    def copy(self):
        """All the input, with all the strikes; returns what was seen meanwhile."""
        options = self.world.options
        subprocess.run([self.world.go.command[0], "fill", self.broker.address, self.source,
                        self.target, str(PARTITIONS), str(options.records), str(KEYS)], check=True)
        reader = self.reader("read_committed")
        workers = [Worker(self, slot) for slot in range(PARTITIONS)]
        try:
            for count, who in self.draw_strikes():
                self.grow_to(count, reader, workers)
                self.strike(who, workers)
            self.grow_to(options.records, reader, workers)
        finally:
            for worker in workers:
                worker.kill()
            reader.kill()
        return reader.records

    def end_transactions(self):
        """What the workers left open would hold up who reads to the end."""
        ender = Transactor(self.world.go, self.broker.address, self.scratch / "ender.log")
        try:
            for slot in range(PARTITIONS if self.kind != "streams" else 0):
                ender.ask("init", str(slot), f"{self.kind}-{slot}", TIMEOUT_MS)
        finally:
            ender.kill()

    def read_all(self, isolation):
        """The whole output; its last records, of no transaction, are in no answer."""
        reader = self.reader(isolation)
        missing = reader.wait_for(self.behind, NO_PROGRESS_S)
        reader.kill()
        if missing:
            raise TimeoutError(f"{self.kind}: {isolation} does not get to {missing}")
        return [record for record in reader.records if record[:3] not in self.behind]

    def run(self):
        begin = time.monotonic()
        meanwhile = self.copy()
        took = time.monotonic() - begin
        self.end_transactions()
        offsets = self.world.feeder.ask("produce", topic=self.target, partitions=PARTITIONS,
                                        first=self.world.options.records, count=1)["offsets"]
        self.behind = {(self.target, *place) for place in offsets}
        committed, every = self.read_all("read_committed"), self.read_all("read_uncommitted")
        problems = problems_of(committed, self.world.options.records, self.kind == "streams")
        self.world.checks.check(
            not problems, f"{self.kind}: read_committed shows the input exactly once, in order",
            "\n".join(problems))
        strangers = sorted(set(meanwhile) - set(committed))
        self.world.checks.check(not strangers, f"{self.kind}: so it did meanwhile",
                                f"{len(strangers)} records, {strangers[:5]}")
        print(f"      {took:.0f} s, {len(every) - len(committed)} records were aborted, "
              f"{self.ended} workers ended by themselves", flush=True)


def problems_of(records, count, counted):
    """records: (topic, partition, offset, value); counted: behind each value is its number in its
    key, from 1 on."""
    problems, times, last, home = [], [0] * count, {}, {}
    for _topic, partition, offset, value in sorted(records):
        number, _colon, ordinal = value.partition(":")
        number = int(number)
        times[number] += 1
        key = number % KEYS
        if home.setdefault(key, partition) != partition:
            problems.append(f"key {key} in partitions {home[key]} and {partition}")
        if number <= last.get(key, -1):
            problems.append(f"key {key}: {number} behind {last[key]} at {partition}@{offset}")
        last[key] = number
        if counted and int(ordinal) != number // KEYS + 1:
            problems.append(f"{number} is counted as the {ordinal}th of its key")
    wrong = [(number, n) for number, n in enumerate(times) if n != 1]
    if wrong:
        problems.append(f"{len(wrong)} of {count} not exactly once: (value, times): {wrong[:10]}")
    return problems[:20]


class World:
    def __init__(self, options, broker, checks):
        self.options, self.broker, self.checks = options, broker, checks
        installer = install.Installer(REPOSITORY / "build/clients")
        program = str(installer.franz_go())
        installer.release()
        self.go = next(library for library in LIBRARIES if library.name == "franz-go")
        self.go.command = (program, self.go.program)
        log = open(broker.scratch / "feeder.log", "wb")
        self.feeder = groups.Feeder((program, "feeder"), broker.address, log)

    def run(self):
        try:
            for kind in self.options.only:
                Run(kind, self).run()
        finally:
            self.feeder.close()


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add_broker_arguments(parser)
    parser.add_argument("--records", type=int, default=12_000)
    parser.add_argument("--broker-kills", type=int, default=2)
    parser.add_argument("--worker-kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--only", type=lambda text: text.split(","), default=KINDS,
                        help=f"of {', '.join(KINDS)}")
    return parser.parse_args()


def main():
    options = parse_options()
    require("go", "java", "javac", "mvn", "kcat")
    print(f"--seed {options.seed}", flush=True)
    checks = Checks()
    with checks:
        streams_test.fetch()
        subprocess.run([HERE.parent / "kafka_tools/fetch.sh"], check=True)
        with broker_from(options, groups.SETTINGS) as broker:
            World(options, broker, checks).run()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
