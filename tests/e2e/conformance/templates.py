"""Requests of the APIs of groups, transactions and administration that say something in every field, for
scenarios/bodies.py. Nothing in them depends on the run; `mark` is a text of four letters that no other
request has, so that each finds a group of its own."""
import members
from samples import APPEND, DELETE, SET, SUBTRACT, TOPIC
from transactional import NOBODY, add, add_all, add_group, end, marker


def groups(world, version, mark, topic_id):
    group = world.name(mark)
    topic = topic_id if version >= 10 else world.full[0]
    fetched = members.fetch(version, world.name("committed"), {topic: [0, 1]}, member="", stable=True)
    return {
        "OffsetCommit": members.commit(group, {topic: {0: 3, 1: 4}}, epoch=0),
        "OffsetFetch": fetched,
        "JoinGroup": members.join(group, protocols=("range", "sticky"), reason="r"),
        "SyncGroup": members.sync(group, 1, "m", [("m", b"mine")], instance="i"),
        "Heartbeat": members.heartbeat(group, 1, "m", "i"),
        "LeaveGroup": members.leave(group, "m", version=version) if version < 3 else
        {"GroupId": group, "Members": [{"MemberId": "m", "GroupInstanceId": "i", "Reason": "r"}]},
        "DescribeGroups": {"Groups": [group, "h"], "IncludeAuthorizedOperations": True},
        "ListGroups": {"StatesFilter": ["Empty"], "TypesFilter": ["classic"]},
        "DeleteGroups": {"GroupsNames": [group, "h"]},
        "OffsetDelete": {"GroupId": world.name("committed"), "Topics": [
            {"Name": world.full[0], "Partitions": [{"PartitionIndex": 1}]}]},
    }


def transactions(world, version, topic_id):
    """Of producers that do not exist, whose ids are the same in every run; but for the markers."""
    topics, name = [(world.full[0], [0, 1])], world.name("nobody")
    committed = topic_id if version >= 6 else world.full[0]
    return {
        "AddPartitionsToTxn": add(name, NOBODY, topics) if version < 4 else
        add_all((name, NOBODY, topics, False), (name + "2", NOBODY, topics, True)),
        "AddOffsetsToTxn": add_group(name, NOBODY, "g"),
        "EndTxn": end(name, NOBODY, True),
        "TxnOffsetCommit": {**members.commit("g", {committed: {0: 3, 1: 4}}), "TransactionalId": name, **NOBODY},
        "WriteTxnMarkers": {"Markers": [
            marker(NOBODY, topics), marker({"ProducerId": 7, "ProducerEpoch": 3}, topics, True, 5)]},
        "DescribeTransactions": {"TransactionalIds": [world.name("known"), name]},
        "ListTransactions": {"StateFilters": ["Empty", "Ongoing"], "DurationFilter": 0,
                             "TransactionalIdPattern": world.name("k[a-z]{4}").replace(".", "\\.")},
    }


def administration(world):
    topic = world.full[0]
    resource = {"ResourceType": TOPIC, "ResourceName": topic}
    changes = ((SET, "retention.ms", "10000000"), (DELETE, "segment.ms", None),
               (APPEND, "cleanup.policy", "compact"), (SUBTRACT, "cleanup.policy", "delete"))
    return {
        "AlterConfigs": {"Resources": [{**resource, "Configs": [
            {"Name": "retention.ms", "Value": "10000000"}]}], "ValidateOnly": True},
        "IncrementalAlterConfigs": {"Resources": [{**resource, "Configs": [
            {"Name": name, "ConfigOperation": operation, "Value": value}
            for operation, name, value in changes[:3]]}], "ValidateOnly": True},
        "ListConfigResources": {"ResourceTypes": [16, 32]},
        "AlterReplicaLogDirs": {"Dirs": [{"Path": "/no/such", "Topics": [
            {"Name": topic, "Partitions": [0]}]}]},
        "DescribeLogDirs": {"Topics": [{"Topic": topic, "Partitions": [0, 1]}]},
        "ElectLeaders": {"ElectionType": 0, "TimeoutMs": 5_000, "TopicPartitions": [
            {"Topic": topic, "Partitions": [0, 1]}]},
        "AlterPartitionReassignments": {"TimeoutMs": 5_000, "Topics": [{"Name": topic, "Partitions": [
            {"PartitionIndex": 0, "Replicas": [1]}, {"PartitionIndex": 1, "Replicas": None}]}]},
        "ListPartitionReassignments": {"TimeoutMs": 5_000, "Topics": [
            {"Name": topic, "PartitionIndexes": [0]}]},
        "DescribeQuorum": {"Topics": [{"TopicName": "__cluster_metadata", "Partitions": [
            {"PartitionIndex": 0}]}]},
        "UpdateFeatures": {"timeoutMs": 5_000, "ValidateOnly": True, "FeatureUpdates": [
            {"Feature": "no.such", "MaxVersionLevel": 1}]},
        "DescribeProducers": {"Topics": [{"Name": topic, "PartitionIndexes": [0, 1]}]},
        "UnregisterBroker": {"BrokerId": 4711},
    }


def template(api, version, world, mark, topic_id):
    known = {**groups(world, version, mark, topic_id), **transactions(world, version, topic_id)}
    return known[api] if api in known else administration(world)[api]


def is_sent(api, body):
    """Not what harms the broker, nor what is a race on Kafka."""
    if 0 < len(body) and body.get("TimeoutMs", body.get("timeoutMs", 5_000)) < 2_000:
        return False
    if api == "AddPartitionsToTxn" and "Transactions" in body and not body["Transactions"]:
        return False  # Kafka never answers
    if api == "WriteTxnMarkers":
        return is_answered([marked(each) for each in body["Markers"] or ()])
    if api == "UnregisterBroker":
        return body["BrokerId"] not in (0, 1)
    if api in ("AlterConfigs", "IncrementalAlterConfigs"):
        return all(each["ResourceType"] not in (4, 8) for each in body["Resources"] or ())
    return True


def marked(marker):
    return [(topic["Name"], index) for topic in marker["Topics"] or ()
            for index in topic["PartitionIndexes"] or ()]


def is_answered(markers):
    """Kafka never answers where a marker names a partition twice, or some but not all have only
    partitions that do not exist."""
    exist = [any(name == "bodies.WriteTxnMarkers.t" and index in (0, 1) for name, index in each)
             for each in markers]
    return all(len(each) == len(set(each)) for each in markers) and (all(exist) or not any(exist))
