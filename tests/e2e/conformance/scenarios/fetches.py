"""Fetch: every request is answered, whatever sessions, limits and waits it names (report 68)."""
import itertools

from batch import batch
from scenarios import scenario
from world import fetch_body, produce_body


def cross_product(world, version, max_wait_ms):
    """All at once, each on a connection of its own: none may keep another from its answer."""
    full, empty = world.topic("full"), world.topic("empty")
    world.ask("Produce", 9, produce_body(full[0], batch(b"a", b"b", b"c")))
    key = 1 if version >= 13 else 0
    places = {"no topics": [], "records": fetch_body(full[key])["Topics"],
              "the end": fetch_body(full[key], 3)["Topics"],
              "no records": fetch_body(empty[key])["Topics"],
              "both": fetch_body(full[key])["Topics"] + fetch_body(empty[key])["Topics"]}
    sent = []
    for session, epoch, isolation, min_bytes, place in itertools.product(
            (0, -1, 5), (-1, 0, 1), (0, 1), (0, 1, 1 << 30), places):
        label = f"session {session}, epoch {epoch}, isolation {isolation}, min {min_bytes}, {place}"
        body = {"MaxWaitMs": max_wait_ms, "MinBytes": min_bytes, "IsolationLevel": isolation,
                "SessionId": session, "SessionEpoch": epoch, "Topics": places[place]}
        connection = world.connect()
        sent.append((label, connection, connection.send("Fetch", version, body)))
    for label, connection, asked in sent:
        answer = world.read_step(label, connection, "Fetch", version, asked, drop=("SessionId",))
        connection.close()
        if answer is not None:
            world.note(f"{label}: session", "given" if answer["SessionId"] > 0 else "none")


@scenario
def cross_product_v11(world):
    cross_product(world, 11, 0)


@scenario
def cross_product_v11_waiting(world):
    cross_product(world, 11, 200)


@scenario
def cross_product_v17(world):
    cross_product(world, 17, 0)


@scenario
def cross_product_v17_waiting(world):
    cross_product(world, 17, 200)


@scenario
def sessions(world):
    topic, _ = world.topic("t", 3)
    for partition in range(3):
        world.ask("Produce", 9, produce_body(topic, batch(b"a"), partition))

    def fetch(label, session, epoch, partitions=(), offset=0, forget=()):
        asked = [{"Partition": p, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20}
                 for p in partitions]
        body = {"MaxWaitMs": 0, "MinBytes": 0, "SessionId": session, "SessionEpoch": epoch,
                "Topics": [{"Topic": topic, "Partitions": asked}] if asked else [],
                "ForgottenTopicsData": [{"Topic": topic, "Partitions": list(forget)}] if forget else []}
        answer = world.call(label, "Fetch", 11, body)
        return answer["SessionId"] if answer else 0
    first = fetch("new", 0, 0, (0, 1, 2))
    fetch("everything again, nothing moved", first, 1)
    fetch("moved on", first, 2, (0, 1, 2), offset=1)
    fetch("nothing new", first, 3)
    world.ask("Produce", 9, produce_body(topic, batch(b"b"), 2))
    fetch("only what is new", first, 4)
    fetch("a skipped epoch", first, 6)
    fetch("the same epoch", first, 4)
    fetch("forgotten", first, 5, forget=(2,))
    second = fetch("another", 0, 0, (0,))
    fetch("the first goes on", first, 6)
    fetch("the second goes on", second, 1)
    fetch("closed", first, -1)
    fetch("gone", first, 7)
    fetch("replaced", second, 0, (1,))
    fetch("the replaced one", second, 1)
    fetch("the largest epoch", second, 2**31 - 1)
    fetch("a negative epoch", second, -2)


@scenario
def limits(world):
    topic, _ = world.topic("t")
    for i in range(5):
        world.ask("Produce", 9, produce_body(topic, batch(b"%d" % i * 500)))
    for whole, each in itertools.product((-1, 0, 1, 600, 1200, 2**31 - 1), (-1, 0, 1, 600, 1200)):
        body = fetch_body(topic)
        body["MaxBytes"] = whole
        body["Topics"][0]["Partitions"][0]["PartitionMaxBytes"] = each
        world.call(f"max bytes {whole}, of the partition {each}", "Fetch", 11, body)
