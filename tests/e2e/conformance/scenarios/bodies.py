"""Random bodies: valid requests of every API and version, changed by chance, the same each run.

The verdict has to be Kafka's: the same decoded answer, or closed. Some changes are not sent: those
that ask for a thousand partitions or a long wait, and those that reach what is tested by name
elsewhere (every topic there is, transactions).
"""
import random
import re
import struct

import members
import samples
import templates
import transactional
import wire
from batch import T0, batch
from samples import QUORUM
from scenarios import scenario
from world import fetch_body, produce_body

CHANGES = 80  # of each version
TOPIC_ID = bytes.fromhex("a0b1c2d3e4f5061728394a5b6c7d8e9f")  # stands for the real one until sent
INTERESTING = (0, 1, -1, -2, 2, 127, 128, 255, 32767, 65535, 2**31 - 1, -2**31, 1 << 24)


def template(api, version, world, mark):
    """A request that says something in every field."""
    if api in samples.REQUESTS:
        return templates.template(api, version, world, mark, TOPIC_ID)
    topic = world.full[0]
    key = TOPIC_ID if version >= 13 else topic
    partitions = [{"PartitionIndex": 0, "Timestamp": -1}, {"PartitionIndex": 1, "Timestamp": T0}]
    if api == "Produce":
        return produce_body(key, batch(b"ab", (b"k", None), at=T0, times=[0, 3]))
    if api == "Fetch":
        body = fetch_body(key, 1, RackId="r")
        body["Topics"][0]["Partitions"].append({"Partition": 1, "PartitionMaxBytes": 100})
        forgotten = {"TopicId": key} if version >= 13 else {"Topic": key}
        body["ForgottenTopicsData"] = [{**forgotten, "Partitions": [5]}] if version >= 7 else []
        return body
    if api == "Metadata":
        return {"Topics": [{"Name": topic}], "AllowAutoTopicCreation": False}
    if api == "FindCoordinator":
        return {"CoordinatorKeys": ["g", "h"]} if version >= 4 else {"Key": "g"}
    if api == "CreateTopics":
        return {"Topics": [
            {"Name": "x.y", "NumPartitions": -1, "ReplicationFactor": -1, "Assignments": [
                {"PartitionIndex": 0, "BrokerIds": [1]}],
             "Configs": [{"Name": "retention.ms", "Value": "-1"}]}],
            "timeoutMs": 5_000, "validateOnly": True}
    if api == "DeleteTopics":
        names = {"Topics": [{"Name": "no.such.topic"}]} if version >= 6 else \
            {"TopicNames": ["no.such.topic"]}
        return {**names, "TimeoutMs": 5_000}
    if api == "CreatePartitions":
        return {"Topics": [{"Name": topic, "Count": 3, "Assignments": [{"BrokerIds": [1]}]}],
                "TimeoutMs": 5_000, "ValidateOnly": True}
    if api == "DescribeConfigs":
        return {"Resources": [{"ResourceType": 2, "ResourceName": topic,
                               "ConfigurationKeys": ["retention.ms", "segment.ms"]}],
                "IncludeSynonyms": True}
    return {
        "ListOffsets": {"ReplicaId": -1, "Topics": [{"Name": topic, "Partitions": partitions}]},
        "ApiVersions": {"ClientSoftwareName": "name", "ClientSoftwareVersion": "1.0"},
        "DeleteRecords": {"Topics": [{"Name": topic, "Partitions": [
            {"PartitionIndex": 1, "Offset": 0}]}], "TimeoutMs": 5_000},
        "InitProducerId": {"TransactionalId": None, "TransactionTimeoutMs": 9_000},
        "OffsetForLeaderEpoch": {"ReplicaId": -1, "Topics": [
            {"Topic": topic, "Partitions": [{"Partition": 0, "LeaderEpoch": 0}]}]},
        "DescribeCluster": {},
        "DescribeTopicPartitions": {"Topics": [{"Name": topic}], "ResponsePartitionLimit": 100,
                                    "Cursor": {"TopicName": topic, "PartitionIndex": 0}},
    }[api]


def changed(octets, chance):
    """One change, named."""
    kind = chance.choice(("bit", "byte", "number", "number", "cut", "grown", "truncated", "longer"))
    out = bytearray(octets)
    at = chance.randrange(len(out) + 1)
    if kind == "truncated":
        return kind, bytes(out[:at])
    if kind == "longer":
        return kind, bytes(out) + chance.randbytes(chance.randrange(1, 9))
    if kind == "cut":
        del out[at:at + chance.randrange(1, 5)]
    elif kind == "grown":
        out[at:at] = chance.randbytes(chance.randrange(1, 5))
    elif kind == "number":
        layout = chance.choice((">i", ">i", ">h", ">q"))
        size = struct.calcsize(layout)
        limit = 1 << (8 * size)
        value = chance.choice(INTERESTING) % limit
        out[at:at + size] = value.to_bytes(size, "big")[:len(out) - at]
    elif at < len(out):
        out[at] = out[at] ^ 1 << chance.randrange(8) if kind == "bit" else chance.randrange(256)
    return kind, bytes(out)


def is_new_topic(topic):
    name = topic["Name"]
    return name != "bodies.Metadata.t" and bool(name and re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", name))


def is_sent(api, version, octets):
    try:
        body = wire.REQUESTS[api].read(octets, version)
    except wire.Malformed:
        return True
    if api in samples.REQUESTS:
        return templates.is_sent(api, body)
    topics = body.get("Topics")
    if 0 < body.get("TimeoutMs", body.get("timeoutMs", 0)) < 2_000 and api != "Produce":
        return False  # on Kafka it is a race
    if api == "Fetch":
        return body["MaxWaitMs"] <= 50
    if api == "Produce" or api == "InitProducerId":
        return body["TransactionalId"] is None
    if api == "Metadata":
        creates = body.get("AllowAutoTopicCreation", True)  # Kafka takes a moment for that: a race
        return bool(topics) and not (creates and any(map(is_new_topic, topics)))
    if api == "FindCoordinator":
        return body.get("KeyType", 0) != 2
    if api == "CreateTopics":
        return all(abs(topic["NumPartitions"]) <= 50 for topic in topics or ())
    if api == "CreatePartitions":
        return all(abs(topic["Count"]) <= 50 for topic in topics or ())
    if api == "DescribeTopicPartitions":
        return bool(topics)
    if api == "DescribeConfigs":
        return all(resource["ConfigurationKeys"] is not None for resource in body["Resources"] or ())
    return True


def random_bodies(world, api):
    world.require(api)
    topic, topic_id = world.full = world.topic("t", 2)
    for partition in range(2):
        world.ask("Produce", 9, produce_body(topic, batch(b"a", b"b"), partition))
    prepare_groups(world)
    if api in ("DescribeTransactions", "ListTransactions"):
        transactional.Producer(world, "known")
    message = wire.REQUESTS[api]
    drop = QUORUM if api == "DescribeQuorum" else ()
    for version in message.versions:
        valid = message.write(template(api, version, world, f"v{version:03}"), version)
        world.call(f"v{version} as it is", api, version, valid.replace(TOPIC_ID, topic_id), drop=drop)
        chance = random.Random(f"{api} {version}")
        for number in range(CHANGES):
            if api in samples.REQUESTS:  # a group for each
                valid = message.write(template(api, version, world, f"{version:02}{number:02}"), version)
            kind, octets = changed(valid, chance)
            if is_sent(api, version, octets):
                octets = octets.replace(TOPIC_ID, topic_id)
                world.call(f"v{version} {number}: {kind}", api, version, octets, drop=drop)


def prepare_groups(world):
    """One group with offsets."""
    offsets = {world.full[0]: {0: 3, 1: 4}}
    world.ask("OffsetCommit", 9, members.commit(world.name("committed"), offsets, epoch=0))


def add(api):
    def run(world):
        random_bodies(world, api)
    run.__name__ = api
    scenario(run)


for each in sorted(wire.REQUESTS):
    if wire.REQUESTS[each].key is not None:
        add(each)
