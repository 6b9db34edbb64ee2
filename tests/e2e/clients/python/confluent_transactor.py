"""The transactional program on confluent-kafka (librdkafka)."""

import os
import sys

import confluent_kafka
import transactor
from confluent_kafka import KafkaException, TopicPartition

T = transactor.ANSWER_WITHIN_S


class Producer:
    def __init__(self, broker, transactional_id, timeout_ms):
        self.inner = confluent_kafka.Producer(
            {
                "bootstrap.servers": broker,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 1000,
            }
        )
        self.inner.init_transactions(T)

    def begin(self):
        self.inner.begin_transaction()

    def send(self, topic, records):
        offsets, failures = {}, []

        def on_delivery(index):
            def report(error, message):
                if error:
                    failures.append(error)
                else:
                    offsets[index] = message.offset()

            return report

        for index, (partition, value) in enumerate(records):
            self.inner.produce(
                topic, value=value, partition=partition, on_delivery=on_delivery(index)
            )
        left = self.inner.flush(T)
        if failures:
            raise KafkaException(failures[0])
        if left:
            raise TimeoutError(f"{left} records not delivered")
        return [offsets[index] for index in range(len(records))]

    def send_offsets(self, consumer, topic, offsets):
        places = [TopicPartition(topic, p, offset) for p, offset in offsets.items()]
        metadata = consumer.inner.consumer_group_metadata()
        self.inner.send_offsets_to_transaction(places, metadata, T)

    def commit(self):
        self.inner.commit_transaction(T)

    def abort(self):
        self.inner.abort_transaction(T)


class Consumer:
    def __init__(self, broker, group, topic, limit):
        self.topic, self.limit = topic, limit
        self.inner = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker,
                "group.id": group,
                "group.protocol": "classic",
                "partition.assignment.strategy": "range",
                "session.timeout.ms": transactor.SESSION_MS,
                "heartbeat.interval.ms": transactor.SESSION_MS // 10,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "reconnect.backoff.max.ms": 1000,
            }
        )
        self.inner.subscribe([topic])

    def poll(self):
        messages = self.inner.consume(self.limit, transactor.POLL_S)
        for message in messages:
            if message.error():
                print(message.error(), file=sys.stderr)  # the library goes on by itself
        return [(m.partition(), m.offset(), m.value()) for m in messages if not m.error()]

    def rewind(self):
        owned = self.inner.assignment()
        if owned:
            committed = self.inner.committed(owned, T)
            places = [TopicPartition(self.topic, c.partition, max(c.offset, 0)) for c in committed]
            self.inner.assign(places)


def read(broker, isolation, topics):
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": f"unused-{os.getpid()}",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "reconnect.backoff.max.ms": 1000,
            "topic.metadata.refresh.interval.ms": 2000,
        }
    )
    partitions = [
        TopicPartition(topic, partition, 0)
        for topic in topics
        for partition in consumer.list_topics(topic, T).topics[topic].partitions
    ]
    consumer.assign(partitions)
    while True:
        message = consumer.poll(1)
        if message is not None and message.error():
            print(message.error(), file=sys.stderr)
        elif message is not None:
            yield message.topic(), message.partition(), message.offset(), message.value()


if __name__ == "__main__":
    transactor.run(sys.modules[__name__])
