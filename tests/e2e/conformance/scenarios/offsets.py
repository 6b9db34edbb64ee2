"""Committed offsets: committing, fetching, deleting; who may, and what is kept."""
import members
from batch import batch
from members import alone, commit, fetch, leave
from scenarios import scenario
from world import produce_body

NOWHERE = bytes(range(16))
COMMITS, FETCHES = range(2, 11), range(1, 11)


def named(version, topic):
    """A topic (name, id) as this version of OffsetCommit and OffsetFetch says it."""
    return topic[1] if version >= 10 else topic[0]


@scenario
def every_version(world):
    topic, other = world.topic("t", 3), world.topic("u", 2)
    for version in COMMITS:
        group = world.name(f"g{version}")
        body = commit(group, {named(version, topic): {0: 5, 2: 7}, named(version, other): {1: 2**40}},
                      metadata=f"é{version}", epoch=3)
        if version <= 4:
            body["RetentionTimeMs"] = 5_000
        world.call(f"commit v{version}", "OffsetCommit", version, body)
        for fetched in FETCHES:
            world.call(f"commit v{version}, fetch v{fetched}", "OffsetFetch", fetched, fetch(
                fetched, group, {named(fetched, topic): [0, 1, 2], named(fetched, other): [1]}))


@scenario
def values(world):
    topic = world.topic("t", 2)
    for version in (2, 5, 6, 9, 10):
        group, name = world.name(f"g{version}"), named(version, topic)

        def call(label, offsets, **how):
            world.call(f"v{version} {label}", "OffsetCommit", version, commit(group, offsets, **how))
            world.call(f"v{version} {label}: fetched", "OffsetFetch", 8, fetch(8, group))
        for offset in (0, -1, -2, -2**63, 2**63 - 1):
            call(f"offset {offset}", {name: {0: offset}})
        for text in (None, "", "m" * 4_096, "m" * 4_097, "é" * 2_048, "é" * 2_049, "é" * 4_096,
                     "\0", "😀"):
            call(f"metadata {text and text[:2]!r} of {len(text or '')}", {name: {0: 1}}, metadata=text)
        for epoch in (-2, -1, 0, 5, 2**31 - 1):
            call(f"epoch {epoch}", {name: {0: 1}}, epoch=epoch)
        for partition in (2, -1, 2**31 - 1):
            call(f"partition {partition}", {name: {partition: 1, 0: 9}})
        call("no topics", {})
        call("no partitions", {name: {}})
        twice = commit(group, {name: {0: 11}})
        twice["Topics"] *= 2
        twice["Topics"][0]["Partitions"] *= 2
        world.call(f"v{version} everything twice", "OffsetCommit", version, twice)
        if version < 10:
            for missing in (world.name("missing"), "", "a b", "é", "x" * 250, "__consumer_offsets"):
                call(f"topic {missing[:20]!r}", {missing: {0: 1}, name: {0: 12}})
        else:
            for label, octets in (("unknown", NOWHERE), ("zero", bytes(16))):
                call(f"{label} topic id", {octets: {0: 1}, name: {0: 12}})


@scenario
def groups_of_any_name(world):
    topic, _ = world.topic("t")
    for number, text in enumerate(("/", "..", "~", "a~b", " ", "é", "😀", "x" * 1_024, "a.b.1", "%2F",
                                   "\n", "null", "A", "a")):
        group = world.name(text)
        world.call(f"{text[:5]!r} commit", "OffsetCommit", 8, commit(group, {topic: {0: number}}))
    for text in ("/", "..", "~", "a~b", " ", "é", "😀", "x" * 1_024, "a.b.1", "%2F", "\n", "null",
                 "A", "a", "none"):
        world.call(f"{text[:5]!r} fetch", "OffsetFetch", 7, fetch(7, world.name(text)))
    world.call("listed", "ListGroups", 4, {})
    world.call("empty group", "OffsetCommit", 8, commit("", {topic: {0: 7}}))
    for version in FETCHES:
        partitions = {topic: [0]} if version < 10 else {world.topic(f"i{version}")[1]: [0]}
        world.call(f"empty group, fetch v{version}", "OffsetFetch", version, fetch(version, "", partitions))


@scenario
def who_commits(world):
    topic = world.topic("t", 2)
    stable = alone(world, world.name("stable"))
    completing = members.Member(world, world.name("completing")).get_id()
    completing.join()
    left = alone(world, world.name("left"))
    left.ask("LeaveGroup", leave(left.group, left.id))
    for version in (2, 6, 7, 9, 10):
        for member in (stable, completing, left):
            for label, who in (("its id", member.id), ("unknown", "nobody"), ("empty", "")):
                for at in (member.generation, member.generation - 1, member.generation + 1, -1, -2):
                    body = commit(member.group, {named(version, topic): {0: 3}}, generation=at, member=who)
                    world.call(f"v{version} {member.group}, {label}, {at - member.generation:+d}",
                               "OffsetCommit", version, body)
        for label, at, who in (("nobody", -1, ""), ("a member", 1, "m"), ("a generation", 1, ""),
                               ("a member at -1", -1, "m")):
            world.call(f"v{version} no such group, {label}", "OffsetCommit", version, commit(
                world.name(f"none {version} {label}"), {named(version, topic): {0: 3}}, generation=at,
                member=who))


@scenario
def what_is_fetched(world):
    topic, other, empty = world.topic("t", 3), world.topic("u"), world.topic("v")
    for name in ("g", "h"):
        world.ask("OffsetCommit", 8, commit(world.name(name), {topic[0]: {0: 1, 2: 3}, other[0]: {0: 4}}))
    group, nobody = world.name("g"), world.name("nobody")
    for version in FETCHES:
        def call(label, who, partitions, **how):
            world.call(f"v{version} {label}", "OffsetFetch", version, fetch(version, who, partitions, **how))
        at = 1 if version >= 10 else 0
        if version >= 2:
            call("all topics", group, None)
            call("all topics of nobody", nobody, None)
        call("no topics", group, {})
        call("no topics of nobody", nobody, {})
        call("no partitions", group, {topic[at]: []})
        call("some without offsets", group, {topic[at]: [0, 1, 2, 3, -1], empty[at]: [0]})
        call("of nobody", nobody, {topic[at]: [0, 7], empty[at]: [0]})
        call("one twice", group, {topic[at]: [0, 0]})
        missing = NOWHERE if at else world.name("missing")
        call("unknown topic", group, {missing: [0], topic[at]: [0]})
        call("unknown topic of nobody", nobody, {missing: [0]})
        if at:
            call("zero topic id", group, {bytes(16): [0]})
        if version >= 7:
            call("stable only", group, {topic[at]: [0]}, stable=True)
        if version >= 9:
            for member, epoch in (("m", 1), ("", 0), (None, 5), ("m", -1), ("", -2)):
                call(f"member {member} at {epoch}", group, {topic[at]: [0]}, member=member, epoch=epoch)
                call(f"member {member} at {epoch} of nobody", nobody, {topic[at]: [0]}, member=member,
                     epoch=epoch)


@scenario
def many_groups(world):
    topic = world.topic("t", 2)
    for name, offset in (("a", 1), ("b", 2), ("c", 3)):
        world.ask("OffsetCommit", 8, commit(world.name(name), {topic[0]: {0: offset}}))
    for version in (8, 9, 10):
        key = "TopicId" if version >= 10 else "Name"
        some = [{key: named(version, topic), "PartitionIndexes": [0, 1]}]
        for label, asked in (
                ("three", [("a", some), ("b", None), ("none", some)]), ("one twice", [("a", some)] * 2),
                ("none", []), ("with the empty one", [("", some), ("a", some)]),
                ("all of all", [("a", None), ("b", None), ("c", None), ("none", None)])):
            world.call(f"v{version} {label}", "OffsetFetch", version, {"Groups": [
                {"GroupId": world.name(name) if name else "", "Topics": topics} for name, topics in asked]})


@scenario
def topics_that_go(world):
    for version in (8, 10):
        topic = world.topic(f"t{version}", 2)
        group = world.name(f"g{version}")
        world.ask("Produce", 9, produce_body(topic[0], batch(b"x")))
        world.ask("OffsetCommit", 8, commit(group, {topic[0]: {0: 1, 1: 2}}))
        world.ask("DeleteTopics", 6, {"Topics": [{"Name": None, "TopicId": topic[1]}],
                                      "TimeoutMs": 20_000})
        world.wait_for(topic[0], 2, code=3)
        for _ in range(100 if world.pause else 1):  # Kafka forgets them a moment later
            left = world.ask("OffsetFetch", 8, fetch(8, group))["Groups"][0]["Topics"]
            if not left:
                break
            world.settle()
        world.call(f"v{version} all after the topic is deleted", "OffsetFetch", 8, fetch(8, group))
        world.call(f"v{version} by name", "OffsetFetch", 8, fetch(8, group, {topic[0]: [0, 1]}))
        world.call(f"v{version} by id", "OffsetFetch", 10, fetch(10, group, {topic[1]: [0, 1]}))
        world.call(f"v{version} commit", "OffsetCommit", version,
                   commit(group, {named(version, topic): {0: 9}}))
        again = world.topic(f"t{version}", 2)
        world.call(f"v{version} made again: all", "OffsetFetch", 8, fetch(8, group))
        world.call(f"v{version} made again: by name", "OffsetFetch", 8, fetch(8, group, {again[0]: [0, 1]}))
        world.call(f"v{version} made again: by its new id", "OffsetFetch", 10,
                   fetch(10, group, {again[1]: [0, 1]}))
        world.call(f"v{version} made again: by its old id", "OffsetFetch", 10,
                   fetch(10, group, {topic[1]: [0, 1]}))


def deletion(group, topics):
    return {"GroupId": group, "Topics": [
        {"Name": name, "Partitions": [{"PartitionIndex": each} for each in partitions]}
        for name, partitions in topics.items()]}


@scenario
def deleted_offsets(world):
    topic, _ = world.topic("t", 3)
    other, _ = world.topic("u")
    group = world.name("g")
    world.ask("OffsetCommit", 8, commit(group, {topic: {0: 1, 1: 2, 2: 3}, other: {0: 4}}))
    for label, who, topics in (
            ("one", group, {topic: [0]}), ("again", group, {topic: [0]}),
            ("unknown partition", group, {topic: [7, -1, 1]}),
            ("unknown topic", group, {world.name("missing"): [0]}), ("no topics", group, {}),
            ("no partitions", group, {topic: []}), ("twice", group, {topic: [2, 2]}),
            ("no such group", world.name("none"), {topic: [0]}), ("empty group", "", {topic: [0]}),
            ("no such group, no topics", world.name("none"), {}), ("the last", group, {other: [0]})):
        world.call(label, "OffsetDelete", 0, deletion(who, topics))
        world.call(f"{label}: left", "OffsetFetch", 8, fetch(8, group))
        world.call(f"{label}: the group", "DescribeGroups", 5, {"Groups": [group]})


@scenario
def deleted_offsets_of_members(world):
    topic, _ = world.topic("t")
    other, _ = world.topic("u")
    for label, how in (("subscribed", {"metadata": members.subscription(topic)}),
                       ("bad metadata", {"metadata": b"\xff"}), ("empty metadata", {"metadata": b""}),
                       ("connect", {"kind": "connect", "metadata": members.subscription(topic)})):
        member = alone(world, world.name(label), **how)
        world.ask("OffsetCommit", 8, commit(member.group, {topic: {0: 1}, other: {0: 2}},
                                            generation=member.generation, member=member.id))
        for at in ("stable", "empty"):
            world.call(f"{label}, {at}", "OffsetDelete", 0,
                       deletion(member.group, {topic: [0], other: [0], world.name("missing"): [0]}))
            world.call(f"{label}, {at}: left", "OffsetFetch", 8, fetch(8, member.group))
            member.ask("LeaveGroup", leave(member.group, member.id))
    member = members.Member(world, world.name("completing"), metadata=members.subscription(topic)).get_id()
    member.join()
    world.call("completing", "OffsetDelete", 0, deletion(member.group, {topic: [0], other: [0]}))
