"""Transactional producers for scenarios: what they send, and what is done for them without a step."""
import time

NONE, CONCURRENT = 0, 51
NOT_READY = (14, 15, 16)
NOBODY = {"ProducerId": 4_000_000, "ProducerEpoch": 0}  # has no transactional id, nor any batch


class Producer:
    """One that is initialized. `own`: its id and epoch as requests have them."""

    def __init__(self, world, short, timeout_ms=60_000):
        self.world = world
        self.id = world.name(short)
        self.own = dict(NOBODY)
        self.init(timeout_ms)

    def init(self, timeout_ms=60_000):
        for _ in range(400):
            answer = self.world.ask("InitProducerId", 4, init(self.id, timeout_ms))
            if answer["ErrorCode"] == NONE:
                break
            time.sleep(0.02)
        self.own = {key: answer[key] for key in ("ProducerId", "ProducerEpoch")}
        self.world.names.number("producer", answer["ProducerId"])  # whatever the order of later lists

    def other(self, epochs=0, ids=0):
        return {"ProducerId": self.own["ProducerId"] + ids,
                "ProducerEpoch": self.own["ProducerEpoch"] + epochs}

    def begin(self, topics):
        """A transaction of version 1 with these partitions."""
        body = add(self.id, self.own, topics)
        for _ in range(400):
            answer = self.world.ask("AddPartitionsToTxn", 3, body)
            told = {each["PartitionErrorCode"] for topic in answer["ResultsByTopicV3AndBelow"]
                    for each in topic["ResultsByPartition"]}
            if told <= {NONE}:
                return
            time.sleep(0.02)
        raise RuntimeError(f"{self.id} does not begin: {answer}")

    def end(self, commit=True, version=4):
        answer = self.world.ask("EndTxn", version, end(self.id, self.own, commit))
        if answer["ErrorCode"] != NONE:
            raise RuntimeError(f"{self.id} does not end: {answer}")
        if version >= 5:
            self.own = {key: answer[key] for key in self.own}
        self.settle()

    def settle(self):
        """Until no markers of it are being written: kanald answers then, Kafka before."""
        for _ in range(400):
            if not self.state()["TransactionState"].startswith("Prepare"):
                return
            time.sleep(0.02)
        raise RuntimeError(f"{self.id} is not complete")

    def state(self):
        body = {"TransactionalIds": [self.id]}
        return self.world.ask("DescribeTransactions", 0, body)["TransactionStates"][0]

    def describe(self, label):
        self.world.call(label, "DescribeTransactions", 0, {"TransactionalIds": [self.id]})


def init(transactional_id, timeout_ms=60_000, **own):
    return {"TransactionalId": transactional_id, "TransactionTimeoutMs": timeout_ms, **own}


def add(transactional_id, own, topics):
    """AddPartitionsToTxn up to version 3; `topics` is [(name, [partition])]."""
    return {"V3AndBelowTransactionalId": transactional_id,
            "V3AndBelowProducerId": own["ProducerId"],
            "V3AndBelowProducerEpoch": own["ProducerEpoch"],
            "V3AndBelowTopics": named(topics)}


def add_all(*transactions):
    """The same from version 4 on: of (transactional id, own, topics, whether only verified)."""
    return {"Transactions": [
        {"TransactionalId": transactional_id, **own, "VerifyOnly": verify, "Topics": named(topics)}
        for transactional_id, own, topics, verify in transactions]}


def named(topics):
    return [{"Name": name, "Partitions": partitions} for name, partitions in topics]


def add_group(transactional_id, own, group):
    return {"TransactionalId": transactional_id, **own, "GroupId": group}


def end(transactional_id, own, commit):
    return {"TransactionalId": transactional_id, **own, "Committed": commit}


def marker(own, topics, commit=False, coordinator_epoch=0, version=0):
    return {**own, "TransactionResult": commit, "CoordinatorEpoch": coordinator_epoch,
            "TransactionVersion": version, "Topics": [
                {"Name": name, "PartitionIndexes": partitions} for name, partitions in topics]}
