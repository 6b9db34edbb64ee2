"""Times: those of clients and of the broker, finding by time, and deleted records."""
from batch import T0, batch
from scenarios import scenario
from world import produce_body


def ask_all(world, label, topic):
    for timestamp in (-1, -2, -3, 0, T0 - 1, T0, T0 + 1, T0 + 5, T0 + 50, T0 + 51, 2**62):
        world.offset_at(f"{label}, offset at {timestamp - T0 if timestamp > 0 else timestamp}", topic,
                        timestamp)


@scenario
def append_time(world):
    topic, _ = world.topic("t", message_timestamp_type="LogAppendTime")
    pid = world.producer_id()
    for label, fields in (("plain", {}), ("compressed", {"attributes": 1}),
                          ("with the bit set", {"attributes": 8}), ("time -1", {"at": -1}),
                          ("wrong largest time", {"max_timestamp": 5}),
                          ("in the far future", {"at": 2**60}),
                          ("of a producer", {"pid": pid, "epoch": 0, "sequence": 0}),
                          ("of a producer again", {"pid": pid, "epoch": 0, "sequence": 0})):
        for version in (3, 11):
            world.produce(f"{label} v{version}", topic, batch(b"a", b"b", **fields), version=version)
    world.fetch("what is stored", topic)
    for timestamp in (-1, -2, 0, T0, 2**62):
        world.offset_at(f"offset at {timestamp}", topic, timestamp)


@scenario
def create_time(world):
    topic, _ = world.topic("t")
    for label, fields in (("plain", {}), ("with the append time's bit", {"attributes": 8}),
                          ("time -1", {"at": -1}), ("time -2", {"at": -2}),
                          ("wrong largest time", {"max_timestamp": 5}),
                          ("largest time -1", {"max_timestamp": -1}),
                          ("in the far future", {"at": 2**60}), ("time 0", {"at": 0}),
                          ("times out of order", {"times": [50, 1, 7]})):
        world.produce(label, topic, batch(b"a", b"b", b"c", **fields))
    world.fetch("what is stored", topic)
    ask_all(world, "at the end", topic)


@scenario
def bounds_of_times(world):
    topic, _ = world.topic("t", message_timestamp_before_max_ms="3600000")
    for label, at in (("long ago", T0), ("time 0", 0), ("time -1", -1), ("far future", 2**60)):
        world.produce(label, topic, batch(b"a", at=at))
    several = batch(b"a", b"b", b"c", times=[0, 5, 9])
    world.produce("several", topic, several)


@scenario
def deleted_records(world):
    topic, _ = world.topic("t")
    for times in ([50, 3], [1, 2], [40, 5], [30, 4]):
        world.ask("Produce", 9, produce_body(topic, batch(b"x", b"y", times=times)))
    ask_all(world, "nothing deleted", topic)

    def delete(offset, partition=0, name=topic):
        body = {"Topics": [{"Name": name, "Partitions": [
            {"PartitionIndex": partition, "Offset": offset}]}], "TimeoutMs": 5_000}
        world.call(f"deleted below {offset}", "DeleteRecords", 2, body)
    for offset in (0, 1, 2, 1, 5, 99, -1, -2):
        delete(offset)
        ask_all(world, f"deleted below {offset}", topic)
        for start in (0, 1, 2, 5, 7, 8, 9):
            world.fetch(f"deleted below {offset}, fetch at {start}", topic, start)
    delete(0, partition=7)
    delete(0, name=world.name("missing"))
    world.produce("one more", topic, batch(b"z", times=[7]))
    ask_all(world, "one more", topic)
    for version in range(3):
        body = {"Topics": [{"Name": topic, "Partitions": [
            {"PartitionIndex": 0, "Offset": 8}, {"PartitionIndex": 0, "Offset": 9},
            {"PartitionIndex": 3, "Offset": 9}]}], "TimeoutMs": 5_000}
        world.call(f"v{version} twice and unknown", "DeleteRecords", version, body)
