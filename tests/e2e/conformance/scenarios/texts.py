"""Texts that are no UTF-8: Kafka reads them with U+FFFD in them, so clients share the names it reads."""
import members
from scenarios import scenario

MALFORMED = (
    b"g\xff\xfe", b"g\x80h", b"\x80\x81\x82", b"\xc3\xa9\xc3",  # what begins no character
    b"g\xc3", b"g\xc3h", b"g\xe2\x82", b"g\xe2\x82h", b"g\xf0\x9f\x98", b"\xf0\x9f\xf0\x9f\x98h",  # cut
    b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0\xbd\xed\xb8\x80", b"\xed\xa0", b"\xed\xa0h",  # surrogates
    b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf",  # longer than it has to be
    b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xf8\x88\x80\x80\x80")  # beyond U+10FFFF
WELL_FORMED = (b"\xef\xbf\xbd", b"\xef\xbf\xbf", b"\xed\x9f\xbf", b"\xee\x80\x80", b"\xf4\x8f\xbf\xbf",
               b"\x7f", b"a\x00b")
REPLACED = "\ufffd"


def texts():
    """[(label, text)]: the text is sent as these bytes."""
    return [(octets.hex(), octets.decode(errors="surrogateescape"))
            for octets in (*MALFORMED, *WELL_FORMED)]


@scenario
def groups(world):
    for label, text in texts():
        group = world.name(text)
        for version in (2, 6):
            names = {"CoordinatorKeys": [group]} if version >= 4 else {"Key": group}
            world.call(f"{label} v{version} coordinator", "FindCoordinator", version, names)
        world.call(f"{label} commit", "OffsetCommit", 8, members.commit(
            group, {world.name("t"): {0: 1}, text: {0: 2}}, metadata=text))
        for version in (5, 8):
            world.call(f"{label} v{version} offsets", "OffsetFetch", version, members.fetch(version, group))
        world.call(f"{label} offsets of a topic", "OffsetFetch", 8, members.fetch(8, group, {text: [0]}))
        world.call(f"{label} described", "DescribeGroups", 5, {"Groups": [group]})
    world.call("listed", "ListGroups", 4, {})
    for label, text in texts():
        world.call(f"{label} deleted", "DeleteGroups", 2, {"GroupsNames": [world.name(text)]})


@scenario
def members_of_groups(world):
    """Their ids, instances, clients, kinds and protocols."""
    for label, text in texts():
        connection = world.connect(text)
        group = world.name(label)
        joined = world.call(f"{label} joins", "JoinGroup", 5, members.join(
            group, instance="i" + text, kind="k" + text, protocols=("p" + text,)), connection)
        member = world.names.learn_member(joined["MemberId"])
        world.call(f"{label} syncs", "SyncGroup", 5, members.sync(
            group, joined["GenerationId"], member, [(member, b"mine")], instance="i" + text,
            kind="k" + text, protocol="p" + text), connection)
        for version in (3, 6):
            world.call(f"{label} v{version} described", "DescribeGroups", version, {"Groups": [group]})
        world.call(f"{label} the id is no member's", "JoinGroup", 9, members.join(group, text))
        world.call(f"{label} it leaves", "LeaveGroup", 4, members.leave(
            group, text, ("", text), ("", "i" + text)))


@scenario
def one_name_of_many_bytes(world):
    """What is read alike is one group, one member, one instance."""
    topic, _ = world.topic("t")
    alike = [octets.decode(errors="surrogateescape") for octets in (b"\xff", b"\xfe", b"\xed\xa0\x80", b"\xe2")]
    for text in alike:
        world.call(f"{text.encode(errors='surrogateescape').hex()} commits", "OffsetCommit", 8,
                   members.commit(world.name(text), {topic: {0: len(text)}}))
        world.call("and is read", "OffsetFetch", 8, members.fetch(8, world.name(REPLACED)))
    world.call("listed", "ListGroups", 4, {})
    first = members.Member(world, world.name("g"), instance=alike[0])
    first.start_join()
    first.step_joined("an instance joins")
    again = members.Member(world, first.group, instance=alike[1])
    again.start_join()
    again.step_joined("and comes back with other bytes")
    world.call("described", "DescribeGroups", 5, {"Groups": [first.group]})


@scenario
def topics(world):
    for label, text in texts():
        for version in (1, 12):
            world.call(f"{label} v{version} metadata", "Metadata", version, {
                "Topics": [{"Name": text}], "AllowAutoTopicCreation": False})
        world.call(f"{label} made", "CreateTopics", 5, {"timeoutMs": 10_000, "Topics": [
            {"Name": text, "NumPartitions": 1, "ReplicationFactor": 1}]})
        world.call(f"{label} configured", "DescribeConfigs", 4, {"Resources": [
            {"ResourceType": 2, "ResourceName": text, "ConfigurationKeys": None}]})


@scenario
def long_ones(world):
    """A replacement takes three bytes; what is too long then cannot be said in an answer."""
    for count in (10_922, 10_923, 32_767):
        text = "\udcff" * count
        for version in (2, 6):
            names = {"CoordinatorKeys": [text]} if version >= 4 else {"Key": text}
            world.call(f"{count} v{version} coordinator", "FindCoordinator", version, names)
        world.call(f"{count} offsets", "OffsetFetch", 7, members.fetch(7, text))
        world.call(f"{count} described", "DescribeGroups", 4, {"Groups": [text]})
