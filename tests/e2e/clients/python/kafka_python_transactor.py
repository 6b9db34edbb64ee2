"""The transactional program on kafka-python."""

import logging
import sys
import time

import transactor
from kafka import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.errors import KafkaConnectionError
from kafka_python_member import rescue_join

T = transactor.ANSWER_WITHIN_S


class Producer:
    def __init__(self, broker, transactional_id, timeout_ms):
        self.inner = KafkaProducer(
            bootstrap_servers=broker,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            linger_ms=0,
            max_block_ms=T * 1000,
            delivery_timeout_ms=T * 1000,
        )
        self.inner.init_transactions()

    def begin(self):
        self.inner.begin_transaction()

    def send(self, topic, records):
        futures = [self.inner.send(topic, value=v, partition=p) for p, v in records]
        return [future.get(T).offset for future in futures]

    def send_offsets(self, consumer, topic, offsets):
        places = {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
        self.inner.send_offsets_to_transaction(places, consumer.inner.group_metadata())

    def commit(self):
        self.inner.commit_transaction()

    def abort(self):
        self.inner.abort_transaction()


class Consumer:
    def __init__(self, broker, group, topic, limit):
        self.inner = KafkaConsumer(
            topic,
            bootstrap_servers=broker,
            group_id=group,
            session_timeout_ms=transactor.SESSION_MS,
            heartbeat_interval_ms=transactor.SESSION_MS // 10,
            isolation_level="read_committed",
            max_poll_records=limit,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

    def poll(self):
        rescue_join(self.inner._coordinator)
        return [
            (record.partition, record.offset, record.value)
            for batch in self.inner.poll(timeout_ms=transactor.POLL_S * 1000).values()
            for record in batch
        ]

    def rewind(self):
        for place in self.inner.assignment():
            self.inner.seek(place, self.inner.committed(place) or 0)


def read(broker, isolation, topics):
    consumer = KafkaConsumer(
        bootstrap_servers=broker,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level=isolation,
    )
    consumer.assign(
        [TopicPartition(topic, p) for topic in topics for p in consumer.partitions_for_topic(topic)]
    )
    while True:
        try:
            batches = consumer.poll(timeout_ms=1000)
        except KafkaConnectionError as error:  # it lets some out while a broker is away
            print(error, file=sys.stderr)
            time.sleep(0.1)
            continue
        for batch in batches.values():
            for record in batch:
                yield record.topic, record.partition, record.offset, record.value


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    transactor.run(sys.modules[__name__])
