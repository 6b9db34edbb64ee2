"""Configurations: describing and changing those of topics, brokers, groups, clients' metrics, loggers."""
from samples import APPEND, BROKER, CLIENT_METRICS, DELETE, GROUP, LOGGER, SET, SUBTRACT, TOPIC
from scenarios import scenario

KINDS = {"topic": TOPIC, "broker": BROKER, "logger": LOGGER, "metrics": CLIENT_METRICS, "group": GROUP}


def describe(world, label, kind, name, keys=None, version=4, synonyms=True, documentation=False):
    world.call(label, "DescribeConfigs", version, {
        "Resources": [{"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}],
        "IncludeSynonyms": synonyms, "IncludeDocumentation": documentation})


def incremental(kind, name, *changes, validate=False):
    """Changes are (operation, key, value)."""
    return {"Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": [
        {"Name": key, "ConfigOperation": operation, "Value": value}
        for operation, key, value in changes]}], "ValidateOnly": validate}


def replacing(kind, name, validate=False, **values):
    return {"Resources": [{"ResourceType": kind, "ResourceName": name, "Configs": [
        {"Name": key.replace("_", "."), "Value": value} for key, value in values.items()]}],
        "ValidateOnly": validate}


def change(world, label, kind, name, *changes, keys=(), version=1, **how):
    """Changes, and shows what these keys are then."""
    world.call(label, "IncrementalAlterConfigs", version, incremental(kind, name, *changes, **how))
    world.settle()
    if keys:
        describe(world, f"{label}: then", kind, name, list(keys))


@scenario
def of_a_topic(world):
    topic, _ = world.topic("t", cleanup_policy="delete")
    for version in (0, 1):
        for label, changes, keys in (
                ("set", [(SET, "retention.ms", "1000000")], ("retention.ms",)),
                ("set two", [(SET, "segment.ms", "70000"), (SET, "flush.ms", "5")],
                 ("segment.ms", "flush.ms")),
                ("delete", [(DELETE, "segment.ms", None)], ("segment.ms",)),
                ("delete with a value", [(DELETE, "flush.ms", "7")], ("flush.ms",)),
                ("delete what is not set", [(DELETE, "flush.ms", None)], ("flush.ms",)),
                ("append", [(APPEND, "cleanup.policy", "compact")], ("cleanup.policy",)),
                ("append again", [(APPEND, "cleanup.policy", "compact")], ("cleanup.policy",)),
                ("subtract", [(SUBTRACT, "cleanup.policy", "delete")], ("cleanup.policy",)),
                ("subtract what is not there", [(SUBTRACT, "cleanup.policy", "delete")],
                 ("cleanup.policy",)),
                ("append two", [(APPEND, "cleanup.policy", "delete,compact")], ("cleanup.policy",)),
                ("subtract all", [(SUBTRACT, "cleanup.policy", "compact,delete")], ("cleanup.policy",)),
                ("append to nothing", [(APPEND, "cleanup.policy", "delete")], ("cleanup.policy",)),
                ("set back", [(DELETE, "cleanup.policy", None)], ("cleanup.policy",))):
            change(world, f"v{version} {label}", TOPIC, topic, *changes, keys=keys, version=version)
    describe(world, "everything", TOPIC, topic)
    describe(world, "everything, documented", TOPIC, topic, documentation=True)


@scenario
def refused_changes_of_a_topic(world):
    topic, _ = world.topic("t")
    for validate in (False, True):
        for label, changes in (
                ("good", [(SET, "retention.ms", "5000000")]), ("unknown key", [(SET, "nonsense", "1")]),
                ("no number", [(SET, "retention.ms", "abc")]), ("too small", [(SET, "retention.ms", "-2")]),
                ("too large", [(SET, "retention.ms", "9223372036854775808")]),
                ("blanks", [(SET, "retention.ms", " 6000000 ")]), ("empty", [(SET, "retention.ms", "")]),
                ("null", [(SET, "retention.ms", None)]), ("wrong case", [(SET, "Retention.ms", "1")]),
                ("empty key", [(SET, "", "1")]), ("operation 4", [(4, "retention.ms", "1")]),
                ("operation -1", [(-1, "retention.ms", "1")]),
                ("append to what is no list", [(APPEND, "retention.ms", "1")]),
                ("subtract from what is no list", [(SUBTRACT, "retention.ms", "1")]),
                ("append null", [(APPEND, "cleanup.policy", None)]),
                ("append nonsense", [(APPEND, "cleanup.policy", "nonsense")]),
                ("append nothing", [(APPEND, "cleanup.policy", "")]),
                ("one key twice", [(SET, "retention.ms", "1"), (SET, "retention.ms", "2")]),
                ("set and delete", [(SET, "retention.ms", "1"), (DELETE, "retention.ms", None)]),
                ("good and bad", [(SET, "flush.ms", "9"), (SET, "nonsense", "1")]),
                ("bad boolean", [(SET, "preallocate", "yes")]),
                ("boolean in capitals", [(SET, "preallocate", "TRUE")]),
                ("bad choice", [(SET, "compression.type", "bzip2")]),
                ("number of a double", [(SET, "min.cleanable.dirty.ratio", "1.5")]),
                ("replicas", [(SET, "min.insync.replicas", "2")]),
                ("no replicas", [(SET, "min.insync.replicas", "0")]),
                ("throttled replicas", [(SET, "leader.replication.throttled.replicas", "0:1,1:1")]),
                ("bad throttled replicas", [(SET, "leader.replication.throttled.replicas", "0-1")]),
                ("all throttled replicas", [(SET, "follower.replication.throttled.replicas", "*")]),
                ("compaction lag the wrong way", [(SET, "min.compaction.lag.ms", "100"),
                                                  (SET, "max.compaction.lag.ms", "50")]),
                ("remote storage", [(SET, "remote.storage.enable", "true")]),
                ("local retention", [(SET, "local.retention.ms", "100")]),
                ("internal key", [(SET, "internal.segment.bytes", "1000000")]),
                ("too small a segment", [(SET, "segment.bytes", "100000")]),
                ("no change", [])):
            change(world, f"{label}, validate {validate}", TOPIC, topic, *changes, validate=validate)
        describe(world, f"validate {validate}: then", TOPIC, topic)


@scenario
def resources(world):
    topic, _ = world.topic("t")
    names = {"known topic": (TOPIC, topic), "unknown topic": (TOPIC, world.name("missing")),
             "bad topic": (TOPIC, "a b"), "empty topic": (TOPIC, ""), "broker 1": (BROKER, "1"),
             "broker 2": (BROKER, "2"), "broker -1": (BROKER, "-1"), "broker x": (BROKER, "x"),
             "broker 01": (BROKER, "01"), "logger 1": (LOGGER, "1"), "logger 2": (LOGGER, "2"),
             "logger x": (LOGGER, "x"), "all loggers": (LOGGER, ""), "empty group": (GROUP, ""),
             "empty metrics": (CLIENT_METRICS, ""), "kind 0": (0, "x"), "kind 1": (1, "x"),
             "kind 3": (3, "x"), "kind 64": (64, "x"), "kind -1": (-1, "x"), "kind 127": (127, "x")}
    for label, (kind, name) in names.items():
        for version in (1, 2, 3, 4):
            describe(world, f"describe v{version}, {label}", kind, name, ["retention.ms", "nonsense"],
                     version)
        for version in (0, 1):
            for validate in (False, True):
                world.call(f"change nothing v{version}, {label}, {validate}", "IncrementalAlterConfigs",
                           version, incremental(kind, name, validate=validate))
        for version in (0, 1, 2):
            world.call(f"nonsense v{version}, {label}", "AlterConfigs", version,
                       replacing(kind, name, nonsense="1", validate=True))
        world.call(f"nonsense, {label}", "IncrementalAlterConfigs", 1,
                   incremental(kind, name, (SET, "nonsense", "1"), validate=True))


@scenario
def several_resources(world):
    topic, other = world.topic("t")[0], world.topic("u")[0]

    def both(first, second):
        return {"Resources": first["Resources"] + second["Resources"]}
    good = incremental(TOPIC, topic, (SET, "flush.ms", "11"))
    for label, second in (("and another", incremental(TOPIC, other, (SET, "flush.ms", "12"))),
                          ("and an unknown one", incremental(TOPIC, world.name("no"), (SET, "flush.ms", "1"))),
                          ("and a bad value", incremental(TOPIC, other, (SET, "flush.ms", "x"))),
                          ("and the same", good),
                          ("and the same, otherwise", incremental(TOPIC, topic, (SET, "flush.ms", "13"))),
                          ("and a broker that is not", incremental(BROKER, "9", (SET, "background.threads", "9")))):
        for version in (0, 1):
            world.call(f"v{version} one {label}", "IncrementalAlterConfigs", version, both(good, second))
            world.settle()
            describe(world, f"v{version} one {label}: then", TOPIC, topic, ["flush.ms"])
            describe(world, f"v{version} one {label}: the other", TOPIC, other, ["flush.ms"])
    for version in (0, 1):
        world.call(f"v{version} none", "IncrementalAlterConfigs", version, {"Resources": []})
    for version in (0, 1, 2):
        world.call(f"alter v{version} none", "AlterConfigs", version, {"Resources": []})
        world.call(f"alter v{version} two", "AlterConfigs", version, both(
            replacing(TOPIC, topic, flush_ms="14"), replacing(TOPIC, world.name("no"), flush_ms="14")))
    for version in (1, 2, 3, 4):
        asked = [{"ResourceType": TOPIC, "ResourceName": name, "ConfigurationKeys": ["flush.ms"]}
                 for name in (other, topic, world.name("no"), topic)]
        world.call(f"describe v{version} several", "DescribeConfigs", version, {"Resources": asked})
        world.call(f"describe v{version} none", "DescribeConfigs", version, {"Resources": []})
        describe(world, f"describe v{version} no keys", TOPIC, topic, [], version)
        describe(world, f"describe v{version} a key twice", TOPIC, topic, ["flush.ms", "flush.ms"], version)
        describe(world, f"describe v{version} no synonyms", TOPIC, topic, ["flush.ms"], version, False)
        describe(world, f"describe v{version} everything", TOPIC, topic, None, version, documentation=True)


@scenario
def replaced(world):
    """AlterConfigs sets what it names and forgets the rest."""
    topic, _ = world.topic("t")
    for version in (0, 1, 2):
        for label, values, validate in (
                ("two", {"retention_ms": "3000000", "segment_ms": "80000"}, False),
                ("one", {"retention_ms": "3000001"}, False), ("only checked", {"flush_ms": "8"}, True),
                ("null", {"flush_ms": None}, False), ("bad", {"flush_ms": "x"}, False),
                ("unknown", {"nonsense": "1", "flush_ms": "8"}, False), ("none", {}, False)):
            world.call(f"v{version} {label}", "AlterConfigs", version,
                       replacing(TOPIC, topic, validate, **values))
            world.settle()
            describe(world, f"v{version} {label}: then", TOPIC, topic,
                     ["retention.ms", "segment.ms", "flush.ms"])


@scenario
def of_brokers(world):
    """Keys of the node and of all nodes; everything is set back in the end."""
    keys = ["log.retention.ms", "background.threads", "max.connections", "message.max.bytes",
            "log.cleaner.threads", "log.cleanup.policy", "num.io.threads", "compression.type"]
    for round_, name in enumerate(("", "1")):
        text = f"broker {name!r}"
        describe(world, f"{text} at first", BROKER, name, keys)
        for label, changes in (
                ("set", [(SET, "log.retention.ms", "900000000")]),
                ("set several", [(SET, "background.threads", "11"), (SET, "message.max.bytes", "2000000")]),
                ("append", [(APPEND, "log.cleanup.policy", "compact")]),
                ("subtract", [(SUBTRACT, "log.cleanup.policy", "compact")]),
                ("bad value", [(SET, "background.threads", "x")]),
                ("out of range", [(SET, "background.threads", "0")]),
                ("more than doubled", [(SET, "background.threads", "1000")]),
                ("read only", [(SET, "broker.rack", "r")]),
                ("read only, the same", [(SET, "num.partitions", "4")]),
                ("not at all", [(SET, "node.id", "2")]), ("unknown", [(SET, "my.own.key", "1")]),
                ("connections of one address", [(SET, "max.connections.per.ip.overrides", "127.0.0.1:500")]),
                ("bad override", [(SET, "max.connections.per.ip.overrides", "x")]),
                ("delete", [(DELETE, "message.max.bytes", None)]),
                ("delete what is not set", [(DELETE, "log.retention.ms", None),
                                            (DELETE, "max.connections", None)])):
            for validate in (True, False):
                change(world, f"{text} {label}, validate {validate}", BROKER, name, *changes,
                       keys=() if validate else keys, validate=validate)
        if round_ == 0:
            world.call("a listener's key", "IncrementalAlterConfigs", 1, incremental(
                BROKER, name, (SET, "listener.name.plaintext.ssl.keystore.location", "/x"), validate=True))
    topic, _ = world.topic("t")
    describe(world, "a topic meanwhile", TOPIC, topic,
             ["retention.ms", "max.message.bytes", "compression.type", "cleanup.policy"])
    for name in ("", "1"):
        change(world, f"broker {name!r} set back", BROKER, name,
               *[(DELETE, key, None) for key in (*keys, "my.own.key", "max.connections.per.ip.overrides")],
               keys=keys)
        world.call(f"broker {name!r} replaced by nothing", "AlterConfigs", 2, replacing(BROKER, name))
    world.settle()
    describe(world, "broker '1' in the end", BROKER, "1", keys)


@scenario
def of_groups(world):
    group = world.name("g")
    keys = ["consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "share.isolation.level",
            "streams.num.standby.replicas", "share.auto.offset.reset"]
    describe(world, "at first", GROUP, group)
    for label, changes in (
            ("set", [(SET, "consumer.session.timeout.ms", "50000")]),
            ("set another", [(SET, "share.isolation.level", "read_committed")]),
            ("out of bounds", [(SET, "consumer.session.timeout.ms", "1")]),
            ("above the bound", [(SET, "consumer.session.timeout.ms", "60001")]),
            ("below its heartbeats", [(SET, "consumer.heartbeat.interval.ms", "15001")]),
            ("standbys", [(SET, "streams.num.standby.replicas", "2")]),
            ("too many standbys", [(SET, "streams.num.standby.replicas", "3")]),
            ("bad", [(SET, "consumer.session.timeout.ms", "x")]),
            ("bad choice", [(SET, "share.isolation.level", "nonsense")]),
            ("start of a share group", [(SET, "share.auto.offset.reset", "by_duration:PT1H")]),
            ("bad start", [(SET, "share.auto.offset.reset", "by_duration:x")]),
            ("unknown", [(SET, "nonsense", "1")]), ("append", [(APPEND, "share.isolation.level", "x")]),
            ("delete", [(DELETE, "consumer.session.timeout.ms", None)]),
            ("delete what is not set", [(DELETE, "consumer.heartbeat.interval.ms", None)])):
        for validate in (True, False):
            change(world, f"{label}, validate {validate}", GROUP, group, *changes,
                   keys=() if validate else keys, validate=validate)
    describe(world, "everything", GROUP, group, documentation=True)
    world.call("replaced", "AlterConfigs", 2, replacing(GROUP, group, share_isolation_level="read_uncommitted"))
    world.settle()
    describe(world, "replaced: then", GROUP, group, keys)
    listing(world, "with a group")
    change(world, "all deleted", GROUP, group, (DELETE, "share.isolation.level", None))
    listing(world, "without")


def listing(world, label):
    world.call(f"listed {label}, v0", "ListConfigResources", 0, {})
    for kinds in ([], [TOPIC], [GROUP], [CLIENT_METRICS], [GROUP, CLIENT_METRICS], [GROUP, GROUP]):
        world.call(f"listed {label}, v1 {kinds}", "ListConfigResources", 1, {"ResourceTypes": kinds})


@scenario
def of_client_metrics(world):
    name = world.name("m")
    keys = ["interval.ms", "metrics", "match"]
    describe(world, "at first", CLIENT_METRICS, name)
    for label, changes in (
            ("set", [(SET, "interval.ms", "1000")]), ("metrics", [(SET, "metrics", "a.b,c")]),
            ("append", [(APPEND, "metrics", "d")]), ("subtract", [(SUBTRACT, "metrics", "c")]),
            ("match", [(SET, "match", "client_id=x.*,client_software_name=y")]),
            ("bad match", [(SET, "match", "nonsense=x")]), ("no pattern", [(SET, "match", "client_id=(")]),
            ("no pair", [(SET, "match", "client_id")]), ("too short", [(SET, "interval.ms", "99")]),
            ("too long", [(SET, "interval.ms", "3600001")]), ("bad", [(SET, "interval.ms", "x")]),
            ("unknown", [(SET, "nonsense", "x")]), ("all metrics", [(SET, "metrics", "")]),
            ("every metric", [(SET, "metrics", "*")]), ("delete", [(DELETE, "match", None)])):
        for validate in (True, False):
            change(world, f"{label}, validate {validate}", CLIENT_METRICS, name, *changes,
                   keys=() if validate else keys, validate=validate)
    describe(world, "everything", CLIENT_METRICS, name, documentation=True)
    listing(world, "with metrics")
    change(world, "all deleted", CLIENT_METRICS, name, *[(DELETE, key, None) for key in keys], keys=keys)
    listing(world, "without")
    for octets in ("é", "a b", "x" * 250, "_-.x"):
        world.call(f"name {octets[:4]!r}", "IncrementalAlterConfigs", 1, incremental(
            CLIENT_METRICS, f"{name}{octets}", (SET, "interval.ms", "1000"), validate=True))
        world.call(f"group {octets[:4]!r}", "IncrementalAlterConfigs", 1, incremental(
            GROUP, f"{name}{octets}", (SET, "share.isolation.level", "read_committed"), validate=True))


@scenario
def of_loggers(world):
    """Kafka's loggers are not ours: only what names no particular one."""
    for label, changes in (
            ("unknown logger", [(SET, "no.such.logger", "INFO")]), ("bad level", [(SET, "root", "LOUD")]),
            ("append", [(APPEND, "root", "INFO")]), ("subtract", [(SUBTRACT, "root", "INFO")]),
            ("delete the root", [(DELETE, "root", None)]),
            ("delete an unknown one", [(DELETE, "no.such.logger", None)]),
            ("null", [(SET, "root", None)]), ("small letters", [(SET, "root", "info")]),
            ("set", [(SET, "root", "INFO")])):
        for validate in (True, False):
            change(world, f"{label}, validate {validate}", LOGGER, "1", *changes, keys=["root"],
                   validate=validate)
    world.call("replaced", "AlterConfigs", 2, replacing(LOGGER, "1", root="INFO"))
