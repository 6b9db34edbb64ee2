"""kafka-python, the pure Python client."""

import sys
import time

import contract
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

T = contract.TIMEOUT_S


def code_of(response, list_name):
    body = response if isinstance(response, dict) else response.to_dict()
    return body[list_name][0]["error_code"]


def create(admin, topic, partitions, config):
    request = {topic: {"num_partitions": partitions, "replication_factor": 1, "configs": config}}
    return code_of(admin.create_topics(request, raise_errors=False), "topics")


def produce(broker, idempotent, topic, codec, records):
    admin = KafkaAdminClient(bootstrap_servers=broker)
    code = create(admin, topic, contract.PARTITIONS, {"retention.ms": "-1"})
    admin.close()
    if code:
        raise RuntimeError(f"create topic: error {code}")
    producer = KafkaProducer(
        bootstrap_servers=broker,
        compression_type=None if codec == "none" else codec,
        enable_idempotence=idempotent,
        acks="all" if idempotent else 1,
        linger_ms=1 if idempotent else 50,
        batch_size=1000 if idempotent else 65536,
        delivery_timeout_ms=T * 1000,
        request_timeout_ms=T * 500,
    )
    futures = [
        producer.send(
            topic,
            value=r.value,
            key=r.key,
            headers=r.headers,
            partition=r.partition,
            timestamp_ms=r.timestamp,
        )
        for r in records
    ]
    producer.flush(T)
    for future in futures:
        future.get(T)
    producer.close(T)


def new_consumer(broker):
    return KafkaConsumer(
        bootstrap_servers=broker, group_id=None, enable_auto_commit=False, auto_offset_reset="none"
    )


def assignable(consumer, topic):
    return [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))]


def poll(consumer, count):
    deadline = time.monotonic() + T
    while count > 0:
        for batch in consumer.poll(timeout_ms=1000).values():
            for record in batch:
                yield record
                count -= 1
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} records missing")


def consume(broker, topic):
    consumer = new_consumer(broker)
    parts = assignable(consumer, topic)
    ends = consumer.end_offsets(parts)
    consumer.assign(parts)
    for part in parts:
        consumer.seek(part, 0)
    for r in poll(consumer, sum(ends.values())):
        contract.emit_record(topic, r.partition, r.offset, r.timestamp, r.key, r.value, r.headers)
    consumer.close(autocommit=False)


def offsets(broker, topic, timestamp):
    consumer = new_consumer(broker)
    parts = assignable(consumer, topic)
    low, high = consumer.beginning_offsets(parts), consumer.end_offsets(parts)
    times = consumer.offsets_for_times({part: timestamp for part in parts})
    for part in parts:
        consumer.assign([part])
        consumer.seek(part, high[part] - 1)
        last = next(poll(consumer, 1))
        contract.emit(
            partition=part.partition,
            earliest=low[part],
            latest=high[part],
            at=times[part].offset if times.get(part) else high[part],
            last=last.offset,
            last_value=contract.b64(last.value),
        )
    consumer.close(autocommit=False)


def admin(broker, topic):
    client = KafkaAdminClient(bootstrap_servers=broker)

    def describe(wanted):
        deadline = time.monotonic() + T
        while True:
            parts = client.describe_topics([topic])[0]["partitions"]
            if len(parts) == wanted or time.monotonic() > deadline:
                return sorted(parts, key=lambda p: p["partition_index"])
            time.sleep(0.1)

    def grow(count):
        return code_of(client.create_partitions({topic: count}, raise_errors=False), "results")

    def delete():
        return code_of(client.delete_topics([topic], raise_errors=False), "topics")

    contract.emit(step="create", code=create(client, topic, 2, {"retention.ms": "3600000"}))
    contract.emit(step="create again", code=create(client, topic, 2, {}))
    parts = describe(2)
    contract.emit(
        step="describe",
        partitions=[p["partition_index"] for p in parts],
        replicas=[len(p["replica_nodes"]) for p in parts],
    )
    configs = client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    contract.emit(step="config", value=configs["topic"][topic]["retention.ms"]["value"])
    contract.emit(step="grow", code=grow(5))
    contract.emit(step="describe grown", partitions=[p["partition_index"] for p in describe(5)])
    contract.emit(step="shrink", code=grow(3))
    contract.emit(step="delete", code=delete())
    deadline = time.monotonic() + T
    while topic in client.list_topics() and time.monotonic() < deadline:
        time.sleep(0.1)
    contract.emit(step="gone", gone=topic not in client.list_topics())
    contract.emit(step="delete again", code=delete())
    client.close()


if __name__ == "__main__":
    contract.run(sys.modules[__name__])
