"""Issue 4, "Must show" 3: a Kafka Streams word count and a Kafka Connect standalone worker.

The word count's numbers are compared with those that Python counts, while instances come, go and
are killed, and the broker is killed and started again. Connect carries a file's lines through a
topic into another file, which must come out the same.
"""
import argparse
import collections
import pathlib
import queue
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from broker import REPOSITORY, add_broker_arguments, broker_from, require  # noqa: E402
from checks import Checks  # noqa: E402

BUILT = REPOSITORY / "build/streams"
DEADLINE_S = 120
PARTITIONS = 4
LINES = 400
SETTINGS = ("kafka.group.initial.rebalance.delay.ms=0",)
WORDS = "the quick brown fox jumps over a lazy dog und ein schneller Fluß trägt 値 🌊 fort".split()
JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
        "-cp", f"{BUILT / 'classes'}:{BUILT / 'libs'}/*")


def fetch():
    """Jars and classes into build/streams; does nothing when both are up to date."""
    BUILT.mkdir(parents=True, exist_ok=True)
    for name, sources, work in (
            ("libs", [HERE / "pom.xml"],
             ["mvn", "-q", "-B", "-f", HERE / "pom.xml", "dependency:copy-dependencies",
              f"-DoutputDirectory={BUILT / 'libs'}", "-DincludeScope=runtime"]),
            ("classes", sorted(HERE.glob("*.java")),
             ["javac", "-Xlint:all,-classfile,-processing", "-Werror", "-d", BUILT / "classes",
              "-cp", f"{BUILT / 'libs'}/*", *sorted(HERE.glob("*.java"))])):
        done = BUILT / f"{name}.made-from"
        made_from = b"".join(file.read_bytes() for file in sources)
        if done.exists() and done.read_bytes() == made_from:
            continue
        shutil.rmtree(BUILT / name, ignore_errors=True)
        subprocess.run(work, check=True, stdin=subprocess.DEVNULL)
        done.write_bytes(made_from)


class Application:
    """One instance of the word count."""

    def __init__(self, broker, scratch, name):
        self.said = queue.Queue()
        self.log = open(scratch / f"{name}.log", "wb")
        arguments = [broker.address, "word-count", "text", "counts", scratch / f"state-{name}"]
        self.process = subprocess.Popen([*JAVA, "WordCount", *arguments], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.log.write(line)
            self.log.flush()
            self.said.put(line.decode().strip())
        self.said.put("ended")

    def expect(self, wanted):
        """Waits for a line that wanted() takes; returns it."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                line = self.said.get(timeout=max(0.01, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError("the word count does not say what is waited for") from None
            if wanted(line):
                return line
            if line == "ended" or line.startswith("error"):
                raise RuntimeError(f"the word count says: {line}")

    def running(self):
        self.expect(lambda line: line == "state RUNNING")

    def ask(self, command):
        """The number that it answers."""
        self.process.stdin.write(command.encode() + b"\n")
        self.process.stdin.flush()
        return int(self.expect(lambda line: line.startswith(command)).split()[1])

    def until(self, command, good):
        """Asks until the number is good; asked too often it would do nothing but answer."""
        deadline = time.monotonic() + DEADLINE_S
        while not good(number := self.ask(command)):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{command} stays {number}")
            time.sleep(0.1)

    def close(self):
        self.process.stdin.close()
        self.expect(lambda line: line == "closed")
        self.end()

    def end(self):
        self.process.kill()
        self.process.wait()


class WordCountTest:
    def __init__(self, broker, checks):
        self.broker, self.checks = broker, checks
        self.scratch = broker.scratch / "streams"
        self.scratch.mkdir()
        self.random = random.Random(4)
        self.expected = collections.Counter()
        self.applications = []

    def start(self, name):
        application = Application(self.broker, self.scratch, name)
        self.applications.append(application)
        return application

    def write(self):
        lines = [" ".join(self.random.choices(WORDS, k=8)) for _ in range(LINES)]
        self.expected.update(word for line in lines for word in line.split())
        subprocess.run(["kcat", "-P", "-b", self.broker.address, "-t", "text"], check=True,
                       input="\n".join(lines).encode(), timeout=DEADLINE_S)

    def counts_as(self, name):
        """Reads the counts from the first on, until the last of each word is what Python counts."""
        reader = subprocess.Popen(["kcat", "-C", "-u", "-q", "-b", self.broker.address,
                                   "-t", "counts", "-o", "beginning", "-f", "%k %s\n"],
                                  stdout=subprocess.PIPE)
        watchdog = threading.Timer(DEADLINE_S, reader.kill)
        watchdog.start()
        got = {}
        for line in reader.stdout:
            word, count = line.decode().split()
            got[word] = int(count)
            if got == self.expected:
                break
        watchdog.cancel()
        reader.kill()
        reader.wait()
        reader.stdout.close()
        wrong = {word: (got.get(word), count) for word, count in self.expected.items()
                 if got.get(word) != count}
        self.checks.check(not wrong, f"word count: {name}", f"(got, wanted): {wrong}")

    def run(self):
        try:
            self.story()
        finally:
            for application in self.applications:
                application.end()

    def story(self):
        first = self.start("first")
        first.running()
        self.write()
        self.counts_as("one instance counts exactly")
        second = self.start("second")
        second.until("tasks", lambda tasks: tasks > 0)
        self.write()
        self.counts_as("a second instance takes its share")
        self.broker.kill9()
        self.broker.start()
        self.write()
        self.counts_as("goes on after the broker's kill -9")
        second.close()
        first.until("tasks", lambda tasks: tasks == 2 * PARTITIONS)
        self.write()
        self.counts_as("a closed instance hands its state over")
        first.until("lag", lambda lag: lag == 0)
        first.end()
        third = self.start("third")
        third.until("tasks", lambda tasks: tasks == 2 * PARTITIONS)
        self.write()
        self.counts_as("after kill -9 of an instance its state comes back from the changelog")
        third.close()


class Connect:
    """A standalone worker with a file source and a file sink."""

    def __init__(self, broker, checks):
        self.broker, self.checks = broker, checks
        self.scratch = broker.scratch / "connect"
        self.scratch.mkdir()
        self.source, self.sink = self.scratch / "in.txt", self.scratch / "out.txt"
        self.log = open(self.scratch / "worker.log", "wb")
        self.process = None
        self.lines = 0
        string = "org.apache.kafka.connect.storage.StringConverter"
        self.properties("worker", {
            "bootstrap.servers": "",  # the broker may come back elsewhere
            "listeners": "http://127.0.0.1:0", "key.converter": string, "value.converter": string,
            "offset.storage.file.filename": self.scratch / "offsets",
            "offset.flush.interval.ms": 500, "plugin.discovery": "service_load"})
        self.properties("source", {
            "name": "file-source", "connector.class": "FileStreamSource", "tasks.max": 1,
            "file": self.source, "topic": "lines",
            "topic.creation.default.replication.factor": 1,
            "topic.creation.default.partitions": 1})
        self.properties("sink", {
            "name": "file-sink", "connector.class": "FileStreamSink", "tasks.max": 1,
            "file": self.sink, "topics": "lines",
            "consumer.override.metadata.max.age.ms": 1000})

    def properties(self, name, entries):
        lines = (f"{key}={value}\n" for key, value in entries.items())
        (self.scratch / f"{name}.properties").write_text("".join(lines))

    def append(self, count):
        with open(self.source, "a") as file:
            for number in range(self.lines, self.lines + count):
                file.write(f"line {number} {'x' * (number % 50)}\n")
        self.lines += count

    def start(self):
        worker = self.scratch / "worker.properties"
        text = worker.read_text().splitlines(keepends=True)
        worker.write_text("".join([f"bootstrap.servers={self.broker.address}\n", *text[1:]]))
        names = [self.scratch / f"{name}.properties" for name in ("worker", "source", "sink")]
        self.process = subprocess.Popen(
            [*JAVA, "org.apache.kafka.connect.cli.ConnectStandalone", *names],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)

    def arrives(self, name):
        """The sink file comes to hold the source file's lines, no more."""
        deadline = time.monotonic() + DEADLINE_S
        wanted, got = self.source.read_bytes(), b""
        while len(got) < len(wanted) and time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
            got = self.sink.read_bytes() if self.sink.exists() else b""
        ended = self.process.poll()
        tail = (self.scratch / "worker.log").read_text(errors="replace")[-3000:]
        self.checks.check(got == wanted, f"connect: {name}",
                          f"{len(got.splitlines())} lines of {len(wanted.splitlines())}, "
                          f"worker's exit code {ended}\n{tail}")

    def stop(self, name):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(DEADLINE_S)
        self.checks.check(code in (0, 143), f"connect: {name}", f"exit code {code}")

    def run(self):
        try:
            self.append(200)
            self.start()
            self.arrives("a file's lines go through a topic into a file")
            self.append(200)
            self.arrives("later lines follow")
            self.broker.kill9()
            self.broker.start()
            self.append(200)
            self.arrives("the worker goes on after the broker's kill -9, no line lost or doubled")
            self.stop("the worker stops")
            self.append(200)
            self.start()
            self.arrives("a new worker goes on where the last one stopped")
            self.stop("the new worker stops")
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_broker_arguments(parser)
    arguments = parser.parse_args()
    require("java", "javac", "mvn", "kcat")
    checks = Checks()
    with checks:
        fetch()
        with broker_from(arguments, SETTINGS) as broker:
            WordCountTest(broker, checks).run()
            Connect(broker, checks).run()
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
