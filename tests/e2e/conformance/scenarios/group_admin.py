"""Describing, listing and deleting groups; finding coordinators."""
import members
from members import Member, alone, commit, leave
from scenarios import scenario


def population(world):
    """One group of each kind; {what: group}."""
    topic, _ = world.topic("t")
    stable = alone(world, world.name("stable"))
    static = alone(world, world.name("static"), instance="i")
    left = alone(world, world.name("left"))
    left.ask("OffsetCommit", commit(left.group, {topic: {0: 1}}, generation=left.generation,
                                    member=left.id))
    left.ask("LeaveGroup", leave(left.group, left.id))
    gone = alone(world, world.name("gone"))
    gone.ask("LeaveGroup", leave(gone.group, gone.id))
    world.ask("OffsetCommit", 8, commit(world.name("simple"), {topic: {0: 1}}))
    pending = Member(world, world.name("pending")).get_id()
    connect = alone(world, world.name("connect"), kind="connect", protocols=("default",), metadata=b"c")
    completing = Member(world, world.name("completing")).get_id()
    completing.join()
    preparing = alone(world, world.name("preparing"))
    second = Member(world, preparing.group).get_id()
    second.start_join()
    members.wait_for_state(world, preparing.group, "PreparingRebalance")
    return [each.group for each in (stable, static, left, gone, pending, connect, completing, preparing)] \
        + [world.name("simple")]


@scenario
def described(world):
    groups = population(world)
    for version in range(7):
        for authorized in (False, True):
            world.call(f"v{version} all, operations {authorized}", "DescribeGroups", version,
                       {"Groups": groups, "IncludeAuthorizedOperations": authorized})
        for label, names in (("unknown", [world.name("none")]), ("empty name", [""]), ("none", []),
                             ("twice", [groups[0], groups[0]]),
                             ("known and unknown", [world.name("none"), groups[0]])):
            world.call(f"v{version} {label}", "DescribeGroups", version, {"Groups": names})


@scenario
def listed(world):
    population(world)
    for version in range(6):
        world.call(f"v{version} all", "ListGroups", version, {})
    states = (["Stable"], ["Empty"], ["Dead"], ["PreparingRebalance"], ["CompletingRebalance"],
              ["stable", "EMPTY"], ["Stable", "Stable", "nonsense"], ["nonsense"], [""], ["Unknown"],
              ["Assigning"], ["Reconciling"])
    for chosen in states:
        for version in (4, 5):
            world.call(f"v{version} states {chosen}", "ListGroups", version, {"StatesFilter": chosen})
    for kinds in (["classic"], ["Classic"], ["consumer"], ["share"], ["streams"], ["unknown"], [""],
                  ["nonsense"], ["consumer", "CLASSIC"]):
        world.call(f"types {kinds}", "ListGroups", 5, {"TypesFilter": kinds})
        world.call(f"types {kinds}, Empty", "ListGroups", 5, {"TypesFilter": kinds,
                                                              "StatesFilter": ["Empty"]})


@scenario
def deleted(world):
    groups = population(world)
    topic = world.name("t")
    for version in range(4):
        world.call(f"v{version} nobody's", "DeleteGroups", version,
                   {"GroupsNames": [world.name("none"), ""]})
        world.call(f"v{version} none", "DeleteGroups", version, {"GroupsNames": []})
        live = [group for group in groups if group.endswith(("stable", "completing", "preparing"))]
        world.call(f"v{version} with members", "DeleteGroups", version, {"GroupsNames": live})
        mixed = [world.name(f"a{version}"), world.name(f"b{version}")]
        for group in mixed:
            world.ask("OffsetCommit", 8, commit(group, {topic: {0: 1}}))
        world.call(f"v{version} some", "DeleteGroups", version,
                   {"GroupsNames": [mixed[0], groups[0], world.name("none"), mixed[1], mixed[1]]})
        world.call(f"v{version} again", "DeleteGroups", version, {"GroupsNames": mixed})
    rest = [group for group in groups if group.endswith(("left", "gone", "simple", "pending"))]
    world.call("the rest", "DeleteGroups", 2, {"GroupsNames": rest})
    world.call("what is left", "DescribeGroups", 6, {"Groups": rest})
    world.call("what is listed", "ListGroups", 5, {})
    for group in rest:
        world.call(f"offsets of {group}", "OffsetFetch", 8, members.fetch(8, group))
    again = alone(world, world.name("left"))
    world.note("a group made again starts at", "answered", {"GenerationId": again.generation})


@scenario
def coordinators(world):
    for version in range(7):
        for label, kind, keys in (
                ("group", 0, ["g"]), ("group of any name", 0, ["é /~"]), ("empty group", 0, [""]),
                ("groups", 0, ["g", "h", "g"]), ("no groups", 0, []), ("kind 3", 3, ["g"]),
                ("kind -1", -1, ["g"]), ("kind 127", 127, ["g"])):
            if version == 0 and kind:
                continue
            names = {"CoordinatorKeys": keys} if version >= 4 else {"Key": (keys or [""])[0]}
            world.call(f"v{version} {label}", "FindCoordinator", version, {**names, "KeyType": kind})


@scenario
def names_of_clients(world):
    """What DescribeGroups says of who joined."""
    for text in ("x", "é", "a b", ""):
        connection = world.connect(text)
        group = world.name(f"g{text}")
        answer = world.ask("JoinGroup", 3, members.join(group), connection)
        connection.send("SyncGroup", 2, members.sync(group, 1, answer["MemberId"], [
            (answer["MemberId"], b"mine")]))
        connection.read_frame()
        world.call(f"client {text!r}", "DescribeGroups", 6, {"Groups": [group]})
