"""The requests and record batches that log_figures.py needs, as raw frames (standard library only)."""
import os
import pathlib
import random
import struct
import sys
import time

import raw_client
from raw_client import text

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e/conformance"))
import batch as record_batch  # noqa: E402

NOT_YET = (3, 5, 6)  # no such topic, no leader, not the leader: of a broker that is still opening its logs


def batch(pairs):
    """A batch of magic 2 of (key or None, value)."""
    return record_batch.batch(*pairs, at=int(time.time() * 1000))


def keyed_batches(count, records, keys, value_bytes=1024, seed=1):
    """Batches of one size with keys at random out of `keys`. A log of them, in turns, has its last values spread over the
    batches of its end, so that a cleaner must write batches anew and cannot only drop whole ones."""
    dice = random.Random(seed)
    return [batch([(b"key-%08d" % dice.randrange(keys), os.urandom(value_bytes)) for _ in range(records)])
            for _ in range(count)]


def plain_batch(size):
    """Of records of 1 KiB without keys, about `size` bytes."""
    return batch([(None, os.urandom(1024)) for _ in range(max(1, size // 1035))])


def frame(key, version, body):
    head = struct.pack(">hhi", key, version, 1) + text("figures")
    return struct.pack(">i", len(head) + len(body)) + head + body


def produce_frame(topic, batches, acks=1):
    """Produce v7 of {partition: batch}."""
    body = struct.pack(">hhii", -1, acks, 30000, 1) + text(topic) + struct.pack(">i", len(batches))
    return frame(0, 7, body + b"".join(struct.pack(">ii", at, len(data)) + data for at, data in batches.items()))


def produce_errors(answer, topic):
    """The error codes of an answer to produce_frame that are not NONE."""
    at = 4 + 2 + len(topic)
    (count,) = struct.unpack_from(">i", answer, at)
    codes = (struct.unpack_from(">h", answer, at + 8 + 30 * i)[0] for i in range(count))
    return [code for code in codes if code]


def send_all(connection, topic, frames, window=8):
    """Sends the frames, `window` of them unanswered at a time. The topic is open (end_offsets)."""
    under_way = 0
    for data in frames:
        if under_way == window:
            check(connection, topic)
            under_way -= 1
        connection.sendall(data)
        under_way += 1
    for _ in range(under_way):
        check(connection, topic)


def check(connection, topic):
    if errors := produce_errors(raw_client.receive(connection), topic):
        raise RuntimeError(f"produce to {topic} is answered with {sorted(set(errors))}")


def describe_sizes(connection, topics):
    """DescribeLogDirs v1: {topic: bytes of its logs}."""
    body = struct.pack(">i", len(topics))
    for name, partitions in topics.items():
        body += text(name) + struct.pack(f">i{partitions}i", partitions, *range(partitions))
    raw_client.send(connection, 35, 1, body)
    answer, sizes, at = raw_client.receive(connection), dict.fromkeys(topics, 0), 8
    for _ in range(struct.unpack_from(">i", answer, 4)[0]):
        (length,) = struct.unpack_from(">h", answer, at + 2)
        at += 4 + length
        (count,) = struct.unpack_from(">i", answer, at)
        at += 4
        for _ in range(count):
            (length,) = struct.unpack_from(">h", answer, at)
            name = answer[at + 2:at + 2 + length].decode()
            (partitions,) = struct.unpack_from(">i", answer, at + 2 + length)
            at += 6 + length
            for _ in range(partitions):
                sizes[name] += struct.unpack_from(">q", answer, at + 4)[0]
                at += 21
    return sizes


def alter_topic(connection, topic, configs):
    """IncrementalAlterConfigs v0, SET; the error code."""
    body = struct.pack(">ib", 1, 2) + text(topic) + struct.pack(">i", len(configs))
    for key, value in configs.items():
        body += text(key) + b"\0" + text(str(value))
    raw_client.send(connection, 44, 0, body + b"\0")
    return struct.unpack_from(">h", raw_client.receive(connection), 8)[0]


def create_partitions(connection, topic, count):
    """CreatePartitions v0; the error code."""
    body = struct.pack(">i", 1) + text(topic) + struct.pack(">iii?", count, -1, 60000, False)
    raw_client.send(connection, 37, 0, body)
    return struct.unpack_from(">h", raw_client.receive(connection), 8 + 2 + len(topic))[0]


def delete_topic(connection, topic):
    """DeleteTopics v3; the error code."""
    raw_client.send(connection, 20, 3, struct.pack(">i", 1) + text(topic) + struct.pack(">i", 60000))
    return struct.unpack_from(">h", raw_client.receive(connection), 8 + 2 + len(topic))[0]


def end_offsets(connection, topic, partitions):
    """ListOffsets v2 of a topic's partitions, asked until all are open."""
    body = struct.pack(">ibi", -1, 0, 1) + text(topic) + struct.pack(">i", partitions)
    body += b"".join(struct.pack(">iq", partition, -1) for partition in range(partitions))
    end = time.monotonic() + 300
    while True:
        raw_client.send(connection, 2, 2, body)
        answer, at = raw_client.receive(connection), 4 + 4 + 2 + len(topic) + 4
        found = [struct.unpack_from(">ihqq", answer, at + 22 * i) for i in range(partitions)]
        errors = {code for _, code, _, _ in found if code}
        if not errors:
            return [offset for _, _, _, offset in sorted(found)]
        if errors - set(NOT_YET) or time.monotonic() > end:
            raise RuntimeError(f"ListOffsets of {topic} is answered with {sorted(errors)}")
        time.sleep(0.005)
