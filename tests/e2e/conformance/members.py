"""Classic groups: request bodies, and members that play the protocol as far as a scenario wants."""
import select
import struct
import time

import wire

DEADLINE_S = 20
LATEST = {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "LeaveGroup": 5, "OffsetCommit": 9}


def subscription(*topics):
    """What a consumer says in a join: the topics it wants."""
    out = struct.pack(">hi", 0, len(topics))
    for topic in topics:
        out += struct.pack(">h", len(topic)) + topic.encode()
    return out + struct.pack(">i", -1)


def join(group, member="", *, protocols=("range",), kind="consumer", instance=None, session=30_000,
         rebalance=20_000, metadata=None, reason=None):
    metadata = subscription("x") if metadata is None else metadata
    return {"GroupId": group, "SessionTimeoutMs": session, "RebalanceTimeoutMs": rebalance,
            "MemberId": member, "GroupInstanceId": instance, "ProtocolType": kind, "Reason": reason,
            "Protocols": [{"Name": name, "Metadata": metadata} for name in protocols]}


def sync(group, generation, member, assignments=(), *, instance=None, kind="consumer",
         protocol="range"):
    given = [{"MemberId": each, "Assignment": what} for each, what in assignments]
    return {"GroupId": group, "GenerationId": generation, "MemberId": member,
            "GroupInstanceId": instance, "ProtocolType": kind, "ProtocolName": protocol,
            "Assignments": given}


def heartbeat(group, generation, member, instance=None):
    return {"GroupId": group, "GenerationId": generation, "MemberId": member,
            "GroupInstanceId": instance}


def leave(group, *members, version=5):
    """Members are ids or (id, instance)."""
    if version < 3:
        return {"GroupId": group, "MemberId": members[0]}
    pairs = [(each, None) if isinstance(each, str) else each for each in members]
    return {"GroupId": group, "Members": [{"MemberId": each, "GroupInstanceId": instance}
                                          for each, instance in pairs]}


def commit(group, offsets, *, generation=-1, member="", instance=None, metadata="m", epoch=-1):
    """Offsets: {topic name or id: {partition: offset}}."""
    topics = []
    for topic, partitions in offsets.items():
        name = {"TopicId": topic} if isinstance(topic, bytes) else {"Name": topic}
        topics.append({**name, "Partitions": [
            {"PartitionIndex": partition, "CommittedOffset": offset, "CommittedLeaderEpoch": epoch,
             "CommittedMetadata": metadata} for partition, offset in partitions.items()]})
    return {"GroupId": group, "GenerationIdOrMemberEpoch": generation, "MemberId": member,
            "GroupInstanceId": instance, "Topics": topics}


def fetch(version, group, partitions=None, *, stable=False, member=None, epoch=-1):
    """What is committed: partitions {topic name or id: [partition]}, or None for all."""
    topics = None
    if partitions is not None:
        topics = [{"TopicId" if isinstance(topic, bytes) else "Name": topic, "PartitionIndexes": each}
                  for topic, each in partitions.items()]
    if version < 8:
        return {"GroupId": group, "Topics": topics, "RequireStable": stable}
    return {"Groups": [{"GroupId": group, "Topics": topics, "MemberId": member, "MemberEpoch": epoch}],
            "RequireStable": stable}


class Member:
    """One member on a connection of its own. `how` is what join() takes beside group and id."""

    def __init__(self, world, group, **how):
        self.world = world
        self.group = group
        self.how = how
        self.connection = world.connect()
        self.id = ""
        self.generation = -1
        self.protocol = None
        self.asked = None

    def get_id(self):
        """A dynamic member's id, without joining."""
        answer = self.ask("JoinGroup", join(self.group, **self.how))
        self.id = self.world.names.learn_member(answer["MemberId"])
        return self

    def ask(self, api, body):
        return self.world.ask(api, LATEST[api], body, self.connection)

    def start_join(self, **changes):
        """Sends the join of an id that is known, or of an instance; the answer is taken later."""
        body = join(self.group, self.id, **{**self.how, **changes})
        self.asked = self.connection.send("JoinGroup", LATEST["JoinGroup"], body)

    def joined(self):
        octets = self.connection.read_frame(DEADLINE_S)
        answer = wire.read_answer("JoinGroup", LATEST["JoinGroup"], octets)
        if answer["ErrorCode"] != 0:
            raise RuntimeError(f"{self.group}: join is answered {answer}")
        self.id = self.world.names.learn_member(answer["MemberId"])
        self.generation = answer["GenerationId"]
        self.protocol = answer["ProtocolName"]
        return answer

    def join(self, **changes):
        self.start_join(**changes)
        return self.joined()

    def sync(self, **assignments):
        """As the leader with assignments {member id: what}."""
        body = sync(self.group, self.generation, self.id, assignments.items(),
                    instance=self.how.get("instance"), kind=self.how.get("kind", "consumer"),
                    protocol=self.protocol)
        answer = self.ask("SyncGroup", body)
        if answer["ErrorCode"] != 0:
            raise RuntimeError(f"{self.group}: sync is answered {answer}")

    def step_joined(self, label):
        """Records the answer to start_join()."""
        version = LATEST["JoinGroup"]
        answer = self.world.read_step(label, self.connection, "JoinGroup", version, self.asked)
        if answer and answer["ErrorCode"] == 0:
            self.id, self.generation = answer["MemberId"], answer["GenerationId"]
        return answer


def alone(world, group, **how):
    """A member whose group is stable and has nobody else."""
    member = Member(world, group, **how)
    if not how.get("instance"):
        member.get_id()
    member.join()
    member.sync(**{member.id: b"all"})
    return member


def pair(world, group, first=(), second=()):
    """Two members of a stable group; the first leads. `first` and `second`: what join() takes."""
    leader = alone(world, group, **dict(first))
    follower = Member(world, group, **dict(second))
    if "instance" not in follower.how:
        follower.get_id()
    follower.start_join()
    wait_for_state(world, group, "PreparingRebalance")
    leader.join()
    follower.joined()
    leader.sync(**{leader.id: b"first", follower.id: b"second"})
    follower.sync()
    return leader, follower


def describe(world, group):
    return world.ask("DescribeGroups", 5, {"Groups": [group]})["Groups"][0]


def wait_for_state(world, group, *states, members=None):
    """A request on another connection has got there once the group shows it."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        found = describe(world, group)
        if found["GroupState"] in states and members in (None, len(found["Members"])):
            return
        time.sleep(0.01)
    raise RuntimeError(f"{group} is {found['GroupState']} with {len(found['Members'])} members")


def is_answered(world, group, connection):
    """Whether a join is answered at once; else it is parked, and the group prepares for a rebalance."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if not is_parked(connection, 0.01):
            return True
        if describe(world, group)["GroupState"] == "PreparingRebalance":
            return False
    raise RuntimeError(f"{group}: neither an answer nor a rebalance")


def is_parked(connection, patience_s=0.1):
    """Whether no answer has come. A slow broker can look as if; a right one never looks otherwise."""
    return not select.select([connection.socket], [], [], patience_s)[0]
