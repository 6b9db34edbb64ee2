"""confluent-kafka (librdkafka). group.id is demanded by the library; assign() never joins it."""

import sys
import time

import contract
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

T = contract.TIMEOUT_S


def admin_client(broker):
    return AdminClient({"bootstrap.servers": broker})


def code_of(futures):
    try:
        for future in futures.values():
            future.result(T)
        return 0
    except KafkaException as error:
        return error.args[0].code()


def create(admin, topic, partitions, config):
    return code_of(admin.create_topics([NewTopic(topic, partitions, 1, config=config)]))


def produce(broker, idempotent, topic, codec, records):
    code = create(admin_client(broker), topic, contract.PARTITIONS, {"retention.ms": "-1"})
    if code:
        raise RuntimeError(f"create topic: error {code}")
    config = {
        "bootstrap.servers": broker,
        "compression.type": codec,
        "acks": "1",
        "linger.ms": 50,
        "delivery.timeout.ms": T * 1000,
    }
    if idempotent:
        config.update(
            {"enable.idempotence": True, "acks": "all", "linger.ms": 1, "batch.num.messages": 20}
        )
    producer = Producer(config)
    failures, delivered = [], [0]

    def on_delivery(error, _message):
        delivered[0] += 1
        if error:
            failures.append(str(error))

    for record in records:
        producer.produce(
            topic,
            value=record.value,
            key=record.key,
            partition=record.partition,
            timestamp=record.timestamp,
            headers=record.headers,
            on_delivery=on_delivery,
        )
        producer.poll(0)
    left = producer.flush(T)
    if failures or left or delivered[0] != len(records):
        raise RuntimeError(f"{delivered[0]} reports of {len(records)}, {left} left, {failures[:3]}")


def new_consumer(broker):
    return Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
    )


def partitions_of(consumer, topic):
    metadata = consumer.list_topics(topic, T).topics[topic]
    if metadata.error:
        raise KafkaException(metadata.error)
    return sorted(metadata.partitions)


def poll(consumer, deadline):
    while True:
        message = consumer.poll(1)
        if message is not None and message.error():
            raise KafkaException(message.error())
        if message is not None:
            return message
        if time.monotonic() > deadline:
            raise TimeoutError("no record in time")


def consume(broker, topic):
    consumer = new_consumer(broker)
    ends = {
        p: consumer.get_watermark_offsets(TopicPartition(topic, p), T)[1]
        for p in partitions_of(consumer, topic)
    }
    consumer.assign([TopicPartition(topic, p, 0) for p in ends])
    left = sum(ends.values())
    deadline = time.monotonic() + T
    while left:
        m = poll(consumer, deadline)
        contract.emit_record(
            topic, m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value(), m.headers()
        )
        left -= 1
    consumer.close()


def offsets(broker, topic, timestamp):
    consumer = new_consumer(broker)
    for p in partitions_of(consumer, topic):
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, p), T)
        at = consumer.offsets_for_times([TopicPartition(topic, p, timestamp)], T)[0].offset
        consumer.assign([TopicPartition(topic, p, high - 1)])
        last = poll(consumer, time.monotonic() + T)
        contract.emit(
            partition=p,
            earliest=low,
            latest=high,
            at=high if at < 0 else at,
            last=last.offset(),
            last_value=contract.b64(last.value()),
        )
    consumer.close()


def admin(broker, topic):
    client = admin_client(broker)

    def describe(wanted):
        deadline = time.monotonic() + T
        while True:
            metadata = client.list_topics(topic, T).topics[topic]
            if len(metadata.partitions) == wanted or time.monotonic() > deadline:
                return metadata
            time.sleep(0.1)

    contract.emit(step="create", code=create(client, topic, 2, {"retention.ms": "3600000"}))
    contract.emit(step="create again", code=create(client, topic, 2, {}))
    metadata = describe(2)
    contract.emit(
        step="describe",
        partitions=sorted(metadata.partitions),
        replicas=[len(p.replicas) for p in metadata.partitions.values()],
    )
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    entries = client.describe_configs([resource])[resource].result(T)
    contract.emit(step="config", value=entries["retention.ms"].value)
    contract.emit(step="grow", code=code_of(client.create_partitions([NewPartitions(topic, 5)])))
    contract.emit(step="describe grown", partitions=sorted(describe(5).partitions))
    contract.emit(step="shrink", code=code_of(client.create_partitions([NewPartitions(topic, 3)])))
    contract.emit(step="delete", code=code_of(client.delete_topics([topic])))
    deadline = time.monotonic() + T
    while topic in client.list_topics(timeout=T).topics and time.monotonic() < deadline:
        time.sleep(0.1)
    contract.emit(step="gone", gone=topic not in client.list_topics(timeout=T).topics)
    contract.emit(step="delete again", code=code_of(client.delete_topics([topic])))


if __name__ == "__main__":
    contract.run(sys.modules[__name__])
