"""Consumer groups of every client library: members come and go, commits, the broker's kill -9.

matrix.py runs this with a broker of its own, because the broker is killed and started again twice.
README.md tells the story that each group goes through. Waiting is for events of the members, never
for time: a deadline only ends what hangs.
"""

import collections
import concurrent.futures
import dataclasses
import json
import os
import pathlib
import subprocess
import threading
import time

import install

HERE = pathlib.Path(__file__).resolve().parent
PARTITIONS = 6
EVERY_PARTITION = frozenset(range(PARTITIONS))
BATCH = 5  # records to each partition at a time
SESSION_MS = 8_000
EVENT_DEADLINE_S = 90
AT_ONCE = 4
SETTINGS = ("kafka.group.initial.rebalance.delay.ms=0", "kafka.group.min.session.timeout.ms=1000")


@dataclasses.dataclass
class Library:
    name: str
    installer: str
    program: str
    assignors: tuple
    command: tuple = ()
    environment: dict = dataclasses.field(default_factory=dict)


EAGER = ("range", "roundrobin", "sticky")
LIBRARIES = [
    Library("java", "java", "GroupMember", (*EAGER, "cooperative-sticky")),
    Library("franz-go", "franz_go", "member", (*EAGER, "cooperative-sticky")),
    Library(
        "confluent-kafka",
        "python",
        "confluent_member.py",
        ("range", "roundrobin", "cooperative-sticky"),
    ),
    Library("kafka-python", "python", "kafka_python_member.py", (*EAGER, "cooperative-sticky")),
    Library("aiokafka", "python", "aiokafka_member.py", EAGER),
    Library(
        "kafka-javascript",
        "kafka_javascript",
        "confluent_member.js",
        ("range", "cooperative-sticky"),
    ),
    Library("kafkajs", "javascript", "kafkajs_member.js", ("RoundRobinAssigner",)),
]
# Members of two or three libraries in turn. What an assignor's members tell each other has one form
# only for these: kafkajs has an assignor of its own.
MIXED = [
    (("franz-go", "java"), "range"),
    (("kafka-python", "java"), "roundrobin"),
    (("confluent-kafka", "aiokafka"), "range"),
    (("java", "confluent-kafka", "franz-go"), "cooperative-sticky"),
]


class StepFailed(Exception):
    """The story cannot go on; the text says what was waited for."""


def prepare(libraries, build, results):
    """Installs; returns the libraries that can run, by name, and the feeder's command."""
    installer = install.Installer(build)
    usable, feeder = {}, None
    for library in libraries:
        try:
            made = getattr(installer, library.installer)()
            feeder = feeder or (str(installer.franz_go()), "feeder")
        except install.Missing as missing:
            results.absent(f"groups of {library.name}", missing)
            continue
        if library.installer == "franz_go":
            library.command = (str(made), library.program)
        elif library.installer == "java":
            java, class_path = made
            small = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
            library.command = (java, *small, "-cp", class_path, library.program)
        elif library.installer == "python":
            library.command = (str(made), str(HERE / "python" / library.program))
            library.environment = {"PYTHONDONTWRITEBYTECODE": "1"}
        else:
            node, modules = made
            library.command = (node, str(HERE / "js" / library.program))
            library.environment = {"NODE_PATH": str(modules)}
        usable[library.name] = library
    installer.release()
    return usable, feeder


class Feeder:
    """The one process that makes topics, writes records and asks for groups."""

    def __init__(self, command, broker, log):
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [*command, broker],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )

    def ask(self, do, **fields):
        with self.lock:
            if self.process.poll() is not None:
                raise StepFailed(f"the feeder has ended with {self.process.returncode}")
            self.process.stdin.write(json.dumps({"do": do, **fields}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            answer = json.loads(line) if line else {"error": f"ended with {self.process.wait()}"}
        if "error" in answer:
            raise StepFailed(f"feeder: {do}: {answer['error']}")
        return answer

    def close(self):
        self.process.kill()
        self.process.communicate()


class Member:
    """One member's process. Its fields are read and written under the group's condition."""

    def __init__(self, group, library, name, broker):
        self.group, self.name = group, f"{name} ({library.name})"
        self.client_id = f"{group.name}-{name}"
        self.owned = frozenset()
        self.assignments = 0
        self.commits = []
        self.reads = collections.Counter()
        self.next = {}  # the offsets that it would commit
        self.trouble = None  # its last complaint
        self.closed = False
        arguments = [broker, group.name, group.topic, group.assignor, str(SESSION_MS)]
        with open(group.log_dir / f"{self.client_id}.stderr", "wb") as log:
            self.process = subprocess.Popen(
                [*library.command, *arguments, self.client_id],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, **library.environment},
            )
        self.reader = threading.Thread(target=self.read_events, daemon=True)
        self.reader.start()

    def read_events(self):
        with open(self.group.log_dir / f"{self.client_id}.events", "wb") as log:
            for line in self.process.stdout:
                log.write(f"{time.time():.3f} ".encode() + line)
                log.flush()
                with self.group.changed:
                    self.take(line)
                    self.group.changed.notify_all()
        with self.group.changed:
            self.closed = self.closed or "ended"
            self.group.changed.notify_all()

    def take(self, line):
        try:
            event = json.loads(line)
        except ValueError:
            self.trouble = f"not JSON: {line[:80]!r}"
            return
        kind = event["event"]
        if kind in ("assigned", "revoked"):
            self.owned = frozenset(event["partitions"])
            self.assignments += kind == "assigned"
            if kind == "assigned":
                self.next = {p: offset for p, offset in self.next.items() if p in self.owned}
        elif kind == "record":
            place = event["partition"], event["offset"]
            self.reads[place] += 1
            if place[0] in self.owned:
                self.next[place[0]] = place[1] + 1
            if event["value"] != str(event["offset"]):
                self.trouble = f"record {place} has the value {event['value']}"
        elif kind == "committed":
            self.commits.append({int(p): o for p, o in event["offsets"].items()})
        elif kind == "closed":
            self.closed = True
        else:
            self.trouble = event["error"]

    def tell(self, command):
        try:
            self.process.stdin.write(command.encode() + b"\n")
            self.process.stdin.flush()
        except OSError as error:
            raise StepFailed(f"{self.name} is gone: {error}") from error

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.reader.join()

    def state(self):
        return f"{self.name} owns {sorted(self.owned)}" + (
            f", {self.trouble}" if self.trouble else ""
        )


class Group:
    """One group's story, in three chapters; between them the broker is killed and started again."""

    def __init__(self, name, libraries, assignor, world):
        self.name, self.libraries, self.assignor = name, libraries, assignor
        self.topic = f"{name}.topic"
        self.world, self.log_dir = world, world.log_dir
        self.changed = threading.Condition()
        self.members = {}
        self.written = 0  # records in each partition
        self.failed = None

    # What the story is told in.

    def join(self, name):
        library = self.libraries[len(self.members) % len(self.libraries)]
        self.members[name] = Member(self, library, name, self.world.broker.address)
        return self.members[name]

    def wait(self, what, condition):
        """Waits until condition() holds; the members' events wake it."""
        deadline = time.monotonic() + EVENT_DEADLINE_S
        with self.changed:
            while not condition():
                ended = [m.name for m in self.living() if m.closed == "ended"]
                left = deadline - time.monotonic()
                if ended or left <= 0:
                    why = f"{ended} ended" if ended else f"not in {EVENT_DEADLINE_S} s"
                    states = "; ".join(member.state() for member in self.living())
                    raise StepFailed(f"{what}: {why}: {states}")
                self.changed.wait(left)

    def living(self):
        every = self.members.values()
        return [m for m in every if m.closed is not True and m.process.returncode is None]

    def settle(self, what):
        """Waits until the living members share all partitions evenly."""

        def shared():
            owned = [member.owned for member in self.living()]
            sizes = [len(one) for one in owned]
            return (
                frozenset().union(*owned) == EVERY_PARTITION
                and sum(sizes) == PARTITIONS
                and max(sizes) - min(sizes) <= 1
            )

        self.wait(what, shared)

    def write(self):
        """Writes a batch to each partition; returns its places."""
        first = self.written
        self.world.feeder.ask(
            "produce", topic=self.topic, partitions=PARTITIONS, first=first, count=BATCH
        )
        self.written += BATCH
        return [(p, o) for p in EVERY_PARTITION for o in range(first, self.written)]

    def read(self, what):
        """Waits until each member has read its partitions to their ends."""
        self.wait(
            f"{what}: all is read",
            lambda: all(
                m.next.get(partition) == self.written for m in self.living() for partition in m.owned
            ),
        )

    def times_read(self, places):
        return collections.Counter(
            sum(member.reads[place] for member in self.members.values()) for place in places
        )

    def commit(self, what):
        """All living members commit; again where a rebalance came between."""
        for member in self.living():
            deadline = time.monotonic() + EVENT_DEADLINE_S
            done = len(member.commits)
            while len(member.commits) == done:
                with self.changed:
                    member.trouble = None
                member.tell("commit")
                self.wait(
                    f"{what}: {member.name} commits",
                    lambda m=member, n=done: len(m.commits) > n or m.trouble,
                )
                if len(member.commits) == done and time.monotonic() > deadline:
                    raise StepFailed(f"{what}: {member.state()}")
                if len(member.commits) == done:
                    time.sleep(0.2)  # it was refused: no event says when to try again

    def check(self, good, name, detail=""):
        self.world.check(self, name, None if good else detail or "not so")

    def check_once(self, name, places):
        times = self.times_read(places)
        self.check(set(times) == {1}, name, f"times read: records {dict(times)}")

    def check_stored(self, name):
        """What the broker has is what was read."""
        answer = self.world.feeder.ask("offsets", group=self.name, topic=self.topic)
        wanted = {str(partition): self.written for partition in EVERY_PARTITION}
        self.check(answer["offsets"] == wanted, name, f"wanted {wanted}, got {answer['offsets']}")

    def check_described(self, name):
        answer = self.world.feeder.ask("describe", group=self.name)
        wanted = {m.client_id: sorted(m.owned) for m in self.living()}
        good = answer["state"] == "Stable" and answer["members"] == wanted
        good = good and answer["assignor"] == self.assignor
        self.check(good, name, f"wanted {wanted}, got {answer}")

    # The story. README.md tells it too.

    def members_come_and_go(self):
        self.world.feeder.ask("create", topic=self.topic, partitions=PARTITIONS)
        first = self.write()
        self.join("a")
        self.settle("a joins")
        self.read("a alone")
        self.commit("a alone")
        self.join("b")
        self.settle("b joins")
        second = self.write()
        self.read("two members")
        self.commit("two members")
        c = self.join("c")
        self.settle("c joins")
        third = self.write()
        self.read("three members")
        self.commit("three members")
        self.check_described("three members share the partitions, as DescribeGroups says")
        self.members["b"].tell("close")
        self.wait("b leaves", lambda: self.members["b"].closed is True)
        self.settle("b left")
        fourth = self.write()
        self.read("b left")
        self.commit("b left")
        self.check(c.closed is False, "a member that leaves hands its partitions over")
        self.check_once("each record once while members come and go", first + second + third + fourth)
        self.check_stored("the committed offsets are those of what was read")
        self.assignments = [m.assignments for m in self.living()]

    def members_outlive_the_broker(self):
        """The broker was killed and is back; a and c have been there all the time."""
        self.check_stored("committed offsets survive kill -9")
        fifth = self.write()
        self.settle("after kill -9")
        self.read("after kill -9")
        self.commit("after kill -9")
        rebalanced = self.assignments != [m.assignments for m in self.living()]
        self.world.rebalanced_by_restart[self.name] = rebalanced
        times = self.times_read(fifth)
        self.check(
            set(times) <= ({1, 2} if rebalanced else {1}),
            "members go on after kill -9, each record once",
            f"rebalanced: {rebalanced}, times read: records {dict(times)}",
        )
        sixth = self.write()
        self.read("before c vanishes")
        vanished = self.members["c"].owned
        self.members["c"].kill()
        self.settle("c vanished")
        self.read("c vanished")
        again = self.times_read([place for place in sixth if place[0] in vanished])
        self.check(
            set(again) == {2},
            "what a vanished member had not committed is read again, once",
            f"times read: records {dict(again)}",
        )
        self.commit("c vanished")
        self.seventh = self.write()
        self.read("before the end of a")

    def newcomer_resumes(self):
        """Broker and a were killed, a with a batch uncommitted; the broker is back."""
        d = self.join("d")
        self.settle("d joins")
        self.read("d after kill -9")
        eighth = self.write()
        self.read("d reads on")
        wanted = collections.Counter(self.seventh + eighth)
        self.check(
            d.reads == wanted,
            "a newcomer resumes exactly at the committed offsets",
            f"missing {sorted(wanted - d.reads)[:5]}, too many {sorted(d.reads - wanted)[:5]}",
        )
        self.commit("d reads on")
        self.check_stored("the newcomer commits")
        d.tell("close")
        self.wait("d leaves", lambda: d.closed is True)

    def end(self):
        for member in self.members.values():
            if member.process.poll() is None:
                member.process.kill()
            member.process.wait()
            member.process.stdin.close()


class World:
    """The broker, the feeder and all groups, which go through each chapter together."""

    def __init__(self, broker, feeder_command, results, log_dir):
        self.broker, self.results, self.log_dir = broker, results, log_dir
        self.lock = threading.Lock()
        self.rebalanced_by_restart = {}
        with open(log_dir / "feeder.stderr", "wb") as log:
            self.feeder = Feeder(feeder_command, broker.address, log)

    def check(self, group, name, problem):
        with self.lock:
            self.results.check(group.name, "group", "+", problem and f"{name}: {problem}")

    def chapter(self, groups, story):
        """Runs it for all groups that have come so far."""

        def one(group):
            try:
                story(group)
            except StepFailed as failure:
                group.failed = failure
                self.check(group, "the story breaks off", str(failure))

        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(one, [group for group in groups if not group.failed]))
        print(f"{story.__name__.replace('_', ' ')}: {time.monotonic() - begin:.0f} s", flush=True)

    def run(self, groups):
        try:
            self.chapter(groups, Group.members_come_and_go)
            self.broker.kill9()
            self.broker.start()
            self.chapter(groups, Group.members_outlive_the_broker)
            self.broker.kill9()
            for group in groups:
                for member in group.living():
                    member.kill()
            self.broker.start()
            self.chapter(groups, Group.newcomer_resumes)
        finally:
            for group in groups:
                group.end()
            self.feeder.close()


def run(broker, names, build, results):
    """broker: one that can be killed and started again; names: the libraries, None for all."""
    wanted = [library for library in LIBRARIES if names is None or library.name in names]
    usable, feeder = prepare(wanted, build, results)
    if not usable:
        return
    log_dir = build / "group-logs"
    log_dir.mkdir(exist_ok=True)
    for old in log_dir.iterdir():
        old.unlink()
    world = World(broker, feeder, results, log_dir)
    groups = [
        Group(f"{library.name}-{assignor}", [library], assignor, world)
        for library in usable.values()
        for assignor in library.assignors
    ]
    groups += [
        Group("-and-".join(members) + f"-{assignor}", [usable[m] for m in members], assignor, world)
        for members, assignor in MIXED
        if all(member in usable for member in members)
    ]
    begin = time.monotonic()
    world.run(groups)
    rows = [group.name for group in groups]
    results.table("groups (+: a check passed, !: failed)", rows, ["group"])
    rebalanced = sorted(name for name, yes in world.rebalanced_by_restart.items() if yes)
    print(f"\nrebalanced after the broker's restart: {', '.join(rebalanced) or 'none'}")
    print(f"ran in {time.monotonic() - begin:.0f} s; what the members said: {log_dir}")
