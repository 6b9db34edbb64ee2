"""A group member on kafka-python."""

import logging
import sys
import time

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaConnectionError, KafkaError
from member import Arguments, Member, emit

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Listener(ConsumerRebalanceListener):
    def __init__(self, member):
        self.member = member

    def on_partitions_assigned(self, assigned):
        self.member.assigned([one.partition for one in assigned])

    def on_partitions_revoked(self, revoked):
        self.member.revoked([one.partition for one in revoked])

    def on_partitions_lost(self, lost):
        self.member.revoked([one.partition for one in lost])


def commit(consumer, topic, member):
    offsets = member.to_commit()
    try:
        if offsets:
            consumer.commit(
                {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
            )
        member.committed(offsets)
    except KafkaError as error:
        emit("commit failed", error=f"{type(error).__name__}: {error}")


def rescue_join(coordinator):
    """kafka-python 3.0.12 forgets an assignment that arrives between two calls of poll()."""
    task = coordinator._join_task
    if task is not None and task.is_done and not coordinator.need_rejoin():
        coordinator.request_rejoin()


def poll(consumer, member):
    try:
        for batch in consumer.poll(timeout_ms=200).values():
            for record in batch:
                member.record(record.partition, record.offset, record.value)
    except KafkaConnectionError as error:  # the library lets some of them out while a broker is away
        print(error, file=sys.stderr)
        time.sleep(0.1)


def main():
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    arguments, member = Arguments(), Member()
    consumer = KafkaConsumer(
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
    while True:
        rescue_join(consumer._coordinator)
        poll(consumer, member)
        command = member.command()
        if command == "commit":
            commit(consumer, arguments.topic, member)
        elif command:
            consumer.close()
            return emit("closed")


if __name__ == "__main__":
    main()
