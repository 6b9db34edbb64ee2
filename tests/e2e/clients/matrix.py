#!/usr/bin/env python3
"""Runs every client library against BROKER: what it writes, what each other reads of it, admin.

BROKER is HOST:PORT, or a path to kanald, or comes by --kafka: then brokers are started here, and the
consumer groups and transactions run too (groups.py, transactions.py), which kill theirs.
"""

import argparse
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import socket
import subprocess
import sys
import time

import groups
import install
import records
import transactions

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "lib"))
from broker import BrokerFailed, broker_from  # noqa: E402

PROCESS_TIMEOUT_S = 90
RUN_TIMEOUT_S = 480  # of all together; what is left then fails unrun
CONNECT_TIMEOUT_S = 10
AT_ONCE = 2
IDEMPOTENT_CODEC = "lz4"
PARTS = ("matrix", "groups", "transactions")
LETTERS = {"none": "n", "gzip": "g", "snappy": "s", "lz4": "l", "zstd": "z", "idempotent": "i"}


@dataclasses.dataclass
class Library:
    name: str
    installer: str
    program: str
    reads: bool = True
    writes_null_pair: bool = True
    writes_null_header: bool = True
    reads_null_header: bool = True
    describes_configs: bool = True
    command: tuple = ()
    environment: dict = dataclasses.field(default_factory=dict)

    def writable(self, kind):
        every = records.idempotent_records() if kind == "idempotent" else records.plain_records()
        return [one for one in every if records.can_write(self, one)]


# The flags are the libraries' own limits, found against Apache Kafka; README.md lists them.
LIBRARIES = [
    Library("franz-go", "franz_go", ""),
    Library("confluent-kafka", "python", "confluent_client.py"),
    Library(
        "kafka-python",
        "python",
        "kafka_python_client.py",
        writes_null_pair=False,
        writes_null_header=False,
    ),
    Library("aiokafka", "python", "aiokafka_client.py", writes_null_pair=False),
    Library(
        "kafka-javascript",
        "kafka_javascript",
        "confluent.js",
        writes_null_header=False,
        reads_null_header=False,
        describes_configs=False,
    ),
    Library("kafkajs", "javascript", "kafkajs.js", reads=False, writes_null_header=False),
]

ADMIN_STEPS = [
    {"step": "create", "code": 0},
    {"step": "create again", "code": 36},
    {"step": "describe", "partitions": [0, 1], "replicas": [1, 1]},
    {"step": "config", "value": "3600000"},
    {"step": "grow", "code": 0},
    {"step": "describe grown", "partitions": [0, 1, 2, 3, 4]},
    {"step": "shrink", "code": 37},
    {"step": "delete", "code": 0},
    {"step": "gone", "gone": True},
    {"step": "delete again", "code": 3},
]


class Results:
    def __init__(self):
        self.passed, self.failed, self.skipped = 0, 0, 0
        self.cells = {}

    def check(self, row, column, letter, problem):
        """One check; problem is None if it passed."""
        if problem is None:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAIL {row} {column}: {problem}", flush=True)
        self.cells.setdefault((row, column), []).append(letter if problem is None else "!")

    def absent(self, name, reason):
        if os.environ.get("CI") == "true":
            self.failed += 1
            print(f"FAIL {name}: {reason}", flush=True)
        else:
            self.skipped += 1
            print(f"SKIP {name}: {reason}", flush=True)

    def table(self, title, rows, columns):
        width = max(len(name) for name in rows + columns)
        print(f"\n{title}")
        print(" " * width, *(f"{column:>{width}}" for column in columns))
        for row in rows:
            cells = ["".join(self.cells.get((row, column), "-")) for column in columns]
            print(f"{row:<{width}}", *(f"{cell:>{width}}" for cell in cells))

    def finish(self):
        tail = f", {self.skipped} skipped" if self.skipped else ""
        print(f"\n{self.passed} passed, {self.failed} failed{tail}")
        return 1 if self.failed or not (self.passed or self.skipped) else 0


def prepare(libraries, build, results):
    """Installs; returns the libraries that can run."""
    installer = install.Installer(build)
    usable = []
    for library in libraries:
        try:
            made = getattr(installer, library.installer)()
        except install.Missing as missing:
            results.absent(library.name, missing)
            continue
        if library.installer == "franz_go":
            library.command = (str(made),)
        elif library.installer == "python":
            library.command = (str(made), str(HERE / "python" / library.program))
            library.environment = {"PYTHONDONTWRITEBYTECODE": "1"}
        else:
            node, modules = made
            library.command = (node, str(HERE / "js" / library.program))
            library.environment = {"NODE_PATH": str(modules)}
        usable.append(library)
    installer.release()
    return usable


def invoke(library, log_dir, arguments, deadline, text=""):
    """Returns the JSON lines and a word on how the process ended (None: well)."""
    limit = min(PROCESS_TIMEOUT_S, deadline - time.monotonic())
    if limit <= 0:
        return [], f"not run, the {RUN_TIMEOUT_S} s are over"
    command = [*library.command, *arguments]
    environment = {**os.environ, **library.environment}
    with subprocess.Popen(
        command,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            out, errors = process.communicate(text.encode(), limit)
            ended = None if process.returncode == 0 else f"exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate()
            ended = f"no end after {limit:.0f} s"
    if errors:
        log = log_dir / f"{library.name}-{arguments[0]}.stderr"
        with open(log, "ab") as file:
            file.write(f"+ {' '.join(command)}\n".encode() + errors)
    lines = []
    for line in out.decode(errors="replace").splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            ended = ended or f"not JSON: {line[:80]}"
    return lines, ended


class Matrix:
    def __init__(self, broker, libraries, results, log_dir):
        self.broker, self.libraries, self.results, self.log_dir = (
            broker,
            libraries,
            results,
            log_dir,
        )
        self.deadline = time.monotonic() + RUN_TIMEOUT_S
        self.prefix = f"matrix-{os.getpid()}-{int(time.time())}"

    def topic(self, writer, kind):
        return f"{self.prefix}-{writer.name}-{kind}"

    def invoke(self, library, arguments, text=""):
        return invoke(library, self.log_dir, arguments, self.deadline, text)

    def in_parallel(self, jobs):
        """jobs: functions that return a list of arguments for Results.check."""
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            for checks in pool.map(lambda job: job(), jobs):
                for check in checks:
                    self.results.check(*check)

    def run(self):
        readers = [library for library in self.libraries if library.reads]
        self.in_parallel([lambda a=a: self.admin(a) for a in self.libraries])
        self.in_parallel(
            [
                lambda w=w, kind=kind: self.produce(w, kind)
                for w in self.libraries
                for kind in ("plain", "idempotent")
            ]
        )
        self.in_parallel(
            [lambda r=r, w=w: self.consume(r, w) for w in self.libraries for r in readers]
        )
        self.in_parallel(
            [
                lambda r=r, w=w: self.offsets(r, w)
                for r in self.libraries
                for w in self.libraries
                if w is r or w.name in ("franz-go", "kafkajs")
            ]
        )
        names = [library.name for library in self.libraries]
        self.results.table(
            "admin steps, writes, and offsets listed (n g s l z: codecs, "
            "i: idempotent, !: failed)",
            names,
            ["admin", "writes", "offsets"],
        )
        self.results.table("reader (row) of writer (column)", [r.name for r in readers], names)

    def admin(self, library):
        topic = f"{self.prefix}-{library.name}-admin"
        lines, ended = self.invoke(library, ["admin", self.broker, topic])
        answers = {line["step"]: line for line in lines if "step" in line}
        for wanted in ADMIN_STEPS:
            if wanted["step"] == "config" and not library.describes_configs:
                continue
            got = answers.get(wanted["step"])
            problem = (
                f"{wanted['step']}: wanted {wanted}, got {got or error_in(lines, topic) or ended}"
            )
            yield library.name, "admin", "+", None if got == wanted else problem

    def produce(self, writer, kind):
        kinds = records.CODECS if kind == "plain" else ("idempotent",)
        topics = {self.topic(writer, k): k for k in kinds}
        arguments = ["produce", self.broker, kind]
        arguments += [
            f"{t}={IDEMPOTENT_CODEC if k == 'idempotent' else k}" for t, k in topics.items()
        ]
        text = "\n".join(json.dumps(one) for one in writer.writable(kind))
        lines, ended = self.invoke(writer, arguments, text)
        for topic, k in topics.items():
            yield writer.name, "writes", LETTERS[k], failure(lines, topic, ended)

    def consume(self, reader, writer):
        kinds = {self.topic(writer, k): k for k in (*records.CODECS, "idempotent")}
        lines, ended = self.invoke(reader, ["consume", self.broker, *kinds])
        for topic, kind in kinds.items():
            problem = failure(lines, topic, ended)
            if problem is None:
                problem = difference(reader, topic, writer.writable(kind), lines)
            yield reader.name, writer.name, LETTERS[kind], problem and f"{kind}: {problem}"

    def offsets(self, reader, writer):
        topic = self.topic(writer, "gzip")
        lines, ended = self.invoke(
            reader, ["offsets", self.broker, topic, str(records.PROBE_TIMESTAMP)]
        )
        problem = failure(lines, topic, ended)
        if problem is None:
            wanted = records.expected_offsets(writer.writable("plain"))
            if not reader.reads:
                wanted = [
                    {k: v for k, v in line.items() if not k.startswith("last")} for line in wanted
                ]
            got = [line for line in lines if "earliest" in line]
            got.sort(key=lambda line: line["partition"])
            problem = None if got == wanted else f"of {writer.name}: wanted {wanted}, got {got}"
        yield reader.name, "offsets", "+", shorten(problem)


def error_in(lines, topic):
    return next(
        (line["error"] for line in lines if line.get("topic") == topic and "error" in line), None
    )


def failure(lines, topic, ended):
    if any(line.get("topic") == topic and line.get("done") for line in lines):
        return None
    return shorten(error_in(lines, topic) or ended or "no answer")


def difference(reader, topic, written, lines):
    def order(one):
        return one["partition"], one["offset"]

    wanted = sorted(
        records.stored(topic, [records.as_read(reader, one) for one in written]), key=order
    )
    arrived = [line for line in lines if line.get("topic") == topic and "offset" in line]
    for partition in range(records.PARTITIONS):
        offsets = [line["offset"] for line in arrived if line["partition"] == partition]
        if offsets != sorted(offsets):
            return f"partition {partition} out of order"
    for expected, got in zip(wanted, sorted(arrived, key=order)):
        if expected != got:
            fields = [name for name in expected if expected[name] != got.get(name)]
            where = f"partition {expected['partition']} offset {expected['offset']}"
            return f"{where}: " + "; ".join(
                f"{name}: wanted {shorten(json.dumps(expected[name]), 200)}, "
                f"got {shorten(json.dumps(got.get(name)), 200)}"
                for name in fields
            )
    return None if len(wanted) == len(arrived) else f"{len(arrived)} records of {len(wanted)}"


def shorten(text, limit=800):
    return text if text is None or len(text) <= limit else text[:limit] + "…"


def answers(broker):
    host, port = broker.rsplit(":", 1)
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while time.monotonic() < deadline:
        try:
            socket.create_connection((host, int(port)), 1).close()
            return True
        except OSError:
            time.sleep(0.2)
    return False


def run_matrix(broker, wanted, build, results):
    start = time.monotonic()
    usable = prepare(wanted, build, results)
    print(f"installed in {time.monotonic() - start:.0f} s: {', '.join(u.name for u in usable)}")
    if not usable:
        return
    if not answers(broker):
        results.check("broker", broker, "+", "nothing listens there")
        return
    start = time.monotonic()
    log_dir = build / "logs"
    log_dir.mkdir(exist_ok=True)
    for old in log_dir.iterdir():
        old.unlink()
    Matrix(broker, usable, results, log_dir).run()
    print(f"\nran in {time.monotonic() - start:.0f} s; what the clients said: {log_dir}")


def with_own_broker(options, settings, results, work):
    """work(broker), on a broker that is started here and may be killed."""
    try:
        with broker_from(options, settings) as broker:
            work(broker)
    except BrokerFailed as failure:
        results.check("broker", "of its own", "+", str(failure))


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("broker", nargs="?", help="HOST:PORT, or the kanald to start")
    parser.add_argument("--kafka", metavar="HOME", help="start a real Apache Kafka instead")
    parser.add_argument("--keep", action="store_true", help="leave the brokers' directories behind")
    parser.add_argument("--part", choices=PARTS, help="run only this part")
    parser.add_argument("--only", help="library names, comma separated")
    parser.add_argument(
        "--build-dir", type=pathlib.Path, default=HERE.parents[2] / "build" / "clients"
    )
    parser.add_argument("--install-only", action="store_true")
    options = parser.parse_args()
    if not (options.broker or options.kafka or options.install_only):
        parser.error("which broker?")
    options.foreign = bool(options.broker and ":" in options.broker)
    if options.foreign and options.part in ("groups", "transactions"):
        parser.error(f"{options.part} kill their broker: name a kanald, or --kafka HOME")
    options.kanald = options.broker
    options.names = options.only.split(",") if options.only else None
    known = {library.name for library in LIBRARIES + groups.LIBRARIES}
    if not known.issuperset(options.names or ()):
        parser.error(f"the libraries are {', '.join(sorted(known))}")
    return options


def main():
    options, results = parse_options(), Results()
    names, build = options.names, options.build_dir.resolve()
    wanted = [library for library in LIBRARIES if names is None or library.name in names]
    if options.install_only:
        prepare(wanted, build, results)
        groups.prepare(groups.LIBRARIES, build, results)
        return 1 if results.failed else 0
    if options.foreign:
        run_matrix(options.broker, wanted, build, results)
        return results.finish()
    parts = (options.part,) if options.part else PARTS
    if "matrix" in parts and wanted:
        with_own_broker(
            options, (), results, lambda own: run_matrix(own.address, wanted, build, results)
        )
    for name, part in (("groups", groups), ("transactions", transactions)):
        if name in parts:
            with_own_broker(
                options,
                groups.SETTINGS,
                results,
                lambda own, part=part: part.run(own, names, build, results),
            )
    return results.finish()


if __name__ == "__main__":
    sys.exit(main())
