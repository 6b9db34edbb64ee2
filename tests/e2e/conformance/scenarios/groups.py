"""Classic groups: joining, rebalances, generations, leaving."""
import members
from members import Member, alone, heartbeat, join, leave, pair, sync
from scenarios import scenario

MEMBER_ID_REQUIRED = 79


def show(world, label, group, version=5):
    world.call(label, "DescribeGroups", version, {"Groups": [group]})


def beat(world, label, group, generation, member, instance=None, version=4):
    world.call(label, "Heartbeat", version, heartbeat(group, generation, member, instance))


@scenario
def first_joins(world):
    for version in range(10):
        group, text = world.name(f"g{version}"), f"v{version}"
        answer = world.call(f"{text} no member id", "JoinGroup", version, join(group))
        member = answer["MemberId"]
        if answer["ErrorCode"] == MEMBER_ID_REQUIRED:
            show(world, f"{text} while the id is pending", group)
            world.call(f"{text} listed while pending", "ListGroups", 4, {})
            answer = world.call(f"{text} with the id", "JoinGroup", version, join(group, member))
        generation = answer["GenerationId"]
        show(world, f"{text} before the sync", group)
        beat(world, f"{text} heartbeat before the sync", group, generation, member)
        world.call(f"{text} sync", "SyncGroup", min(version, 5),
                   sync(group, generation, member, [(member, b"mine")]))
        show(world, f"{text} stable", group)
        for label, changes in (("same again", {}), ("other metadata", {"metadata": b"other"}),
                               ("other metadata again", {"metadata": b"other"})):
            world.call(f"{text} joins with {label}", "JoinGroup", version,
                       join(group, member, **changes))


@scenario
def every_version_of_a_life(world):
    """join, sync, heartbeat, leave in each version that goes with the others."""
    for versions in ((0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 1, 1), (3, 2, 2, 2), (4, 2, 2, 2),
                     (5, 3, 3, 3), (6, 4, 4, 4), (7, 5, 4, 4), (8, 5, 4, 5), (9, 5, 4, 5)):
        group = world.name(f"g{versions[0]}")
        for turn in range(2):
            answer = world.call(f"{versions} {turn} join", "JoinGroup", versions[0], join(group))
            member = answer["MemberId"]
            if answer["ErrorCode"] == MEMBER_ID_REQUIRED:
                answer = world.call(f"{versions} {turn} join", "JoinGroup", versions[0],
                                    join(group, member, reason="again"))
            at = answer["GenerationId"]
            world.call(f"{versions} {turn} sync", "SyncGroup", versions[1],
                       sync(group, at, member, [(member, b"mine"), ("nobody", b"x")]))
            beat(world, f"{versions} {turn} heartbeat", group, at, member, version=versions[2])
            world.call(f"{versions} {turn} leave", "LeaveGroup", versions[3],
                       leave(group, member, version=versions[3]))
            beat(world, f"{versions} {turn} after it", group, at, member, version=versions[2])
            show(world, f"{versions} {turn} empty", group)


@scenario
def refused_joins(world):
    for version in (0, 1, 4, 5, 9):
        def call(label, *what, **how):
            world.call(f"v{version} {label}", "JoinGroup", version, join(*what, **how))
        call("empty group", "")
        call("empty kind", world.name("g"), kind="")
        call("no protocols", world.name("g"), protocols=())
        for session in (-2**31, -1, 0, 1, 99, 1_800_001, 2**31 - 1):
            call(f"session of {session}", world.name(f"s{version}{session}"), session=session)
        for rebalance in (-2, -1, 0):
            call(f"rebalance of {rebalance}", world.name(f"r{version}{rebalance}"), rebalance=rebalance)
        call("unknown member, no group", world.name(f"q{version}"), "nobody")
        call("strange group", world.name(f" /.~é😀{version}"))
        call("long group", world.name("x" * 2_000 + str(version)))
        call("empty protocol name", world.name(f"p{version}"), protocols=("",))
        if version >= 4:
            call("one protocol twice", world.name(f"t{version}"), protocols=("range", "range"))
        call("empty metadata", world.name(f"e{version}"), metadata=b"")
    for version in (5, 9):
        for instance in ("", " ", ".", "é", "i" * 250):
            world.call(f"v{version} instance {instance[:3]!r}", "JoinGroup", version,
                       join(world.name(f"i{version}{len(instance)}{instance[:3]}"), instance=instance))


@scenario
def one_protocol_twice(world):
    for version in (0, 1, 5):
        world.call(f"v{version}", "JoinGroup", version, join(
            world.name(f"g{version}"), protocols=("range", "range"), instance=f"i{version}"))


@scenario
def joins_to_an_existing_group(world):
    for version in (0, 3, 4, 9):
        member = alone(world, world.name(f"g{version}"), protocols=("range", "sticky"))
        group = member.group
        for label, how in (("other kind", {"kind": "connect"}), ("empty kind", {"kind": ""}),
                           ("other protocol", {"protocols": ("roundrobin",)}),
                           ("no protocols", {"protocols": ()})):
            world.call(f"v{version} {label}", "JoinGroup", version, join(group, **how))
            world.call(f"v{version} {label}, its id", "JoinGroup", version, join(group, member.id, **how))
        world.call(f"v{version} unknown id", "JoinGroup", version, join(group, "nobody"))
        world.call(f"v{version} id of another group", "JoinGroup", version,
                   join(group, alone(world, world.name(f"h{version}")).id))
        show(world, f"v{version} in the end", group)


@scenario
def before_joining(world):
    group = world.name("g")
    for version in range(6):
        world.call(f"sync v{version} no group", "SyncGroup", version, sync(group, 1, "m"))
    for version in range(5):
        beat(world, f"heartbeat v{version} no group", group, 1, "m", version=version)
    for version in range(6):
        world.call(f"leave v{version} no group", "LeaveGroup", version,
                   leave(group, "m", version=version))
    pending = Member(world, group).get_id()
    for at in (-1, 0, 1):
        world.call(f"sync at {at} with a pending id", "SyncGroup", 5, sync(group, at, pending.id))
        beat(world, f"heartbeat at {at} with a pending id", group, at, pending.id)
        world.call(f"commit at {at} with a pending id", "OffsetCommit", 8, members.commit(
            group, {world.name("t"): {0: 1}}, generation=at, member=pending.id))
    world.call("leave with a pending id", "LeaveGroup", 5, leave(group, pending.id))
    show(world, "after that", group)
    world.call("join with the id that left", "JoinGroup", 9, join(group, pending.id))


@scenario
def empty_group_ids(world):
    for version in range(6):
        world.call(f"sync v{version}", "SyncGroup", version, sync("", 1, "m"))
        world.call(f"leave v{version}", "LeaveGroup", version, leave("", "m", version=version))
    for version in range(5):
        beat(world, f"heartbeat v{version}", "", 1, "m", version=version)


@scenario
def two_members(world):
    group = world.name("g")
    first = alone(world, group)
    second = Member(world, group).get_id()
    second.start_join()
    members.wait_for_state(world, group, "PreparingRebalance")
    world.note("the second join", "parked" if members.is_parked(second.connection) else "answered")
    beat(world, "heartbeat of the first", group, first.generation, first.id)
    beat(world, "heartbeat of the second", group, first.generation, second.id)
    world.call("sync of the first", "SyncGroup", 5, sync(group, first.generation, first.id))
    show(world, "preparing", group)
    first.start_join()
    first.step_joined("first joins again")
    second.step_joined("and so does the second")
    show(world, "completing", group)
    at = first.generation
    beat(world, "heartbeat while completing", group, at, first.id)
    asked = second.connection.send("SyncGroup", 5, sync(group, at, second.id))
    world.note("the second's sync", "parked" if members.is_parked(second.connection) else "answered")
    assigned = [(first.id, b"first"), (second.id, b"second"), ("nobody", b"x")]
    for label, changes in (("another protocol", {"protocol": "sticky"}),
                           ("another kind", {"kind": "connect"})):
        world.call(f"sync of the first naming {label}", "SyncGroup", 5,
                   sync(group, at, first.id, assigned, **changes))
    world.call("sync of the first", "SyncGroup", 5, sync(group, at, first.id, assigned))
    world.read_step("sync of the second", second.connection, "SyncGroup", 5, asked)
    show(world, "stable", group)
    for label, generation, member in (
            ("first", at, first.id), ("second", at, second.id), ("old generation", at - 1, first.id),
            ("future generation", at + 1, first.id), ("unknown", at, "nobody"),
            ("generation -1", -1, first.id), ("nobody at -1", -1, ""), ("unknown, old", at - 1, "nobody")):
        beat(world, f"heartbeat: {label}", group, generation, member)
        world.call(f"sync: {label}", "SyncGroup", 5, sync(group, generation, member, [(member, b"late")]))
    world.call("the first leaves", "LeaveGroup", 5, leave(group, first.id))
    beat(world, "heartbeat of the one that left", group, at, first.id)
    beat(world, "heartbeat of the other", group, at, second.id)
    second.start_join()
    second.step_joined("the other joins again")
    show(world, "in the end", group)


@scenario
def a_follower_changes_its_metadata(world):
    leader, follower = pair(world, world.name("g"))
    group = leader.group
    world.call("joins with the same metadata", "JoinGroup", 9, join(group, follower.id))
    follower.start_join(metadata=b"other")
    members.wait_for_state(world, group, "PreparingRebalance")
    world.note("with other metadata", "parked" if members.is_parked(follower.connection) else "answered")
    beat(world, "heartbeat of the leader", group, leader.generation, leader.id)
    leader.start_join()
    leader.step_joined("the leader joins")
    follower.step_joined("the follower is answered")
    show(world, "in the end", group)


@scenario
def the_leader_joins_again(world):
    for version in (4, 9):
        leader, follower = pair(world, world.name(f"g{version}"))
        group = leader.group
        leader.start_join()
        members.wait_for_state(world, group, "PreparingRebalance")
        beat(world, f"v{version} heartbeat of the follower", group, follower.generation, follower.id)
        world.call(f"v{version} the follower joins", "JoinGroup", version, join(group, follower.id))
        leader.step_joined(f"v{version} the leader is answered")


@scenario
def protocols_are_voted_for(world):
    for number, (first, second) in enumerate((
            (("range", "sticky"), ("sticky", "range")), (("range", "sticky"), ("sticky",)),
            (("a", "b", "c"), ("c", "b", "a")), (("a", "b"), ("z", "b")))):
        leader, follower = pair(world, world.name(f"g{number}"), {"protocols": first},
                                {"protocols": second})
        group = leader.group
        show(world, f"{first} and {second}", group)
        third = Member(world, group, protocols=(first[1], "q", first[0])).get_id()
        third.start_join()
        members.wait_for_state(world, group, "PreparingRebalance")
        leader.start_join()
        follower.start_join()
        for label, each in (("leader", leader), ("follower", follower), ("third", third)):
            each.step_joined(f"{first} and {second} and another: {label}")
        for fourth in (("roundrobin",), ("sticky", "roundrobin"), ("b",), ("z",)):
            world.call(f"{first} and {second}, a fourth with {fourth}", "JoinGroup", 9,
                       join(group, protocols=fourth))


@scenario
def who_has_an_id_is_waited_for(world):
    """A rebalance does not end before those joined who were given an id, or left."""
    first = alone(world, world.name("g"))
    group = first.group
    second = Member(world, group).get_id()
    third = Member(world, group).get_id()
    second.start_join()
    members.wait_for_state(world, group, "PreparingRebalance")
    first.start_join()
    world.note("the first joins", "parked" if members.is_parked(first.connection, 0.3) else "answered")
    show(world, "the third is no member", group)
    world.call("the third leaves", "LeaveGroup", 5, leave(group, third.id))
    first.step_joined("then the first is answered")
    second.step_joined("and the second")


@scenario
def a_protocol_that_not_all_have_any_more(world):
    leader, follower = pair(world, world.name("g"), {"protocols": ("a", "b")}, {"protocols": ("b", "a")})
    group = leader.group
    follower.start_join(protocols=("b",))
    members.wait_for_state(world, group, "PreparingRebalance")
    world.call("the leader with what the other has dropped", "JoinGroup", 9,
               join(group, leader.id, protocols=("a",)))
    world.call("the leader with both", "JoinGroup", 9, join(group, leader.id, protocols=("a", "b")))
    follower.step_joined("the follower")


@scenario
def leaving(world):
    topic, _ = world.topic("t")
    for version in range(6):
        group = world.name(f"g{version}")
        member = alone(world, group)

        def call(label, *who):
            world.call(f"v{version} {label}", "LeaveGroup", version, leave(group, *who, version=version))
        call("empty", "")
        call("unknown", "nobody")
        if version >= 3:
            call("nobody", *())
            call("unknown instance", ("", "i"))
            call("its id, unknown instance", (member.id, "i"))
            call("unknown and known and empty", "nobody", member.id, "")
            call("twice unknown", "nobody", "nobody")
        call("leaves", member.id)
        call("again", member.id)
        show(world, f"v{version} in the end", group)
        for label, at, who in (("its own", member.generation, member.id), ("nobody's", -1, ""),
                               ("nobody's at its generation", member.generation, "")):
            world.call(f"v{version} commit after that, {label}", "OffsetCommit", 8, members.commit(
                group, {topic: {0: 1}}, generation=at, member=who))
    for version in (3, 4, 5):
        leader, follower = pair(world, world.name(f"two{version}"))
        world.call(f"v{version} both at once", "LeaveGroup", version,
                   leave(leader.group, leader.id, follower.id, leader.id))
        show(world, f"v{version} both gone", leader.group)


@scenario
def a_member_leaves_while_others_wait(world):
    first = alone(world, world.name("g"))
    group = first.group
    second = Member(world, group).get_id()
    second.start_join()
    members.wait_for_state(world, group, "PreparingRebalance")
    world.call("the first leaves", "LeaveGroup", 5, leave(group, first.id))
    second.step_joined("the second is alone now")
    show(world, "completing", group)
    third = Member(world, group).get_id()
    third.start_join()
    members.wait_for_state(world, group, "PreparingRebalance")
    world.call("sync of the second", "SyncGroup", 5, sync(group, second.generation, second.id))
    world.call("the waiting one leaves", "LeaveGroup", 5, leave(group, third.id))
    world.read_step("what it gets", third.connection, "JoinGroup", 9, third.asked)
    show(world, "in the end", group)


@scenario
def a_sync_is_overtaken_by_a_join(world):
    leader, follower = pair(world, world.name("g"))
    group = leader.group
    leader.start_join(metadata=b"other")
    members.wait_for_state(world, group, "PreparingRebalance")
    follower.join()
    leader.joined()
    asked = follower.connection.send("SyncGroup", 5, sync(group, follower.generation, follower.id))
    world.note("its sync", "parked" if members.is_parked(follower.connection) else "answered")
    third = Member(world, group).get_id()
    third.start_join()
    members.wait_for_state(world, group, "PreparingRebalance")
    world.read_step("what the waiting sync gets", follower.connection, "SyncGroup", 5, asked)
    show(world, "preparing again", group)


@scenario
def generations_go_on(world):
    for turn in range(4):
        member = alone(world, world.name("g"))
        world.note(f"turn {turn}", "answered", {"GenerationId": member.generation})
        world.call(f"turn {turn} leaves", "LeaveGroup", 5, leave(member.group, member.id))


@scenario
def sessions_end(world):
    member = alone(world, world.name("g"), session=2_000)
    static = alone(world, world.name("s"), session=2_000, instance="i")
    beat(world, "in time", member.group, member.generation, member.id)
    members.wait_for_state(world, member.group, "Empty")
    members.wait_for_state(world, static.group, "Empty")
    for label, each, instance in (("dynamic", member, None), ("static", static, "i")):
        beat(world, f"{label}: too late", each.group, each.generation, each.id, instance)
        show(world, f"{label}: empty", each.group)
        world.call(f"{label}: joins with the lost id", "JoinGroup", 9,
                   join(each.group, each.id, instance=instance))


@scenario
def the_rebalance_timeout_ends_the_wait(world):
    first = alone(world, world.name("g"), rebalance=400)
    second = Member(world, first.group, rebalance=400).get_id()
    second.start_join()
    second.step_joined("the second is alone in time")
    beat(world, "the first is out", first.group, first.generation, first.id)
    show(world, "with one member", first.group)
    lazy = Member(world, world.name("lazy"), rebalance=400).get_id()
    lazy.join()
    members.wait_for_state(world, lazy.group, "Empty")
    beat(world, "who never syncs is out", lazy.group, lazy.generation, lazy.id)
    show(world, "without a member", lazy.group)
