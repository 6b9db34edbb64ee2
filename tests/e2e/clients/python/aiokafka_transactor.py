"""The transactional program on aiokafka. Its loop runs in a thread, so that it lives between commands."""

import asyncio
import sys
import threading

import transactor
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

T = transactor.ANSWER_WITHIN_S
LOOP = asyncio.new_event_loop()


def wait_for(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, LOOP).result(T)


class Producer:
    def __init__(self, broker, transactional_id, timeout_ms):
        async def start():
            self.inner = AIOKafkaProducer(
                bootstrap_servers=broker,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )
            await self.inner.start()
            await self.inner._txn_manager.wait_for_pid()  # start() does not wait for it

        wait_for(start())

    def begin(self):
        wait_for(self.inner.begin_transaction())

    def send(self, topic, records):
        async def send():
            futures = [await self.inner.send(topic, value=v, partition=p) for p, v in records]
            return [report.offset for report in await asyncio.gather(*futures)]

        return wait_for(send())

    def send_offsets(self, consumer, topic, offsets):
        places = {TopicPartition(topic, partition): o for partition, o in offsets.items()}
        wait_for(self.inner.send_offsets_to_transaction(places, consumer.group))

    def commit(self):
        wait_for(self.inner.commit_transaction())

    def abort(self):
        wait_for(self.inner.abort_transaction())


class Consumer:
    def __init__(self, broker, group, topic, limit):
        self.group, self.limit = group, limit

        async def start():
            self.inner = AIOKafkaConsumer(
                topic,
                bootstrap_servers=broker,
                group_id=group,
                session_timeout_ms=transactor.SESSION_MS,
                heartbeat_interval_ms=transactor.SESSION_MS // 10,
                isolation_level="read_committed",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
            )
            await self.inner.start()

        wait_for(start())

    def poll(self):
        batches = wait_for(
            self.inner.getmany(timeout_ms=transactor.POLL_S * 1000, max_records=self.limit)
        )
        return [(r.partition, r.offset, r.value) for batch in batches.values() for r in batch]

    def rewind(self):
        for place in self.inner.assignment():
            self.inner.seek(place, wait_for(self.inner.committed(place)) or 0)


def read(broker, isolation, topics):
    async def start():
        consumer = AIOKafkaConsumer(
            bootstrap_servers=broker,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level=isolation,
        )
        await consumer.start()
        places = []
        for topic in topics:
            await consumer._client._wait_on_metadata(topic)
            places += [TopicPartition(topic, p) for p in consumer.partitions_for_topic(topic)]
        consumer.assign(places)
        return consumer

    consumer = wait_for(start())
    while True:
        for batch in wait_for(consumer.getmany(timeout_ms=1000)).values():
            for record in batch:
                yield record.topic, record.partition, record.offset, record.value


if __name__ == "__main__":
    threading.Thread(target=LOOP.run_forever, daemon=True).start()
    transactor.run(sys.modules[__name__])
