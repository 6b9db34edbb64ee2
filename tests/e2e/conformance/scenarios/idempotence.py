"""Idempotent producers: duplicates, order, epochs, wrap-around, and what becomes of their state."""
from batch import T0, batch
from scenarios import scenario

LAST = 2**31 - 1  # the largest sequence; 0 follows


class Producer:
    """Makes numbered batches of one producer id; each says what it should be answered."""

    def __init__(self, world, topic, pid=None, epoch=0):
        self.world, self.topic = world, topic
        self.pid = world.producer_id() if pid is None else pid
        self.epoch = epoch

    def send(self, label, sequence, count=1, epoch=None, **options):
        epoch = self.epoch if epoch is None else epoch
        values = [b"%d" % (sequence + i) for i in range(count)]
        sent = batch(*values, pid=self.pid, epoch=epoch, sequence=sequence)
        return self.world.produce(label, self.topic, sent, **options)


@scenario
def duplicates_of_the_last_five(world):
    topic, _ = world.topic("t")
    producer = Producer(world, topic)
    sizes = [1, 2, 3, 1, 4, 2, 1, 3]
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    for i, (start, size) in enumerate(zip(starts, sizes)):
        producer.send(f"batch {i}", start, size)
        producer.send(f"batch {i} at once again", start, size)
    for back in range(1, 9):
        producer.send(f"number {back} from the end again", starts[-back], sizes[-back])
    producer.send("the next goes on", sum(sizes))
    world.fetch("what is stored", topic)


@scenario
def duplicates_on_other_connections_and_versions(world):
    topic = world.topic("t")
    producer = Producer(world, topic[0])
    for i in range(6):
        producer.send(f"batch {i}", i)
    other = world.connect("another client")
    for version in (3, 5, 7, 8, 9, 11, 12):
        for i in (5, 1, 0):
            producer.send(f"v{version} batch {i} again", i, version=version, connection=other)
    sent = batch(b"3", pid=producer.pid, epoch=0, sequence=3)
    world.produce("v13 batch 3 again", topic[1], sent, version=13)


@scenario
def what_counts_as_a_duplicate(world):
    topic, _ = world.topic("t")
    producer = Producer(world, topic)
    producer.send("0..4", 0, 5)
    producer.send("0..4 again", 0, 5)
    producer.send("its beginning, 0..2", 0, 3)
    producer.send("its end, 2..4", 2, 3)
    producer.send("more than it, 0..7", 0, 8)
    producer.send("across its end, 3..7", 3, 5)
    other = batch(b"v", b"w", b"x", b"y", b"z", pid=producer.pid, epoch=0, sequence=0)
    world.produce("0..4 with other values", topic, other)
    later = batch(b"0", b"1", b"2", b"3", b"4", pid=producer.pid, epoch=0, sequence=0, at=T0 + 9)
    world.produce("0..4 at another time", topic, later)
    packed = batch(b"0", b"1", b"2", b"3", b"4", pid=producer.pid, sequence=0, epoch=0, attributes=1)
    world.produce("0..4 compressed", topic, packed)
    producer.send("5..6", 5, 2)
    world.fetch("what is stored", topic)


@scenario
def out_of_order(world):
    topic, _ = world.topic("t")
    producer = Producer(world, topic)
    producer.send("0", 0)
    producer.send("a gap: 2", 2)
    producer.send("a large gap", 1_000_000)
    producer.send("the largest sequence", LAST)
    producer.send("1", 1)
    producer.send("2", 2)
    producer.send("5", 5)
    producer.send("3", 3)
    for i in range(4, 10):
        producer.send(f"{i}", i)
    producer.send("far back: 0", 0)
    producer.send("far back: 2..3", 2, 2)
    world.fetch("what is stored", topic)


@scenario
def epochs(world):
    topic, _ = world.topic("t")
    producer = Producer(world, topic)
    for i in range(3):
        producer.send(f"epoch 0: {i}", i)
    producer.send("epoch 1 not at 0: 3", 3, epoch=1)
    producer.send("epoch 1 not at 0: 7", 7, epoch=1)
    producer.send("epoch 2 at 0", 0, epoch=2)
    producer.send("epoch 2 at 0 again", 0, epoch=2)
    producer.send("epoch 1 at 0", 0, epoch=1)
    producer.send("epoch 0 at 3", 3, epoch=0)
    producer.send("epoch 0, a duplicate", 2, epoch=0)
    producer.send("epoch 2: 1", 1, epoch=2)
    producer.send("epoch -1", 2, epoch=-1)
    producer.send("the largest epoch", 0, epoch=32767)
    producer.send("the largest epoch: 1", 1, epoch=32767)
    producer.send("epoch 0 again", 0, epoch=0)
    world.fetch("what is stored", topic)


@scenario
def first_sequences_of_unknown_producers(world):
    topic, _ = world.topic("t")
    for pid, sequence in ((7001, 0), (7002, 1), (7003, 17), (7004, LAST), (7005, LAST - 1)):
        producer = Producer(world, topic, pid)
        producer.send(f"first sequence {sequence}", sequence)
        producer.send(f"first sequence {sequence} again", sequence)
        following = (sequence + 1) % (LAST + 1)
        producer.send(f"after {sequence}", following)
        producer.send(f"a gap after {sequence}", (following + 2) % (LAST + 1))
    producer = Producer(world, topic, 7010, epoch=5)
    producer.send("first with epoch 5", 3)
    producer.send("then epoch 4", 0, epoch=4)
    producer.send("then epoch 6", 0, epoch=6)
    Producer(world, topic, 2**63 - 1).send("the largest producer id", 0)
    Producer(world, topic, 0).send("producer id 0", 0)


@scenario
def sequences_wrap(world):
    topic, _ = world.topic("t")
    producer = Producer(world, topic)
    producer.send("up to 2^31-3", LAST - 4, 3)
    producer.send("across: 2^31-2 .. 1", LAST - 1, 4)
    producer.send("across again", LAST - 1, 4)
    producer.send("2", 2)
    producer.send("2 again", 2)
    producer.send("up to 2^31-3 again", LAST - 4, 3)
    producer.send("a gap: 4", 4)
    exact, _ = world.topic("exact")
    producer = Producer(world, exact)
    producer.send("the last one", LAST)
    producer.send("0 follows", 0)
    producer.send("1 follows", 1)
    producer.send("the last one again", LAST)
    producer.send("0 again", 0)
    world.fetch("what is stored", topic)


@scenario
def several_producers_and_partitions(world):
    topic, _ = world.topic("t", 2)
    first, second = Producer(world, topic), Producer(world, topic)
    for i in range(4):
        first.send(f"first: {i} to 0", i, partition=0)
        second.send(f"second: {i} to 0", i, partition=0)
        first.send(f"first: {i} to 1", i, partition=1)
    plain = batch(b"plain")
    world.produce("no producer between", topic, plain)
    for i in range(6):
        second.send(f"second: {4 + i} to 0", 4 + i, partition=0)
    first.send("first: its batch 3 again", 3, partition=0)
    first.send("first: 5 to 1", 5, partition=1)
    first.send("first: 4 to 1", 4, partition=1)
    world.fetch("partition 0", topic, 0, 0)
    world.fetch("partition 1", topic, 0, 1)


@scenario
def several_partitions_in_a_request(world):
    topic, _ = world.topic("t", 3)
    pid = world.producer_id()

    def send(label, *asked):
        data = [{"Index": partition, "Records": batch(b"x", pid=pid, epoch=0, sequence=sequence)}
                for partition, sequence in asked]
        body = {"Acks": -1, "TimeoutMs": 5_000,
                "TopicData": [{"Name": topic, "PartitionData": data}]}
        world.call(label, "Produce", 9, body)
    send("0 to three", (0, 0), (1, 0), (2, 0))
    send("1, 0 again, a gap", (0, 1), (1, 0), (2, 2))
    send("an unknown partition between", (0, 2), (9, 0), (1, 1))
    send("the same partition twice", (0, 3), (0, 4))
    send("the same batch twice", (1, 2), (1, 2))


@scenario
def two_batches_in_a_record_set(world):
    topic, _ = world.topic("t")
    pid = world.producer_id()
    one = batch(b"a", pid=pid, epoch=0, sequence=0)
    two = batch(b"b", pid=pid, epoch=0, sequence=1)
    world.produce("two of a producer", topic, one + two)
    plain = batch(b"p")
    world.produce("two of none", topic, plain + plain)
    world.fetch("what is stored", topic)


@scenario
def odd_fields(world):
    topic, _ = world.topic("t")
    pid = world.producer_id()
    for label, fields in (
            ("no producer, but a sequence", {"pid": -1, "epoch": -1, "sequence": 0}),
            ("no producer, but an epoch", {"pid": -1, "epoch": 0, "sequence": -1}),
            ("producer without a sequence", {"pid": pid, "epoch": 0, "sequence": -1}),
            ("sequence -2", {"pid": pid, "epoch": 0, "sequence": -2}),
            ("the smallest sequence", {"pid": pid, "epoch": 0, "sequence": -2**31}),
            ("producer without an epoch", {"pid": pid, "epoch": -1, "sequence": 0}),
            ("epoch -2", {"pid": pid, "epoch": -2, "sequence": 0}),
            ("producer -2", {"pid": -2, "epoch": 0, "sequence": 0}),
            ("right", {"pid": pid, "epoch": 0, "sequence": 0})):
        world.produce(label, topic, batch(b"x", **fields))
    empty = batch(pid=pid, epoch=0, sequence=1)
    world.produce("an empty batch", topic, empty)
    wrong = batch(b"x", pid=pid, epoch=0, sequence=1, crc=1)
    world.produce("a wrong checksum", topic, wrong)
    world.produce("then the same one right", topic, batch(b"x", pid=pid, epoch=0, sequence=1))
    transactional = batch(b"x", pid=pid, epoch=0, sequence=2, attributes=16)
    world.produce("a transactional batch, no transactional id", topic, transactional)
    world.produce("a control batch", topic, batch(b"x", pid=pid, sequence=2, epoch=0, attributes=32))


@scenario
def acks(world):
    topic, _ = world.topic("t")
    producer = Producer(world, topic)
    for i, acks_wanted in enumerate((0, 1, -1, 0, 1)):
        producer.send(f"{i} with acks {acks_wanted}", i, acks=acks_wanted)
    producer.send("a duplicate with acks 0", 2, acks=0)
    producer.send("a duplicate with acks 1", 0, acks=1)
    producer.send("out of order with acks 0", 77, acks=0)
    producer.send("it goes on", 5)
    producer.send("an old epoch with acks 0", 6, acks=0, epoch=-1)
    world.fetch("what is stored", topic)


@scenario
def state_of_a_topic_made_again(world):
    topic, _ = world.topic("t")
    producer = Producer(world, topic)
    for i in range(3):
        producer.send(f"{i}", i)
    answer = world.ask("DeleteTopics", 5, {"TopicNames": [topic], "TimeoutMs": 10_000})
    world.note("deleted", answer["Responses"][0]["ErrorCode"])
    world.wait_for(topic, 1, code=3)
    world.topic("t")
    producer.send("3 in the new one", 3)
    producer.send("3 in the new one again", 3)
    producer.send("0, which the old one had", 0)
    producer.send("4", 4)
    world.fetch("what is stored", topic)


@scenario
def state_outlives_deleted_records(world):
    topic, _ = world.topic("t")
    producer = Producer(world, topic)
    for i in range(4):
        producer.send(f"{i}", i)
    body = {"Topics": [{"Name": topic, "Partitions": [{"PartitionIndex": 0, "Offset": -1}]}],
            "TimeoutMs": 5_000}
    world.call("all records deleted", "DeleteRecords", 2, body)
    producer.send("2 again", 2)
    producer.send("0 again", 0)
    producer.send("a gap", 9)
    producer.send("4", 4)
    world.fetch("what is left", topic, 4)


@scenario
def new_producer_ids(world):
    world.producer_id()
    for version in range(6):
        body = {"TransactionalId": None, "TransactionTimeoutMs": 60_000}
        for timeout in (60_000, 0, -1, 2**31 - 1):
            body["TransactionTimeoutMs"] = timeout
            world.call(f"v{version} timeout {timeout}", "InitProducerId", version, body)
        world.call(f"v{version} empty transactional id", "InitProducerId", version,
                   {**body, "TransactionalId": ""})
    pid = world.producer_id()
    world.names.number("producer", pid)
    for version in (3, 4, 5):
        for given, epoch in ((pid, 0), (pid, 1), (pid, 32767), (pid, -1), (-1, 0), (99999, 3)):
            kind = "known" if given == pid else given
            world.call(f"v{version} with producer {kind}, epoch {epoch}", "InitProducerId", version,
                       {"TransactionalId": None, "ProducerId": given, "ProducerEpoch": epoch})
