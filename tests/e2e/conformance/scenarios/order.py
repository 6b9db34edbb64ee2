"""Many requests at once on one connection: answers in the order of the requests, each right."""
import random

from batch import batch
from scenarios import scenario
from world import fetch_body, produce_body


def mixes(world):
    """Request makers by name. What one does must not change what another is answered."""
    world.main.send("ApiVersions", 0, {})
    world.main.read_frame()
    target, _ = world.topic("target")
    full, _ = world.topic("full")
    empty, _ = world.topic("empty")
    world.ask("Produce", 9, produce_body(full, batch(b"a", b"b")))
    missing = world.name("missing")
    good, bad = batch(b"good"), batch(b"bad", crc=7)
    metadata = {"Topics": [{"Name": full}, {"Name": missing}], "AllowAutoTopicCreation": False}
    offsets = {"ReplicaId": -1, "Topics": [
        {"Name": missing, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]},
        {"Name": full, "Partitions": [{"PartitionIndex": 0, "Timestamp": -1}]}]}
    waiting = {"MaxWaitMs": 60, "MinBytes": 1}
    return {
        "good produce": ("Produce", 9, produce_body(target, good)),
        "produce with acks 1": ("Produce", 3, produce_body(target, good, acks=1)),
        "bad produce": ("Produce", 9, produce_body(target, bad)),
        "produce to nowhere": ("Produce", 11, produce_body(missing, good)),
        "produce with acks 0": ("Produce", 9, produce_body(target, good, acks=0)),
        "produce with acks 5": ("Produce", 9, produce_body(target, good, acks=5)),
        "fetch": ("Fetch", 11, fetch_body(full)),
        "parked fetch": ("Fetch", 11, fetch_body(empty, **waiting)),
        "parked fetch v4": ("Fetch", 4, fetch_body(empty, **waiting)),
        "fetch from nowhere": ("Fetch", 12, fetch_body(missing)),
        "metadata": ("Metadata", 9, metadata),
        "metadata v1": ("Metadata", 1, {"Topics": [{"Name": full}]}),
        "offsets": ("ListOffsets", 6, offsets),
        "versions": ("ApiVersions", 3, {"ClientSoftwareName": "x", "ClientSoftwareVersion": "1"}),
        "bad versions": ("ApiVersions", 3, {}),
        "cluster": ("DescribeCluster", 0, {}),
    }


@scenario
def random_mixes(world):
    requests = mixes(world)
    chance = random.Random(8)
    names = sorted(requests)
    for turn in range(12):
        connection = world.connect()
        chosen = [chance.choice(names) for _ in range(30)] + ["cluster"]
        sent = [(name, connection.send(*requests[name])) for name in chosen]
        for i, (name, asked) in enumerate(sent):
            api, version, _ = requests[name]
            if name != "produce with acks 0":
                world.read_step(f"mix {turn}, {i}: {name}", connection, api, version, asked,
                                drop=("BaseOffset", "ApiKeys"))
        connection.close()


@scenario
def a_mistake_closes_after_the_answers_before_it(world):
    requests = mixes(world)
    unserved = ("Metadata", 99, b"")
    for name in ("metadata", "good produce", "parked fetch", "fetch"):
        connection = world.connect()
        api, version, body = requests[name]
        asked = connection.send(api, version, body)
        connection.send(*unserved)
        behind = connection.send(api, version, body)
        world.read_step(f"{name} before the mistake", connection, api, version, asked,
                        drop=("BaseOffset",))
        world.read_step(f"{name} behind the mistake", connection, api, version, behind)
        connection.close()


@scenario
def acks_0(world):
    requests = mixes(world)
    target, missing = world.name("target"), world.name("missing")
    for label, body in (
            ("good", produce_body(target, batch(b"x"), acks=0)),
            ("wrong checksum", produce_body(target, batch(b"x", crc=1), acks=0)),
            ("no such topic", produce_body(missing, batch(b"x"), acks=0)),
            ("no such partition", produce_body(target, batch(b"x"), 9, acks=0)),
            ("no topics", {"Acks": 0, "TimeoutMs": 100, "TopicData": []})):
        for version in (3, 7, 9, 11):
            connection = world.connect()
            before = connection.send(*requests["metadata v1"])
            connection.send("Produce", version, body)
            world.read_step(f"before {label} v{version}", connection, "Metadata", 1, before)
            if label != "good":
                world.call(f"behind {label} v{version}", "DescribeCluster", 0, {}, connection)
                connection.close()
                continue
            behind = connection.send(*requests["metadata v1"])
            world.read_step(f"behind {label} v{version}", connection, "Metadata", 1, behind)
            connection.close()
    world.fetch("what is stored", target)


@scenario
def correlation_ids(world):
    for number in (0, 1, -1, 2**31 - 2, -2**31):
        world.main.correlation_id = number - 1
        world.call(f"correlation id {number}", "DescribeCluster", 0, {})
    world.main.correlation_id = 5
    for _ in range(3):  # the same one again
        world.main.correlation_id = 5
        world.call("a correlation id used again", "DescribeCluster", 0, {})
