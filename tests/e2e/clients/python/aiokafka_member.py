"""A group member on aiokafka."""

import asyncio

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError
from member import Arguments, Member, emit

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):
    def __init__(self, member):
        self.member = member

    def on_partitions_assigned(self, assigned):
        self.member.assigned([one.partition for one in assigned])

    def on_partitions_revoked(self, revoked):
        self.member.revoked([one.partition for one in revoked])


async def commit(consumer, topic, member):
    offsets = member.to_commit()
    try:
        if offsets:
            await consumer.commit({TopicPartition(topic, p): o for p, o in offsets.items()})
        member.committed(offsets)
    except KafkaError as error:
        emit("commit failed", error=f"{type(error).__name__}: {error}")


async def main():
    arguments, member = Arguments(), Member()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=arguments.broker,
        group_id=arguments.group,
        client_id=arguments.name,
        partition_assignment_strategy=(ASSIGNORS[arguments.assignor],),
        session_timeout_ms=arguments.session_ms,
        heartbeat_interval_ms=arguments.heartbeat_ms,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    consumer.subscribe([arguments.topic], listener=Listener(member))
    await consumer.start()
    while True:
        for batch in (await consumer.getmany(timeout_ms=200)).values():
            for record in batch:
                member.record(record.partition, record.offset, record.value)
        command = member.command()
        if command == "commit":
            await commit(consumer, arguments.topic, member)
        elif command:
            await consumer.stop()
            return emit("closed")


if __name__ == "__main__":
    asyncio.run(main())
