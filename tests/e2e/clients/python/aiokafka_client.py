"""aiokafka, the asyncio client."""

import asyncio
import sys
import time

import contract
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import BrokerResponseError

T = contract.TIMEOUT_S


async def create_topic(admin, topic, partitions, config):
    response = await admin.create_topics([NewTopic(topic, partitions, 1, topic_configs=config)])
    return response.topic_errors[0][1]


async def produce_async(broker, idempotent, topic, codec, records):
    admin = AIOKafkaAdminClient(bootstrap_servers=broker)
    await admin.start()
    code = await create_topic(admin, topic, contract.PARTITIONS, {"retention.ms": "-1"})
    await admin.close()
    if code:
        raise RuntimeError(f"create topic: error {code}")
    producer = AIOKafkaProducer(
        bootstrap_servers=broker,
        compression_type=None if codec == "none" else codec,
        enable_idempotence=idempotent,
        acks="all" if idempotent else 1,
        linger_ms=1 if idempotent else 50,
        max_batch_size=1000 if idempotent else 200_000,
        request_timeout_ms=T * 500,
    )
    await producer.start()
    try:
        sent = [
            await producer.send(
                topic,
                value=r.value,
                key=r.key,
                partition=r.partition,
                timestamp_ms=r.timestamp,
                headers=r.headers,
            )
            for r in records
        ]
        await asyncio.wait_for(asyncio.gather(*sent), T)
    finally:
        await producer.stop()


async def with_consumer(broker, body):
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker, group_id=None, enable_auto_commit=False, auto_offset_reset="none"
    )
    await consumer.start()
    try:
        await body(consumer)
    finally:
        await consumer.stop()


async def assignable(consumer, topic):
    await consumer._client._wait_on_metadata(topic)
    return [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic))]


async def poll(consumer, count):
    deadline = time.monotonic() + T
    while count > 0:
        for batch in (await consumer.getmany(timeout_ms=1000)).values():
            for record in batch:
                yield record
                count -= 1
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} records missing")


async def consume_async(consumer, topic):
    parts = await assignable(consumer, topic)
    ends = await consumer.end_offsets(parts)
    consumer.assign(parts)
    for part in parts:
        consumer.seek(part, 0)
    async for r in poll(consumer, sum(ends.values())):
        contract.emit_record(topic, r.partition, r.offset, r.timestamp, r.key, r.value, r.headers)


async def offsets_async(consumer, topic, timestamp):
    parts = await assignable(consumer, topic)
    low, high = await consumer.beginning_offsets(parts), await consumer.end_offsets(parts)
    times = await consumer.offsets_for_times({part: timestamp for part in parts})
    for part in parts:
        consumer.assign([part])
        consumer.seek(part, high[part] - 1)
        last = [record async for record in poll(consumer, 1)][0]
        contract.emit(
            partition=part.partition,
            earliest=low[part],
            latest=high[part],
            at=times[part].offset if times.get(part) else high[part],
            last=last.offset,
            last_value=contract.b64(last.value),
        )


async def admin_async(broker, topic):
    client = AIOKafkaAdminClient(bootstrap_servers=broker)
    await client.start()

    async def describe(wanted):
        deadline = time.monotonic() + T
        while True:
            parts = (await client.describe_topics([topic]))[0]["partitions"]
            if len(parts) == wanted or time.monotonic() > deadline:
                return sorted(parts, key=lambda p: p["partition"])
            await asyncio.sleep(0.1)

    async def grow(count):
        try:
            await client.create_partitions({topic: NewPartitions(count)})
            return 0
        except BrokerResponseError as error:
            return error.errno

    async def delete():
        return (await client.delete_topics([topic])).topic_error_codes[0][1]

    code = await create_topic(client, topic, 2, {"retention.ms": "3600000"})
    contract.emit(step="create", code=code)
    contract.emit(step="create again", code=await create_topic(client, topic, 2, {}))
    parts = await describe(2)
    contract.emit(
        step="describe",
        partitions=[p["partition"] for p in parts],
        replicas=[len(p["replicas"]) for p in parts],
    )
    answers = await client.describe_configs([ConfigResource(ConfigResourceType.TOPIC, topic)])
    entries = {entry[0]: entry[1] for entry in answers[0].resources[0][4]}
    contract.emit(step="config", value=entries["retention.ms"])
    contract.emit(step="grow", code=await grow(5))
    contract.emit(step="describe grown", partitions=[p["partition"] for p in await describe(5)])
    contract.emit(step="shrink", code=await grow(3))
    contract.emit(step="delete", code=await delete())
    deadline = time.monotonic() + T
    while topic in await client.list_topics() and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    contract.emit(step="gone", gone=topic not in await client.list_topics())
    contract.emit(step="delete again", code=await delete())
    await client.close()


def produce(broker, idempotent, topic, codec, records):
    asyncio.run(produce_async(broker, idempotent, topic, codec, records))


def consume(broker, topic):
    asyncio.run(with_consumer(broker, lambda consumer: consume_async(consumer, topic)))


def offsets(broker, topic, timestamp):
    asyncio.run(with_consumer(broker, lambda consumer: offsets_async(consumer, topic, timestamp)))


def admin(broker, topic):
    asyncio.run(admin_async(broker, topic))


if __name__ == "__main__":
    contract.run(sys.modules[__name__])
