"""What a transactional producer, another broker and an operator are told: every version, every error.

Only the requests to the coordinator, and markers. What lies in the logs then is for other scenarios.
"""
from batch import T0, batch
from scenarios import scenario
import transactional
from transactional import NOBODY, Producer, marker
from world import produce_body

MAX_TIMEOUT = 900_000


def told(world, label, api, version, body, producer=None):
    """A step, and what the transaction is then. CONCURRENT_TRANSACTIONS would be a race on Kafka."""
    if producer:
        producer.settle()
    world.call(label, api, version, body)
    if producer:
        producer.settle()
        producer.describe(f"{label}, then")


@scenario
def initialization(world):
    world.require("EndTxn")
    for version in range(6):
        name = f"a{version}"
        producer = Producer(world, name)
        for label, body in (
                ("again", transactional.init(producer.id)), ("no id", transactional.init(None)),
                ("empty id", transactional.init("")), ("empty id, no timeout", transactional.init("", 0)),
                ("timeout 0", transactional.init(producer.id, 0)), ("timeout -1", transactional.init(producer.id, -1)),
                ("timeout 1", transactional.init(producer.id, 1)),
                ("longest timeout", transactional.init(producer.id, MAX_TIMEOUT)),
                ("timeout too long", transactional.init(producer.id, MAX_TIMEOUT + 1)),
                ("no timeout at all", transactional.init(producer.id, 2**31 - 1)),
                ("no id, timeout 0", transactional.init(None, 0)),
                ("new id, timeout 0", transactional.init(world.name(f"b{version}"), 0)),
                ("new id", transactional.init(world.name(f"c{version}")))):
            told(world, f"v{version} {label}", "InitProducerId", version, body, producer)
        if version < 3:
            continue
        for label, own in (
                ("its epoch", producer.other), ("an older epoch", lambda: producer.other(-1)),
                ("a later epoch", lambda: producer.other(5)), ("another id", lambda: producer.other(ids=99)),
                ("nobody", lambda: NOBODY), ("no epoch", lambda: {**producer.own, "ProducerEpoch": -1}),
                ("no producer", lambda: {**producer.own, "ProducerId": -1}),
                ("neither", lambda: {"ProducerId": -1, "ProducerEpoch": -1}),
                ("negative ones", lambda: {"ProducerId": -7, "ProducerEpoch": -7})):
            producer.init()
            producer.init()
            told(world, f"v{version} naming {label}", "InitProducerId", version,
                 transactional.init(producer.id, **own()), producer)
            told(world, f"v{version} naming {label}, no id", "InitProducerId", version,
                 transactional.init(None, **own()))
            told(world, f"v{version} naming {label}, new id", "InitProducerId", version,
                 transactional.init(world.name(f"{label} {version}"), **own()))


@scenario
def initialization_repeated(world):
    """KIP-360: the next epoch asked for, and the answer lost."""
    for version in (3, 4, 5):
        producer = Producer(world, f"a{version}")
        first = producer.own
        for label in ("asked", "repeated", "repeated again"):
            told(world, f"v{version} {label}", "InitProducerId", version,
                 transactional.init(producer.id, **first), producer)
        told(world, f"v{version} the one after", "InitProducerId", version,
             transactional.init(producer.id, **producer.other(1)), producer)
        told(world, f"v{version} the first, late", "InitProducerId", version,
             transactional.init(producer.id, **first), producer)


@scenario
def initialization_of_open_ones(world):
    topic = world.topic("t", 2)[0]
    for version in range(6):
        producer = Producer(world, f"a{version}")
        for label, own in (("naming nothing", None), ("naming itself", 0), ("naming an older one", -1),
                           ("naming a later one", 1)):
            if own is not None and version < 3:
                continue
            producer.init()
            producer.begin([(topic, [0])])
            body = transactional.init(producer.id, **(producer.other(own) if own is not None else {}))
            told(world, f"v{version} {label}", "InitProducerId", version, body, producer)
            told(world, f"v{version} {label}, again", "InitProducerId", version, body, producer)


@scenario
def partitions(world):
    topic, other = world.topic("t", 3)[0], world.topic("u")[0]
    for version in range(4):
        producer = Producer(world, f"a{version}")
        for label, topics in (
                ("one", [(topic, [0])]), ("the same", [(topic, [0])]), ("two topics", [(topic, [2, 1]), (other, [0])]),
                ("a partition twice", [(topic, [1, 1])]), ("a topic twice", [(topic, [1]), (topic, [2])]),
                ("none", []), ("no partitions", [(topic, [])]), ("unknown partition", [(topic, [7])]),
                ("negative partition", [(topic, [-1])]), ("unknown topic", [(world.name("no"), [0])]),
                ("bad name", [("a b", [0])]), ("empty name", [("", [0])]),
                ("good and bad", [(topic, [0, 7, 1, 7, 0]), (other, [0]), (world.name("no"), [0, 1])]),
                ("of the groups", [("__consumer_offsets", [0])]),
                ("of the groups, and others", [("__consumer_offsets", [0]), (topic, [0]), (world.name("no"), [0])]),
                ("of transactions", [("__transaction_state", [0])])):
            for state in ("empty", "ongoing"):
                if state == "empty":
                    producer.init()
                    producer.begin([(topic, [0])])
                    producer.end()
                told(world, f"v{version} {label}, {state}", "AddPartitionsToTxn", version,
                     transactional.add(producer.id, producer.own, topics), producer)
        wrong_producers(world, f"v{version}", producer, "AddPartitionsToTxn", version,
                        lambda name, own: transactional.add(name, own, [(topic, [0, 1]), (other, [0])]))
        told(world, f"v{version} wrong in every way", "AddPartitionsToTxn", version,
             transactional.add("", NOBODY, [(topic, [7])]))


def wrong_producers(world, label, producer, api, version, body):
    for state in ("empty", "ongoing", "committed", "aborted"):
        producer.init()
        if state != "empty":
            producer.begin([(world.name("t"), [0])])
        if state in ("committed", "aborted"):
            producer.end(state == "committed")
        for what, name, own in (
                ("unknown id", world.name("nobody"), producer.own), ("empty id", "", producer.own),
                ("another producer", producer.id, producer.other(ids=99)),
                ("an older epoch", producer.id, producer.other(-1)),
                ("a later epoch", producer.id, producer.other(1)),
                ("another producer, older epoch", producer.id, producer.other(-1, 99)),
                ("no producer", producer.id, {"ProducerId": -1, "ProducerEpoch": -1})):
            told(world, f"{label} {what}, {state}", api, version, body(name, own), producer)


@scenario
def partitions_between_brokers(world):
    topic, other = world.topic("t", 3)[0], world.topic("u")[0]
    for version in (4, 5):
        a, b = Producer(world, f"a{version}"), Producer(world, f"b{version}")
        a.begin([(topic, [0])])
        for label, transactions in (
                ("verified", [(a.id, a.own, [(topic, [0])], True)]),
                ("not in it", [(a.id, a.own, [(topic, [0, 1])], True)]),
                ("nothing to verify", [(a.id, a.own, [], True)]),
                ("one twice", [(a.id, a.own, [(topic, [0, 0]), (topic, [1])], True)]),
                ("unknown partition", [(a.id, a.own, [(topic, [0, 7])], True)]),
                ("of the empty one", [(b.id, b.own, [(topic, [0])], True)]),
                ("older epoch", [(a.id, a.other(-1), [(topic, [0])], True)]),
                ("another producer", [(a.id, a.other(ids=99), [(topic, [0])], True)]),
                ("unknown id", [(world.name("no"), a.own, [(topic, [0])], True)]),
                ("empty id", [("", a.own, [(topic, [0])], True)]),
                ("both", [(a.id, a.own, [(topic, [0])], True), (b.id, b.own, [(topic, [0])], True)]),
                ("added", [(b.id, b.own, [(topic, [0]), (other, [0])], False)]),
                ("added and verified", [(a.id, a.own, [(topic, [2])], False), (b.id, b.own, [(other, [0])], True)]),
                ("added, unknown partition", [(a.id, a.own, [(topic, [1, 7])], False)]),
                ("added, later epoch", [(a.id, a.other(1), [(topic, [1])], False)]),
                ("added to an unknown id", [(world.name("no"), a.own, [(topic, [1])], False)])):
            world.call(f"v{version} {label}", "AddPartitionsToTxn", version,
                       transactional.add_all(*transactions))
            for producer in (a, b):
                producer.describe(f"v{version} {label}, then {producer.id[-2]}")
        a.end()
        world.call(f"v{version} verified when ended", "AddPartitionsToTxn", version,
                   transactional.add_all((a.id, a.own, [(topic, [0])], True)))
        wrong_producers(world, f"v{version} added,", a, "AddPartitionsToTxn", version,
                        lambda name, own: transactional.add_all((name, own, [(topic, [1])], False)))


@scenario
def groups(world):
    topic = world.topic("t")[0]
    for version in range(5):
        producer = Producer(world, f"a{version}")
        for label, group in (("a group", "g"), ("the same", "g"), ("another", "h"), ("no name", "")):
            world.call(f"v{version} {label}", "AddOffsetsToTxn", version,
                       transactional.add_group(producer.id, producer.own, group))
        producer.end()
        producer.describe(f"v{version} ended")
        for state in ("ended", "ongoing"):
            if state == "ongoing":
                producer.begin([(topic, [0])])
            for what, name, own in (
                    ("unknown id", world.name("nobody"), producer.own), ("empty id", "", producer.own),
                    ("another producer", producer.id, producer.other(ids=99)),
                    ("an older epoch", producer.id, producer.other(-1)),
                    ("a later epoch", producer.id, producer.other(1))):
                told(world, f"v{version} {what}, {state}", "AddOffsetsToTxn", version,
                     transactional.add_group(name, own, "g"), producer)


@scenario
def ends(world):
    topic = world.topic("t", 2)[0]
    for version in range(6):
        for commit in (True, False):
            what = f"v{version} {'commit' if commit else 'abort'}"
            producer = Producer(world, f"a{version}{commit}")
            told(world, f"{what} of none", "EndTxn", version,
                 transactional.end(producer.id, producer.own, commit), producer)
            for state in ("ongoing", "committed", "aborted"):
                producer.init()
                producer.begin([(topic, [0, 1])])
                if state != "ongoing":
                    producer.end(state == "committed")
                body = transactional.end(producer.id, producer.own, commit)
                told(world, f"{what}, {state}", "EndTxn", version, body, producer)
                told(world, f"{what}, {state}, repeated", "EndTxn", version, body, producer)
                opposite = transactional.end(producer.id, producer.own, not commit)
                told(world, f"{what}, {state}, then the opposite", "EndTxn", version, opposite, producer)
            wrong_producers(world, what, producer, "EndTxn", version,
                            lambda name, own: transactional.end(name, own, commit))


@scenario
def ends_of_version_two_in_a_row(world):
    """Each with the epoch that the one before has answered."""
    topic = world.topic("t", 2)[0]
    producer = Producer(world, "a")
    for turn in range(4):
        commit = turn % 2 == 0
        world.call(f"{turn} added", "AddPartitionsToTxn", 5,
                   transactional.add_all((producer.id, producer.own, [(topic, [turn % 2])], False)))
        before = producer.own
        answer = world.call(f"{turn} ended", "EndTxn", 5,
                            transactional.end(producer.id, producer.own, commit))
        producer.own = {key: answer[key] for key in before}
        producer.settle()
        producer.describe(f"{turn} then")
        told(world, f"{turn} repeated", "EndTxn", 5, transactional.end(producer.id, before, commit), producer)
        told(world, f"{turn} by an old client", "EndTxn", 4, transactional.end(producer.id, before, commit), producer)


@scenario
def markers(world):
    topic, other, spare = world.topic("t", 3)[0], world.topic("u")[0], world.topic("v")[0]
    for version in (1, 2):
        one, two = world.producer_id(), world.producer_id()
        for each in (one, two):
            world.names.number("producer", each)
        first, second = ({"ProducerId": each, "ProducerEpoch": 3} for each in (one, two))
        newer, older = {**first, "ProducerEpoch": 4}, {**first, "ProducerEpoch": 2}
        for label, all_of in (
                ("none", []), ("no partitions", [marker(first, [])]),
                ("a topic without partitions", [marker(first, [(topic, [])])]),
                ("unknown partition", [marker(first, [(topic, [7, -1])])]),
                ("unknown topic", [marker(first, [(world.name("no"), [0])])]),
                ("bad name", [marker(first, [("a b", [0]), ("", [0])])]),
                ("nobody's", [marker(first, [(topic, [0])], coordinator_epoch=5)]),
                ("the same again", [marker(first, [(topic, [0])], coordinator_epoch=5)]),
                ("older epoch", [marker(older, [(topic, [0, 1])], coordinator_epoch=5)]),
                ("older coordinator", [marker(first, [(topic, [0, 2])], coordinator_epoch=4)]),
                ("both older", [marker(older, [(topic, [0])], coordinator_epoch=4)]),
                ("later epoch", [marker(newer, [(topic, [0])], True, 5)]),
                ("version 2, the same epoch", [marker(newer, [(topic, [0])], True, 5, 2)]),
                ("version 2, later epoch", [marker({**first, "ProducerEpoch": 5}, [(topic, [0])], True, 5, 2)]),
                ("version 1", [marker({**first, "ProducerEpoch": 5}, [(topic, [0])], True, 5, 1)]),
                ("version 3", [marker({**first, "ProducerEpoch": 5}, [(topic, [0])], True, 5, 3)]),
                ("version -1", [marker({**first, "ProducerEpoch": 6}, [(topic, [0])], True, 5, -1)]),
                ("version -2", [marker({**first, "ProducerEpoch": 6}, [(spare, [0])], True, 5, -2)]),
                ("two producers", [marker(newer, [(topic, [1])]), marker(second, [(topic, [1]), (other, [0])])]),
                ("a producer twice", [marker(second, [(topic, [0])]), marker(second, [(other, [0, 9])])]),
                ("a topic twice", [marker(second, [(topic, [0]), (topic, [1])])]),
                ("good and bad", [marker(second, [(topic, [0, 7]), (world.name("no"), [0])])]),
                ("one partition, by two", [marker(second, [(topic, [2])]), marker(second, [(topic, [2])], True)]),
                ("one partition, last time refused", [marker(second, [(topic, [2])], True, 9),
                                                      marker(second, [(topic, [2])], True, 1)]),
                ("negative coordinator", [marker(second, [(other, [0])], True, -1)]),
                ("smallest coordinator", [marker(second, [(other, [0])], True, -2**31)]),
                ("largest coordinator", [marker({**second, "ProducerEpoch": 32767}, [(other, [0])], True, 2**31 - 1)]),
                ("no producer", [marker({"ProducerId": -1, "ProducerEpoch": -1}, [(topic, [0])])]),
                ("negative producer", [marker({"ProducerId": -2, "ProducerEpoch": 0}, [(spare, [0])])]),
                ("negative epoch", [marker({**second, "ProducerEpoch": -1}, [(topic, [0])])]),
                ("negative epoch of a new producer", [marker({**NOBODY, "ProducerEpoch": -1}, [(topic, [0])])]),
                ("largest producer", [marker({"ProducerId": 2**63 - 1, "ProducerEpoch": 0}, [(topic, [1])])])):
            world.call(f"v{version} {label}", "WriteTxnMarkers", version, {"Markers": all_of})
            world.call(f"v{version} {label}, producers then", "DescribeProducers", 0, {"Topics": [
                {"Name": topic, "PartitionIndexes": [0, 1, 2]}, {"Name": other, "PartitionIndexes": [0]}]})
            for name, count in ((topic, 3), (other, 1)):
                world.call(f"v{version} {label}, ends of {name[-1]} then", "ListOffsets", 7, {
                    "ReplicaId": -1, "Topics": [{"Name": name, "Partitions": [
                        {"PartitionIndex": i, "Timestamp": -1} for i in range(count)]}]})


@scenario
def marked_producers(world):
    """Idempotent producers whose epoch a marker has raised, or left."""
    for name, epoch, version in (("same", 0, 0), ("raised", 1, 0), ("raised of version two", 1, 2)):
        topic = world.topic(name.replace(" ", "-"))[0]
        own = {"ProducerId": world.producer_id(), "ProducerEpoch": 0}
        for number in range(3):
            world.ask("Produce", 9, produce_body(topic, batch(b"x", pid=own["ProducerId"], epoch=0,
                                                              sequence=number)))
        world.call(f"{name}: marker", "WriteTxnMarkers", 2, {"Markers": [
            marker({**own, "ProducerEpoch": epoch}, [(topic, [0])], version=version)]})
        world.call(f"{name}: described", "DescribeProducers", 0, {"Topics": [
            {"Name": topic, "PartitionIndexes": [0]}]})
        for label, sequence, of in (("goes on", 3, 0), ("again", 3, 0), ("in the raised epoch", 0, 1),
                                    ("in the one after", 0, 2), ("in the first", 4, 0)):
            world.produce(f"{name}: {label}", topic, batch(b"y", pid=own["ProducerId"], epoch=of,
                                                           sequence=sequence, at=T0 + 1))


@scenario
def descriptions(world):
    topic, other = world.topic("t", 3)[0], world.topic("u")[0]
    a, b, c = (Producer(world, each, timeout) for each, timeout in (("a", 1_000_000 // 2), ("b", 70_000), ("c", 1)))
    a.begin([(topic, [2, 0]), (other, [0])])
    b.begin([(topic, [1])])
    b.end(False)
    for label, ids in (("one", [a.id]), ("three", [c.id, a.id, b.id]), ("unknown", [world.name("no")]),
                       ("empty", [""]), ("none", []), ("one twice", [b.id, b.id]),
                       ("known and unknown", [world.name("no"), b.id, ""])):
        world.call(label, "DescribeTransactions", 0, {"TransactionalIds": ids})


@scenario
def lists(world):
    topic = world.topic("t", 3)[0]
    a, b, c, d = (Producer(world, each) for each in ("a", "b", "c", "dd"))
    a.begin([(topic, [0])])
    b.begin([(topic, [1])])
    b.end()
    c.begin([(topic, [1])])
    c.end(False)
    everything = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort",
                  "Dead", "PrepareEpochFence"]
    for version in range(3):
        for label, states in (
                ("all", []), *((each, [each]) for each in everything), ("every state", everything),
                ("two", ["Ongoing", "Empty"]), ("one twice", ["Ongoing", "Ongoing"]), ("unknown", ["Nonsense"]),
                ("unknown twice", ["Nonsense", "Nonsense", "Other"]), ("in small letters", ["ongoing"]),
                ("unknown and known", ["Nonsense", "Ongoing"]), ("empty", [""]), ("with a space", [" Ongoing"])):
            world.call(f"v{version} state: {label}", "ListTransactions", version, {"StateFilters": states})
        for label, ids in (("one", [a.own]), ("two", [a.own, d.own]), ("none", [NOBODY]),
                           ("negative", [{"ProducerId": -1}])):
            world.call(f"v{version} producer: {label}", "ListTransactions", version, {
                "ProducerIdFilters": [each["ProducerId"] for each in ids]})
        for duration in (-1, -2, 0, 3_600_000, 2**63 - 1, -2**63) if version else ():
            # 0: longer ago than this millisecond, which all of them are by now.
            world.call(f"v{version} duration {duration}", "ListTransactions", version, {"DurationFilter": duration})
        own = world.name("").replace(".", "\\.")
        for pattern in (None, "", own, f"{own}a", f"{own}.", f"{own}.+", f"{own}[bc]", f".*{own[:4]}.*", "(", "[",
                        "*", f"{own}(a|dd)", f"{own}d{{2}}", f"(?i){own.upper()}A", "(?=a)", "\\p{L}+", ".*"
                        ) if version == 2 else ():
            world.call(f"pattern {pattern}", "ListTransactions", 2, {"TransactionalIdPattern": pattern})
        if version == 2:
            world.call("pattern and an unknown state", "ListTransactions", 2, {
                "TransactionalIdPattern": "(", "StateFilters": ["Nonsense"]})
            world.call("all at once", "ListTransactions", 2, {
                "TransactionalIdPattern": f"{own}.*", "StateFilters": ["Ongoing", "Empty"],
                "ProducerIdFilters": [a.own["ProducerId"]], "DurationFilter": -1})


@scenario
def coordinators(world):
    for version in range(1, 7):
        for label, names in (("one", ["a"]), ("empty", [""]), ("long", ["x" * 300]),
                             *((("two", ["a", "b"]), ("none", []), ("one twice", ["a", "a"])) if version >= 4 else ())):
            keys = {"CoordinatorKeys": names} if version >= 4 else {"Key": names[0]}
            world.call(f"v{version} {label}", "FindCoordinator", version, {**keys, "KeyType": 1})
