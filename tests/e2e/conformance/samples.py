"""Requests of the APIs of groups, transactions and administration: one that is right, one that names what is not there.

Each is a function of a world (its topic in world.full), a version and a short text that no other
request of the scenario has; so each request of a group finds a group of its own.
"""
import members
import transactional

NOWHERE = bytes(range(16))
BROKER, TOPIC, LOGGER, CLIENT_METRICS, GROUP = 4, 2, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
# What a quorum's state is from moment to moment.
QUORUM = ("HighWatermark", "LogEndOffset", "LeaderEpoch", "LastFetchTimestamp",
          "LastCaughtUpTimestamp", "Listeners")


def offset_commit(world, version, mark):
    known, unknown = world.full, (world.name("missing"), NOWHERE)
    at = 1 if version >= 10 else 0
    group = world.name(f"g{mark}")
    return (members.commit(group, {known[at]: {0: 3, 1: 4}}, epoch=0),
            members.commit(group, {unknown[at]: {0: 3}, known[at]: {9: 1}}))


def offset_fetch(world, version, mark):
    at = 1 if version >= 10 else 0
    group = world.name("committed")
    commit = members.commit(group, {world.full[0]: {0: 3, 1: 4}}, metadata="m", epoch=0)
    world.ask("OffsetCommit", 9, commit)
    return (members.fetch(version, group, {world.full[at]: [0, 1]}),
            members.fetch(version, world.name("nobody"), {world.full[at]: [0, 9]}))


def join_group(world, version, mark):
    return (members.join(world.name(f"g{mark}"), reason="first"),
            members.join(world.name(f"h{mark}"), "nobody"))


def sync_group(world, version, mark):
    member = members.Member(world, world.name(f"g{mark}")).get_id()
    member.join()
    return (members.sync(member.group, member.generation, member.id, [(member.id, b"mine")]),
            members.sync(world.name("nobody"), 1, "nobody"))


def heartbeat(world, version, mark):
    member = members.alone(world, world.name(f"g{mark}"))
    return (members.heartbeat(member.group, member.generation, member.id),
            members.heartbeat(world.name("nobody"), 1, "nobody"))


def leave_group(world, version, mark):
    member = members.alone(world, world.name(f"g{mark}"))
    return (members.leave(member.group, member.id, version=version),
            members.leave(world.name("nobody"), "nobody", version=version))


def describe_groups(world, version, mark):
    member = members.alone(world, world.name(f"g{mark}"))
    return ({"Groups": [member.group], "IncludeAuthorizedOperations": True},
            {"Groups": [world.name("nobody")], "IncludeAuthorizedOperations": True})


def list_groups(world, version, mark):
    members.alone(world, world.name(f"g{mark}"))
    return {}, {"StatesFilter": ["Nonsense"], "TypesFilter": ["nonsense"]}


def delete_groups(world, version, mark):
    group = world.name(f"g{mark}")
    world.ask("OffsetCommit", 9, members.commit(group, {world.full[0]: {0: 3}}))
    return {"GroupsNames": [group]}, {"GroupsNames": [world.name("nobody")]}


def offset_delete(world, version, mark):
    group = world.name(f"g{mark}")
    world.ask("OffsetCommit", 9, members.commit(group, {world.full[0]: {0: 3}}))

    def body(name):
        return {"GroupId": name, "Topics": [
            {"Name": world.full[0], "Partitions": [{"PartitionIndex": 0}]}]}
    return body(group), body(world.name("nobody"))


def alter_configs(world, version, mark):
    def body(name):
        return {"Resources": [{"ResourceType": TOPIC, "ResourceName": name, "Configs": [
            {"Name": "retention.ms", "Value": "-1"}]}]}
    return body(world.full[0]), body(world.name("missing"))


def incremental_alter_configs(world, version, mark):
    def body(name):
        return {"Resources": [{"ResourceType": TOPIC, "ResourceName": name, "Configs": [
            {"Name": "segment.ms", "ConfigOperation": SET, "Value": "1000000"},
            {"Name": "retention.ms", "ConfigOperation": DELETE, "Value": None}]}]}
    return body(world.full[0]), body(world.name("missing"))


def list_config_resources(world, version, mark):
    return {}, {"ResourceTypes": [99]}


def alter_replica_log_dirs(world, version, mark):
    def body(path, name):
        return {"Dirs": [{"Path": path, "Topics": [{"Name": name, "Partitions": [0, 1]}]}]}
    own = world.ask("DescribeLogDirs", 4, {"Topics": []})["Results"][0]["LogDir"]
    return body(own, world.full[0]), body("/no/such/directory", world.full[0])


def describe_log_dirs(world, version, mark):
    return ({"Topics": [{"Topic": world.full[0], "Partitions": [0, 1]}]},
            {"Topics": [{"Topic": world.name("missing"), "Partitions": [0]}]})


def elect_leaders(world, version, mark):
    def body(name):
        return {"ElectionType": 0, "TimeoutMs": 5_000, "TopicPartitions": [
            {"Topic": name, "Partitions": [0, 1]}]}
    return body(world.full[0]), body(world.name("missing"))


def alter_partition_reassignments(world, version, mark):
    def body(name):
        return {"TimeoutMs": 5_000, "Topics": [{"Name": name, "Partitions": [
            {"PartitionIndex": 0, "Replicas": [1]}, {"PartitionIndex": 1, "Replicas": None}]}]}
    return body(world.full[0]), body(world.name("missing"))


def list_partition_reassignments(world, version, mark):
    return ({"Topics": None, "TimeoutMs": 5_000},
            {"Topics": [{"Name": world.name("missing"), "PartitionIndexes": [0]}], "TimeoutMs": 5_000})


def describe_quorum(world, version, mark):
    def body(name):
        return {"Topics": [{"TopicName": name, "Partitions": [{"PartitionIndex": 0}]}]}
    return body("__cluster_metadata"), body(world.full[0])


def update_features(world, version, mark):
    def body(feature, level):
        return {"timeoutMs": 5_000, "ValidateOnly": True, "FeatureUpdates": [
            {"Feature": feature, "MaxVersionLevel": level}]}
    return body("no.such.feature", 1), body("", 1)


def describe_producers(world, version, mark):
    return ({"Topics": [{"Name": world.full[0], "PartitionIndexes": [0, 1]}]},
            {"Topics": [{"Name": world.name("missing"), "PartitionIndexes": [0]}]})


def unregister_broker(world, version, mark):
    return {"BrokerId": 4711}, {"BrokerId": -1}


def add_partitions_to_txn(world, version, mark):
    producer = transactional.Producer(world, f"x{mark}")
    nobody = (world.name("nobody"), transactional.NOBODY)
    topics = [(world.full[0], [1, 0])]
    if version < 4:
        return (transactional.add(producer.id, producer.own, topics),
                transactional.add(*nobody, topics))
    return (transactional.add_all((producer.id, producer.own, topics, False)),
            transactional.add_all((*nobody, topics, True)))


def add_offsets_to_txn(world, version, mark):
    producer = transactional.Producer(world, f"x{mark}")
    return (transactional.add_group(producer.id, producer.own, "g"),
            transactional.add_group(world.name("nobody"), transactional.NOBODY, "g"))


def end_txn(world, version, mark):
    producer = transactional.Producer(world, f"x{mark}")
    producer.begin([(world.full[0], [0])])
    return (transactional.end(producer.id, producer.own, True),
            transactional.end(world.name("nobody"), transactional.NOBODY, True))


def txn_offset_commit(world, version, mark):
    producer = transactional.Producer(world, f"x{mark}")
    producer.begin([(world.full[0], [0])])
    topic = world.full[1 if version >= 6 else 0]

    def body(name, own):
        return {**members.commit(world.name(f"g{mark}"), {topic: {0: 3}}), "TransactionalId": name, **own}
    return body(producer.id, producer.own), body(world.name("nobody"), {"ProducerId": 3_999_999, "ProducerEpoch": 0})


def write_txn_markers(world, version, mark):
    def body(name):
        return {"Markers": [transactional.marker(transactional.NOBODY, [(name, [0, 1])])]}
    return body(world.full[0]), body(world.name("missing"))


def describe_transactions(world, version, mark):
    producer = transactional.Producer(world, f"x{mark}")
    return {"TransactionalIds": [producer.id]}, {"TransactionalIds": [world.name("nobody")]}


def list_transactions(world, version, mark):
    producer = transactional.Producer(world, f"x{mark}")
    return ({"ProducerIdFilters": [producer.own["ProducerId"]]},
            {"StateFilters": ["Nonsense"], "ProducerIdFilters": [-5]})


REQUESTS = {
    "OffsetCommit": offset_commit, "OffsetFetch": offset_fetch, "JoinGroup": join_group,
    "SyncGroup": sync_group, "Heartbeat": heartbeat, "LeaveGroup": leave_group,
    "DescribeGroups": describe_groups, "ListGroups": list_groups, "DeleteGroups": delete_groups,
    "OffsetDelete": offset_delete, "AlterConfigs": alter_configs,
    "IncrementalAlterConfigs": incremental_alter_configs,
    "ListConfigResources": list_config_resources, "AlterReplicaLogDirs": alter_replica_log_dirs,
    "DescribeLogDirs": describe_log_dirs, "ElectLeaders": elect_leaders,
    "AlterPartitionReassignments": alter_partition_reassignments,
    "ListPartitionReassignments": list_partition_reassignments, "DescribeQuorum": describe_quorum,
    "UpdateFeatures": update_features, "DescribeProducers": describe_producers,
    "UnregisterBroker": unregister_broker, "AddPartitionsToTxn": add_partitions_to_txn,
    "AddOffsetsToTxn": add_offsets_to_txn, "EndTxn": end_txn, "WriteTxnMarkers": write_txn_markers,
    "DescribeTransactions": describe_transactions, "ListTransactions": list_transactions,
    "TxnOffsetCommit": txn_offset_commit,
}


def sample(world, api, version, mark):
    """(right, naming something unknown) for an API of REQUESTS."""
    return REQUESTS[api](world, version, mark)
