"""Static members (KIP-345): coming back, being fenced, leaving by instance. Beside the table of
static_members.py."""
import members
from members import Member, alone, heartbeat, join, leave, sync
from scenarios import scenario
from scenarios.groups import beat, show


@scenario
def a_member_comes_back(world):
    topic, _ = world.topic("t")
    for version in (5, 6, 7, 8, 9):
        group, text = world.name(f"g{version}"), f"v{version}"
        first = alone(world, group, instance="i")
        show(world, f"{text} stable", group)
        world.call(f"{text} joins with its id", "JoinGroup", version, join(group, first.id, instance="i"))
        at = first.generation + 1
        world.call(f"{text} syncs", "SyncGroup", 5,
                   sync(group, at, first.id, [(first.id, b"mine")], instance="i"))
        back = world.call(f"{text} comes without an id", "JoinGroup", version,
                          join(group, instance="i", session=20_000))
        second, now = back["MemberId"], back["GenerationId"]
        world.call(f"{text} syncs under its new id", "SyncGroup", 5,
                   sync(group, now, second, [(second, b"new")], instance="i"))
        show(world, f"{text} after the return", group)
        for who, member in (("old", first.id), ("new", second)):
            for instance in ("i", None, "other"):
                beat(world, f"{text} heartbeat of the {who} id, instance {instance}", group, now, member,
                     instance)
                world.call(f"{text} commit of the {who} id, instance {instance}", "OffsetCommit", 9,
                           members.commit(group, {topic: {0: 1}}, generation=now, member=member,
                                          instance=instance))
        world.call(f"{text} sync of the old id", "SyncGroup", 5, sync(group, now, first.id, instance="i"))
        world.call(f"{text} join with the old id", "JoinGroup", version, join(group, first.id, instance="i"))
        world.call(f"{text} comes without an id and with other metadata", "JoinGroup", version,
                   join(group, instance="i", metadata=b"other"))
        world.call(f"{text} an unknown id with a new instance", "JoinGroup", version,
                   join(group, "nobody", instance="new"))
        world.call(f"{text} the instance leaves", "LeaveGroup", 4, leave(group, ("", "i")))
        show(world, f"{text} empty", group)


def static_pair(world, group, **how):
    return members.pair(world, group, {"instance": "a", **how}, {"instance": "b", **how})


@scenario
def one_of_two_comes_back(world):
    for version in (5, 8, 9):
        leader, follower = static_pair(world, world.name(f"g{version}"))
        group, text = leader.group, f"v{version}"
        for who, instance in (("follower", "b"), ("leader", "a"), ("leader again", "a")):
            answer = world.call(f"{text} {who} comes back", "JoinGroup", version,
                                join(group, instance=instance))
            world.call(f"{text} {who} syncs", "SyncGroup", 5, sync(
                group, answer["GenerationId"], answer["MemberId"], [(answer["MemberId"], b"changed")],
                instance=instance))
            show(world, f"{text} {who} is back", group)
        world.call(f"{text} both and a stranger leave", "LeaveGroup", 5,
                   leave(group, ("", "b"), ("", "stranger"), ("", "a")))
        show(world, f"{text} all gone", group)


@scenario
def a_member_comes_back_with_other_protocols(world):
    for version in (5, 9):
        leader, follower = static_pair(world, world.name(f"g{version}"), protocols=("range", "sticky"))
        group, text = leader.group, f"v{version}"
        for label, how in (("the other order", {"protocols": ("sticky", "range")}),
                           ("only one", {"protocols": ("range",)}),
                           ("other metadata", {"metadata": b"other"}),
                           ("none in common", {"protocols": ("roundrobin",)}),
                           ("another kind", {"kind": "connect"})):
            connection = world.connect()
            asked = connection.send("JoinGroup", version, join(group, instance="b", **how))
            if not members.is_answered(world, group, connection):
                world.note(f"{text} {label}", "parked")
                show(world, f"{text} {label}: preparing", group)
                world.call(f"{text} {label}: the leader joins", "JoinGroup", version,
                           join(group, leader.id, protocols=("range", "sticky"), instance="a"))
            world.read_step(f"{text} {label}: answer", connection, "JoinGroup", version, asked)
            found = members.describe(world, group)
            world.note(f"{text} {label}: then", found["GroupState"])


@scenario
def the_old_one_still_waits(world):
    """An instance that joins again while its first join is parked."""
    first = alone(world, world.name("g"), instance="a")
    group = first.group
    waiting = Member(world, group, instance="b")
    waiting.start_join()
    members.wait_for_state(world, group, "PreparingRebalance")
    again = Member(world, group, instance="b")
    again.start_join()
    waiting.step_joined("what the first join gets")
    beat(world, "heartbeat of the other", group, first.generation, first.id, "a")
    first.start_join()
    first.step_joined("the other joins")
    again.step_joined("what the second join gets")
    show(world, "completing", group)
    asked = again.connection.send("SyncGroup", 5, sync(group, again.generation, again.id, instance="b"))
    world.note("its sync", "parked" if members.is_parked(again.connection) else "answered")
    third = Member(world, group, instance="b")
    third.start_join()
    world.read_step("what the waiting sync gets", again.connection, "SyncGroup", 5, asked)
    members.wait_for_state(world, group, "PreparingRebalance", "CompletingRebalance")
    first.start_join()
    first.step_joined("the other joins once more")
    third.step_joined("what the third join gets")


@scenario
def dynamic_and_static(world):
    """Ids and instances of two members mixed up."""
    topic, _ = world.topic("t")
    leader, follower = members.pair(world, world.name("g"), {"instance": "a"}, {})
    group, at = leader.group, leader.generation
    for who, member in (("static", leader.id), ("dynamic", follower.id)):
        for instance in ("a", "", "x", None):
            label = f"{who} id, instance {instance!r}"
            beat(world, f"heartbeat: {label}", group, at, member, instance)
            world.call(f"sync: {label}", "SyncGroup", 5, sync(group, at, member, instance=instance))
            world.call(f"commit: {label}", "OffsetCommit", 9, members.commit(
                group, {topic: {0: 1}}, generation=at, member=member, instance=instance))
    for version in (3, 5):
        for label, pair in (("dynamic id, static instance", (follower.id, "a")),
                            ("static id, empty instance", (leader.id, "")),
                            ("dynamic id, empty instance", (follower.id, ""))):
            world.call(f"leave v{version}: {label}", "LeaveGroup", version, leave(group, pair))
            show(world, f"leave v{version}: {label}: then", group)


@scenario
def old_versions_do_not_say_the_instance(world):
    member = alone(world, world.name("g"), instance="i")
    group, at = member.group, member.generation
    for version in range(5):
        beat(world, f"heartbeat v{version}", group, at, member.id, "i", version)
    for version in range(6):
        world.call(f"sync v{version}", "SyncGroup", version, sync(group, at, member.id, instance="i"))
    for version in range(7):
        world.call(f"describe v{version}", "DescribeGroups", version, {"Groups": [group]})
    for version in range(5):
        world.call(f"join v{version}", "JoinGroup", version, join(group, member.id))
    world.call("leave v2", "LeaveGroup", 2, leave(group, member.id, version=2))
    show(world, "empty", group)
    world.call("heartbeat of nobody", "Heartbeat", 4, heartbeat(group, at, ""))
