"""Every version of every API: one request that is right, one that names what is not there."""
import struct

import samples
import wire
from batch import T0, batch
from samples import QUORUM
from scenarios import scenario
from world import UNSERVED, fetch_body, produce_body

NOWHERE = bytes(range(16))


def requests(world, api, version):
    """(body that is right, body that names something unknown)."""
    if api in samples.REQUESTS:
        return samples.sample(world, api, version, version)
    topic = world.full
    at = 1 if version >= 13 else 0
    missing = (world.name("missing"), NOWHERE)

    def offsets(name):
        return {"ReplicaId": -1, "Topics": [
            {"Name": name, "Partitions": [{"PartitionIndex": i, "Timestamp": at}
                                          for i, at in ((0, -1), (1, -2), (9, T0 + 1))]}]}

    def made(name):
        return {"Topics": [{"Name": f"{name}{version}", "NumPartitions": 1, "ReplicationFactor": 1}],
                "timeoutMs": 5_000}

    def deleted(name, octets):
        if version >= 6:
            return {"Topics": [{"Name": None, "TopicId": octets}], "TimeoutMs": 5_000}
        return {"TopicNames": [name], "TimeoutMs": 5_000}

    def trimmed(name):
        return {"Topics": [{"Name": name, "Partitions": [{"PartitionIndex": 0, "Offset": 1}]}],
                "TimeoutMs": 5_000}

    def epochs(name):
        return {"ReplicaId": -1, "Topics": [
            {"Topic": name, "Partitions": [{"Partition": 0, "LeaderEpoch": 0}]}]}

    def configs(name):
        return {"Resources": [{"ResourceType": 2, "ResourceName": name, "ConfigurationKeys":
                               ["retention.ms", "cleanup.policy", "max.message.bytes", "none"]}],
                "IncludeSynonyms": True}

    def keys(*names):
        return {"CoordinatorKeys": list(names)} if version >= 4 else {"Key": names[0]}
    software = {"ClientSoftwareName": "conformance", "ClientSoftwareVersion": "1"}
    doomed = world.topic(f"doomed{version}") if api == "DeleteTopics" else missing
    return {
        "Produce": (produce_body(topic[at], batch(b"x", at=T0 + version), 1),
                    produce_body(missing[at], batch(b"x"))),
        "Fetch": (fetch_body(topic[at]), fetch_body(missing[at])),
        "ListOffsets": (offsets(topic[0]), offsets(missing[0])),
        "Metadata": ({"Topics": [{"Name": topic[0]}], "AllowAutoTopicCreation": False},
                     {"Topics": [{"Name": world.name("a b")}], "AllowAutoTopicCreation": False}),
        "FindCoordinator": (keys("group"), {**keys("group"), "KeyType": 5 if version else 0}),
        "ApiVersions": (software, {**software, "ClientSoftwareName": "no name"}),
        "CreateTopics": (made(world.name("made")), made(world.name("a b"))),
        "DeleteTopics": (deleted(*doomed), deleted(*missing)),
        "DeleteRecords": (trimmed(topic[0]), trimmed(missing[0])),
        "InitProducerId": ({"TransactionalId": None}, {"TransactionalId": ""}),
        "OffsetForLeaderEpoch": (epochs(topic[0]), epochs(missing[0])),
        "DescribeConfigs": (configs(topic[0]), configs(missing[0])),
        "CreatePartitions": (
            {"Topics": [{"Name": topic[0], "Count": 2 + version + 1, "Assignments": None}],
             "TimeoutMs": 5_000},
            {"Topics": [{"Name": missing[0], "Count": 9, "Assignments": None}], "TimeoutMs": 5_000}),
        "DescribeCluster": ({}, {"IncludeClusterAuthorizedOperations": True}),
        "DescribeTopicPartitions": ({"Topics": [{"Name": topic[0]}]},
                                    {"Topics": [{"Name": missing[0]}]}),
    }[api]


def every_version(world, api):
    world.require(api)
    world.full = world.topic("full", 2)
    world.ask("Produce", 9, produce_body(world.full[0], batch(b"a", b"b", times=[0, 2])))
    for version in wire.REQUESTS[api].versions:
        right, unknown = requests(world, api, version)
        # What a broker has as defaults is for the test of the configuration.
        drop = {"CreateTopics": ("Configs",), "DescribeQuorum": QUORUM}.get(api, ())
        world.call(f"v{version} right", api, version, right, drop=drop)
        world.call(f"v{version} unknown", api, version, unknown, drop=drop)


def add(api):
    def run(world):
        every_version(world, api)
    run.__name__ = api
    scenario(run)


for each in sorted(wire.REQUESTS):
    if wire.REQUESTS[each].key is not None:
        add(each)


@scenario
def unserved_versions(world):
    for api, message in wire.REQUESTS.items():
        if message.key is None or api == "ApiVersions":
            continue
        for version in (message.versions[0] - 1, message.versions[-1] + 1, 32767, -1, -32768):
            world.call(f"{api} v{version}", api, version, b"\0" * 40, read_as=UNSERVED)
    for key in (4, 5, 6, 7, 52, 58, 62, 95, 99, 1000, 32767, -1, -32768):
        world.main.write(wire.frame(wire.request_head(key, 0, 1, "x") + b"\0" * 40))
        world.read_step(f"key {key}", world.main, "ApiVersions", 0, 1)


@scenario
def api_versions(world):
    software = {"ClientSoftwareName": "conformance", "ClientSoftwareVersion": "1"}
    for version in (*range(10), 99, 32767, -1, -2, -32768):
        known = version in wire.REQUESTS["ApiVersions"].versions
        body = wire.REQUESTS["ApiVersions"].write(software, min(max(version, 0), 5))
        world.call(f"v{version}", "ApiVersions", version, body, read_as=version if known else 0)
        if not known:
            world.call(f"v{version} without a body", "ApiVersions", version, b"", read_as=0)
    for cluster, node in ((None, -1), (None, 1), ("no such cluster", 1), ("", 1), ("", -1)):
        world.call(f"cluster {cluster}, node {node}", "ApiVersions", 5,
                   {**software, "ClusterId": cluster, "NodeId": node})
    cluster = world.ask("DescribeCluster", 0, {})["ClusterId"]
    for node in (1, 2, -1, -2):
        world.call(f"its own cluster, node {node}", "ApiVersions", 5,
                   {**software, "ClusterId": cluster, "NodeId": node})


@scenario
def client_ids(world):
    world.full = world.topic("full")
    for name in (None, "", "x", "é", "a" * 32_000):
        for api, version, body in (("ApiVersions", 0, {}), ("Metadata", 1, {"Topics": []}),
                                   ("Fetch", 12, fetch_body(world.full[0])),
                                   ("DescribeCluster", 0, {})):
            world.call(f"{api} of client {name and name[:3]!r}", api, version, body, client_id=name)
    head = struct.pack(">hhi", 18, 0, 1)
    for label, octets in (("length -2", head + b"\xff\xfe"), ("no UTF-8", head + b"\0\2\xff\xfe"),
                          ("longer than the frame", head + b"\0\x09abc"), ("missing", head)):
        world.main.write(wire.frame(octets))
        world.read_step(f"client id {label}", world.main, "ApiVersions", 0, 1)
        world.main.close()


@scenario
def frames(world):
    head = wire.request_head(18, 0, 1, "x")
    for label, octets in (
            ("size 0", b"\0\0\0\0"), ("size -1", b"\xff\xff\xff\xff"),
            ("smallest size", b"\x80\0\0\0"), ("largest size", b"\x7f\xff\xff\xff"),
            ("over 100 MiB", struct.pack(">i", (100 << 20) + 1)), ("HTTP", b"GET / HTTP/1.1\r\n\r\n"),
            ("TLS", bytes.fromhex("16030100a5010000a10303") + b"\0" * 40),
            *((f"cut to {n} bytes", wire.frame(head[:n])) for n in range(1, len(head) - 2)),
            ("whole, then bytes behind it", wire.frame(head + b"tail"))):
        world.main.write(octets)
        world.read_step(label, world.main, "ApiVersions", 0, 1)
        world.main.close()
