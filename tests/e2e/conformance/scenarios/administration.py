"""What one node answers about replicas, directories, leaders, the quorum, features and producers."""
from batch import batch
from samples import QUORUM
from scenarios import scenario
from world import produce_body


@scenario
def directories(world):
    topic, other = world.topic("t", 2)[0], world.topic("u")[0]
    for number in range(3):
        world.ask("Produce", 9, produce_body(topic, batch(b"x" * 100 * number), 0))
    for version in range(1, 6):
        for label, topics in (
                ("all", None), ("none", []), ("one", [(topic, [0])]), ("all its partitions", [(topic, [0, 1])]),
                ("no partitions", [(topic, [])]), ("unknown", [(world.name("no"), [0])]),
                ("unknown partition", [(topic, [7, -1, 1])]), ("two", [(topic, [0]), (other, [0])]),
                ("one twice", [(topic, [0, 0]), (topic, [0])])):
            asked = None if topics is None else [
                {"Topic": name, "Partitions": partitions} for name, partitions in topics]
            world.call(f"v{version} {label}", "DescribeLogDirs", version, {"Topics": asked})
    own = world.ask("DescribeLogDirs", 4, {"Topics": []})["Results"][0]["LogDir"]
    for version in (1, 2):
        for label, path, name, partitions in (
                ("where they are", own, topic, [0, 1]), ("nowhere", "/no/such", topic, [0]),
                ("relative", "x", topic, [0]), ("empty path", "", topic, [0]),
                ("unknown topic", own, world.name("no"), [0]), ("unknown partition", own, topic, [7, -1]),
                ("unknown both", "/no/such", world.name("no"), [0]), ("no partitions", own, topic, []),
                ("one twice", own, topic, [0, 0])):
            world.call(f"move v{version} {label}", "AlterReplicaLogDirs", version, {"Dirs": [
                {"Path": path, "Topics": [{"Name": name, "Partitions": partitions}]}]})
        world.call(f"move v{version} nothing", "AlterReplicaLogDirs", version, {"Dirs": []})
        world.call(f"move v{version} no topics", "AlterReplicaLogDirs", version,
                   {"Dirs": [{"Path": own, "Topics": []}]})
    world.ask("DeleteRecords", 2, {"Topics": [{"Name": topic, "Partitions": [
        {"PartitionIndex": 0, "Offset": 2}]}], "TimeoutMs": 5_000})
    world.call("after records are deleted", "DescribeLogDirs", 4, {"Topics": [
        {"Topic": topic, "Partitions": [0]}]})


@scenario
def leaders(world):
    topic, _ = world.topic("t", 2)
    for version in range(3):
        for kind in (0, 1, 2, -1):
            for label, topics in (
                    ("one", [(topic, [0])]), ("both", [(topic, [0, 1])]), ("unknown", [(world.name("no"), [0])]),
                    ("unknown partition", [(topic, [7, -1, 0])]), ("none", []), ("no partitions", [(topic, [])]),
                    ("one twice", [(topic, [0, 0])]), ("a topic twice", [(topic, [0]), (topic, [1])]),
                    ("bad name", [("a b", [0]), ("", [0])]), ("all", None)):
                if version == 0 and kind:
                    continue
                asked = None if topics is None else [
                    {"Topic": name, "Partitions": partitions} for name, partitions in topics]
                world.call(f"v{version} kind {kind}, {label}", "ElectLeaders", version, {
                    "ElectionType": kind, "TopicPartitions": asked, "TimeoutMs": 10_000})


@scenario
def reassignments(world):
    topic, _ = world.topic("t", 2)
    for version in (0, 1):
        for label, name, partition, replicas in (
                ("to itself", topic, 0, [1]), ("cancelled", topic, 0, None), ("nobody", topic, 0, []),
                ("an unknown broker", topic, 0, [4711]), ("it and an unknown one", topic, 0, [1, 2]),
                ("twice itself", topic, 0, [1, 1]), ("a negative one", topic, 0, [-1]),
                ("unknown topic", world.name("no"), 0, [1]), ("unknown partition", topic, 7, [1]),
                ("negative partition", topic, -1, [1]), ("bad name", "a b", 0, [1]),
                ("empty name", "", 0, [1]), ("unknown topic, cancelled", world.name("no"), 0, None)):
            for factor in (True, False) if version else (True,):
                world.call(f"v{version} {label}, factor may change {factor}", "AlterPartitionReassignments",
                           version, {"TimeoutMs": 10_000, "AllowReplicationFactorChange": factor, "Topics": [
                               {"Name": name, "Partitions": [
                                   {"PartitionIndex": partition, "Replicas": replicas}]}]})
        world.call(f"v{version} none", "AlterPartitionReassignments", version,
                   {"TimeoutMs": 10_000, "Topics": []})
        world.call(f"v{version} no partitions", "AlterPartitionReassignments", version,
                   {"TimeoutMs": 10_000, "Topics": [{"Name": topic, "Partitions": []}]})
        both = {"PartitionIndex": 0, "Replicas": [1]}, {"PartitionIndex": 1, "Replicas": [9]}
        world.call(f"v{version} good and bad", "AlterPartitionReassignments", version,
                   {"TimeoutMs": 10_000, "Topics": [{"Name": topic, "Partitions": list(both)}]})
    for label, topics in (("all", None), ("none", []), ("one", [(topic, [0])]),
                          ("unknown", [(world.name("no"), [0])]), ("unknown partition", [(topic, [7])]),
                          ("no partitions", [(topic, [])])):
        asked = None if topics is None else [
            {"Name": name, "PartitionIndexes": partitions} for name, partitions in topics]
        world.call(f"list {label}", "ListPartitionReassignments", 0,
                   {"Topics": asked, "TimeoutMs": 10_000})


@scenario
def quorum(world):
    topic, _ = world.topic("t")
    metadata = "__cluster_metadata"
    for version in range(3):
        for label, topics in (
                ("its topic", [(metadata, [0])]), ("its partition 1", [(metadata, [1])]),
                ("two partitions", [(metadata, [0, 1])]), ("another topic", [(topic, [0])]),
                ("unknown topic", [(world.name("no"), [0])]), ("none", []), ("no partitions", [(metadata, [])]),
                ("two topics", [(metadata, [0]), (topic, [0])]), ("twice", [(metadata, [0]), (metadata, [0])])):
            world.call(f"v{version} {label}", "DescribeQuorum", version, {"Topics": [
                {"TopicName": name, "Partitions": [{"PartitionIndex": each} for each in partitions]}
                for name, partitions in topics]}, drop=QUORUM)


@scenario
def features(world):
    """Nothing is changed: what is right is only checked."""
    for version in range(3):
        for label, updates, validate in (
                ("unknown", [("nonsense", 1, 1)], False), ("unknown, only checked", [("nonsense", 1, 1)], True),
                ("empty name", [("", 1, 1)], False), ("none", [], False), ("none, only checked", [], True),
                ("too high", [("group.version", 99, 1)], True), ("negative", [("group.version", -1, 1)], True),
                ("the same", [("group.version", 1, 1)], True), ("down", [("group.version", 0, 1)], True),
                ("down, safely", [("group.version", 0, 2)], True),
                ("down, unsafely", [("group.version", 0, 3)], True),
                ("kind 0", [("group.version", 1, 0)], True), ("kind 9", [("group.version", 1, 9)], True),
                ("metadata too high", [("metadata.version", 9999, 1)], True),
                ("metadata too low", [("metadata.version", 1, 1)], True),
                ("metadata to nothing", [("metadata.version", 0, 3)], True),
                ("kraft version", [("kraft.version", 1, 1)], True),
                ("transactions, the same", [("transaction.version", 2, 1)], True),
                ("transactions, too high", [("transaction.version", 3, 1)], True),
                ("transactions, down", [("transaction.version", 1, 1)], True),
                ("transactions, down, safely", [("transaction.version", 1, 2)], True),
                ("transactions, down, unsafely", [("transaction.version", 0, 3)], True),
                ("twice", [("group.version", 1, 1), ("group.version", 1, 1)], True),
                ("two", [("group.version", 1, 1), ("nonsense", 1, 1)], True)):
            if version == 0 and validate:
                continue
            world.call(f"v{version} {label}", "UpdateFeatures", version, {
                "timeoutMs": 10_000, "ValidateOnly": validate, "FeatureUpdates": [
                    {"Feature": name, "MaxVersionLevel": level, "UpgradeType": kind}
                    for name, level, kind in updates]})


@scenario
def producers(world):
    topic, _ = world.topic("t", 2)
    first, second = world.producer_id(), world.producer_id()
    world.ask("Produce", 9, produce_body(topic, batch(b"a", b"b", pid=first, epoch=0, sequence=0)))
    world.ask("Produce", 9, produce_body(topic, batch(b"a", pid=first, epoch=0, sequence=2)))
    world.ask("Produce", 9, produce_body(topic, batch(b"a", pid=second, epoch=3, sequence=0)))
    world.ask("Produce", 9, produce_body(topic, batch(b"a", pid=second, epoch=0, sequence=0), 1))
    world.ask("Produce", 9, produce_body(topic, batch(b"nobody"), 1))
    for label, topics in (("one", [(topic, [0])]), ("both", [(topic, [0, 1])]),
                          ("unknown partition", [(topic, [7, -1, 1])]), ("unknown topic", [(world.name("no"), [0])]),
                          ("bad name", [("a b", [0]), ("", [0])]), ("none", []), ("no partitions", [(topic, [])]),
                          ("one twice", [(topic, [1, 1])]), ("a topic twice", [(topic, [1]), (topic, [1])])):
        world.call(label, "DescribeProducers", 0, {"Topics": [
            {"Name": name, "PartitionIndexes": partitions} for name, partitions in topics]})


@scenario
def cluster(world):
    for version in range(3):
        for operations in (False, True):
            for endpoint in (1, 2, 0, 3, -1):
                for fenced in (False, True):
                    world.call(f"v{version} operations {operations}, endpoint {endpoint}, fenced {fenced}",
                               "DescribeCluster", version, {
                                   "IncludeClusterAuthorizedOperations": operations,
                                   "EndpointType": endpoint, "IncludeFencedBrokers": fenced})
    for broker in (2, 4711, -1, 2**31 - 1, -2**31):
        world.call(f"broker {broker} is unregistered", "UnregisterBroker", 0, {"BrokerId": broker})


@scenario
def authorized_operations(world):
    """What Metadata says one may do with topics and, up to version 10, with the cluster (KIP-430)."""
    topic, topic_id = world.topic("t")
    other = world.topic("u")[0]
    for version in range(8, 14):
        for label, topics in (
                ("one", [{"Name": topic}]), ("two", [{"Name": topic}, {"Name": other}]),
                ("an unknown one", [{"Name": world.name("no")}]),
                ("a known and an unknown one", [{"Name": topic}, {"Name": world.name("no")}]),
                ("a bad name", [{"Name": "a b"}]), ("none", []),
                ("by id", [{"Name": None, "TopicId": topic_id}]),
                ("by an unknown id", [{"Name": None, "TopicId": bytes(range(16))}])):
            if label.startswith("by") and version < 12:
                continue
            for of_topics in (False, True):
                for of_cluster in (False, True) if version <= 10 else (False,):
                    world.call(f"v{version} {label}, of topics {of_topics}, of the cluster {of_cluster}",
                               "Metadata", version, {
                                   "Topics": topics, "AllowAutoTopicCreation": False,
                                   "IncludeTopicAuthorizedOperations": of_topics,
                                   "IncludeClusterAuthorizedOperations": of_cluster})


@scenario
def deleted_records(world):
    topic, other = world.topic("t", 2)[0], world.topic("u")[0]
    for name in (topic, other):
        world.ask("Produce", 9, produce_body(name, batch(b"a", b"b", b"c")))
    for version in range(3):
        for label, topics in (
                ("none", []), ("no partitions", [(topic, [])]), ("the same again", [(topic, [(0, version)])]),
                ("beyond the end", [(topic, [(0, 4)])]), ("negative", [(topic, [(0, -2)])]),
                ("lowest", [(topic, [(0, -2**63)])]), ("unknown partition", [(topic, [(7, 0), (-1, 0)])]),
                ("unknown topic", [(world.name("no"), [(0, 0)])]), ("bad name", [("a b", [(0, 0)]), ("", [(0, 0)])]),
                ("good and bad", [(topic, [(0, version), (1, 5), (1, 0)]), (world.name("no"), [(0, 0)])]),
                ("two topics", [(topic, [(0, version)]), (other, [(0, version)])]),
                ("the group topic", [("__consumer_offsets", [(0, 0)])])):
            world.call(f"v{version} {label}", "DeleteRecords", version, {"TimeoutMs": 10_000, "Topics": [
                {"Name": name, "Partitions": [{"PartitionIndex": index, "Offset": offset}
                                              for index, offset in partitions]}
                for name, partitions in topics]})
    world.call("to the end", "DeleteRecords", 2, {"TimeoutMs": 10_000, "Topics": [
        {"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": -1}]}]})
    world.offset_at("the start then", topic, -2)
    world.offset_at("the end then", topic, -1)
