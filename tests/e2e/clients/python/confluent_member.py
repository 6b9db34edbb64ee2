"""A group member on confluent-kafka (librdkafka)."""

import sys

from confluent_kafka import Consumer, KafkaException, TopicPartition
from member import Arguments, Member, emit


def commit(consumer, topic, member):
    offsets = member.to_commit()
    try:
        if offsets:
            done = consumer.commit(
                offsets=[TopicPartition(topic, p, o) for p, o in offsets.items()],
                asynchronous=False,
            )
            errors = [str(one.error) for one in done if one.error]
            if errors:
                return emit("commit failed", error=errors[0])
        return member.committed(offsets)
    except KafkaException as error:
        return emit("commit failed", error=str(error))


def main():
    arguments, member = Arguments(), Member()
    consumer = Consumer(
        {
            "bootstrap.servers": arguments.broker,
            "group.id": arguments.group,
            "group.protocol": "classic",
            "partition.assignment.strategy": arguments.assignor,
            "session.timeout.ms": arguments.session_ms,
            "heartbeat.interval.ms": arguments.heartbeat_ms,
            "client.id": arguments.name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": 1000,
        }
    )

    def assigned(_consumer, partitions):
        member.assigned([one.partition for one in partitions])

    def revoked(_consumer, partitions):
        member.revoked([one.partition for one in partitions])

    consumer.subscribe([arguments.topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    while True:
        message = consumer.poll(0.2)
        if message is not None and message.error():
            print(message.error(), file=sys.stderr)  # the library goes on by itself
        elif message is not None:
            member.record(message.partition(), message.offset(), message.value())
            continue  # read what is there before the next command
        command = member.command()
        if command == "commit":
            commit(consumer, arguments.topic, member)
        elif command:
            consumer.close()
            return emit("closed")


if __name__ == "__main__":
    main()
