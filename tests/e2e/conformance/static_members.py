#!/usr/bin/env python3
"""Who is let in: member id x instance id x generation, for each request that names a member.

    static_members.py [KANALD] [-v]            start it, compare; every row must be the same
    static_members.py --broker HOST:PORT       the same against a running one
    static_members.py --record HOST:PORT       write the answers of a fresh Apache Kafka as the facts

Facts: tests/golden/groups/static_members.tsv, recorded from Apache Kafka 4.4. Each row plays on a
group of its own that has one static member, in each of the four states. Python 3.11, standard
library only.
"""
import argparse
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]
sys.dont_write_bytecode = True
import broker as brokers  # noqa: E402
import members  # noqa: E402
import wire  # noqa: E402
import world as worlds  # noqa: E402

GOLDEN = HERE.parents[1] / "golden/groups/static_members.tsv"
SETTINGS = ["group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=100"]
COLUMNS = ("state", "request", "member", "instance", "generation", "answer", "then")
TITLE = """\
# What Apache Kafka 4.4 answers to a request that names a member of a group with one static member
# (instance "i1"), and what the group is then. state: where the group was; Empty: the member has left.
# PreparingRebalance: somebody else is joining. member, instance: what the request says, "known" being
# the static member's own; generation: the group's, one less, one more, -1.
"""
STATES = ("Stable", "CompletingRebalance", "PreparingRebalance", "Empty")
WITHOUT_GENERATION = {"JoinGroup v5": 5, "JoinGroup v9": 9, "LeaveGroup v5": 5}
WITH_GENERATION = {"SyncGroup v5": 5, "Heartbeat v4": 4, "OffsetCommit v9": 9}
MEMBER = ("known", "unknown", "empty")
INSTANCE = ("none", "known", "unknown")
PARKED_S = 10  # how long the group may take to show a join that is not answered
GENERATION = {"right": 0, "old": -1, "future": 1, "-1": None}


def rows():
    """The first five columns of the table."""
    for state in STATES:
        for request in WITHOUT_GENERATION:
            yield from ((state, request, member, instance, "")
                        for member in MEMBER for instance in INSTANCE)
        for request in WITH_GENERATION:
            yield from ((state, request, member, instance, generation)
                        for member in MEMBER for instance in INSTANCE for generation in GENERATION)


class Case:
    """A fresh group in a state, and one request to it."""

    def __init__(self, world, number, topic):
        self.world = world
        self.topic = topic
        self.group = f"static {number}"
        self.other = None

    def prepare(self, state):
        self.member = members.Member(self.world, self.group, instance="i1")
        self.member.join()
        if state == "CompletingRebalance":
            return
        self.member.sync(**{self.member.id: b"all"})
        if state == "PreparingRebalance":
            self.other = members.Member(self.world, self.group).get_id()
            self.other.start_join()
            members.wait_for_state(self.world, self.group, state)
        if state == "Empty":
            self.member.ask("LeaveGroup", members.leave(self.group, ("", "i1")))

    def body(self, request, member, instance, generation):
        who = {"known": self.member.id, "unknown": "nobody", "empty": ""}[member]
        what = {"none": None, "known": "i1", "unknown": "i9"}[instance]
        step = GENERATION.get(generation)
        at = -1 if step is None else self.member.generation + step
        return {
            "JoinGroup": lambda: members.join(self.group, who, instance=what),
            "LeaveGroup": lambda: members.leave(self.group, (who, what)),
            "SyncGroup": lambda: members.sync(self.group, at, who, [(who, b"new")], instance=what),
            "Heartbeat": lambda: members.heartbeat(self.group, at, who, what),
            "OffsetCommit": lambda: members.commit(self.group, {self.topic: {0: 5}}, generation=at,
                                                   member=who, instance=what),
        }[request.split()[0]]()

    def play(self, row, may_park, wanted):
        """The last two columns; `wanted` is what the second will be in the end, where that is known."""
        state, request, *how = row
        self.prepare(state)
        api, version = request.split()[0], int(request.split()[1][1:])
        connection = self.world.connect()
        connection.send(api, version, self.body(request, *how))
        if may_park and members.is_parked(connection, may_park):
            answer = "parked"
        else:
            octets = connection.read_frame(members.DEADLINE_S)
            answer = self.tell(api, wire.read_answer(api, version, octets))
        then = self.tell_group()
        deadline = time.monotonic() + PARKED_S
        while answer == "parked" and wanted not in (None, then) and time.monotonic() < deadline:
            then = self.tell_group()
        return answer, then

    def tell(self, api, answer):
        """An answer in words that do not depend on the run."""
        codes = {code: name for code, name in wire.ERRORS.items()}
        if api == "OffsetCommit":
            return codes[answer["Topics"][0]["Partitions"][0]["ErrorCode"]]
        words = [codes[answer["ErrorCode"]]]
        if api == "LeaveGroup":
            words += [f"{codes[each['ErrorCode']]} for {self.tell_member(each['MemberId'])} "
                      f"{each['GroupInstanceId']}" for each in answer["Members"]]
        if api == "SyncGroup" and answer["ErrorCode"] == 0:
            words.append(answer["Assignment"].decode())
        if api == "JoinGroup":
            words.append(f"id {self.tell_member(answer['MemberId'])}")
            words.append(f"generation {self.tell_generation(answer['GenerationId'])}")
            words.append(f"leader {self.tell_member(answer['Leader'])}")
            words.append(f"{len(answer['Members'])} members")
            if answer.get("SkipAssignment"):
                words.append("skips the assignment")
        return ", ".join(words)

    def tell_member(self, member):
        known = {"": "empty", "nobody": "nobody", self.member.id: "same",
                 self.other.id if self.other else "-": "other"}
        return known.get(member, "new")

    def tell_generation(self, generation):
        return generation if generation < 0 else f"{generation - self.member.generation:+d}"

    def tell_group(self):
        found = members.describe(self.world, self.group)
        who = sorted(f"{self.tell_member(each['MemberId'])} {each['GroupInstanceId'] or 'dynamic'}"
                     for each in found["Members"])
        return ", ".join([found["GroupState"], *who])


def play(address, parks, facts):
    """[(row, answer, then)]. parks(row): how long the answer may be missing until that is said."""
    host, _, port = address.rpartition(":")
    place = (host, int(port))
    setup = worlds.World(place, "static")
    while setup.ask("FindCoordinator", 3, {"Key": "group", "KeyType": 0})["ErrorCode"] != 0:
        pass
    while setup.ask("OffsetFetch", 7, {"GroupId": "group", "Topics": None})["ErrorCode"] != 0:
        pass
    topic, _ = setup.topic("offsets")
    taken = []
    for number, row in enumerate(rows()):
        world = worlds.World(place, "static")
        wanted = facts.get(row, (None, None))[1]
        taken.append((row, *Case(world, number, topic).play(row, parks(row), wanted)))
        world.close()
    setup.close()
    return taken


def record(address):
    taken = play(address, lambda row: 1.0 if row[1].startswith(("Join", "Sync")) else 0, {})
    lines = ["\t".join((*row, answer, then)) for row, answer, then in taken]
    GOLDEN.parent.mkdir(exist_ok=True)
    GOLDEN.write_text(TITLE + "\t".join(COLUMNS) + "\n" + "\n".join(lines) + "\n")
    print(f"{len(lines)} rows")


def check(address, verbose):
    facts = {}
    for line in GOLDEN.read_text().splitlines():
        if not line.startswith(("#", "state\t")):
            *row, answer, then = line.split("\t")
            facts[tuple(row)] = (answer, then)
    wrong = 0
    taken = play(address, lambda row: 0.1 if facts[row][0] == "parked" else 0, facts)
    for row, *found in taken:
        same = facts[row] == tuple(found)
        wrong += not same
        if verbose or not same:
            words = " | ".join(word for word in row if word)
            print(f"{'ok   ' if same else 'FAIL '} {words}: Kafka {' / '.join(facts[row])}"
                  + ("" if same else f", here {' / '.join(found)}"))
    print(f"{len(taken) - wrong} passed, {wrong} failed", flush=True)
    return 1 if wrong or len(taken) != len(facts) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kanald", nargs="?")
    parser.add_argument("--broker", metavar="HOST:PORT")
    parser.add_argument("--record", metavar="HOST:PORT")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    if arguments.record:
        return record(arguments.record)
    if arguments.broker:
        return check(arguments.broker, arguments.verbose)
    with brokers.Kanald(arguments.kanald, SETTINGS) as broker:
        return check(broker.address, arguments.verbose)


if __name__ == "__main__":
    sys.exit(main())
