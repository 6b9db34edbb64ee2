"""The deterministic records that every library writes, and what each library cannot say of them."""

import base64
import random

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 3
EPOCH = 1_700_000_000_000
PROBE_TIMESTAMP = EPOCH + 1_000  # ListOffsets by time asks for this one


def record(partition, timestamp, key, value, headers=()):
    return {
        "partition": partition,
        "timestamp": timestamp,
        "key": b64(key),
        "value": b64(value),
        "headers": [[name, b64(data)] for name, data in headers],
    }


def b64(data):
    return None if data is None else base64.b64encode(data).decode()


def edge_records():
    every_byte = bytes(range(256))
    noise = random.Random(44).randbytes(60_000)
    text = "".join(f"line {i}: the quick brown fox\n" for i in range(4_000)).encode()
    return [
        record(0, EPOCH, None, b"null key"),
        record(0, EPOCH + 1, b"null value", None),
        record(0, EPOCH + 2, None, None),
        record(0, EPOCH + 3, b"", b""),
        record(0, EPOCH + 4, None, b""),
        record(0, EPOCH + 5, b"", None),
        record(1, EPOCH, every_byte, every_byte * 3),
        record(1, EPOCH, "ключ".encode(), "værdi 値 🌊".encode()),
        record(1, EPOCH + 7_000_000_000, b"later", b"than fits 32 bits of milliseconds"),
        record(1, EPOCH - 7_000_000_000, b"earlier", b"than the first of its batch"),
        record(1, EPOCH + 999, b"back", b"again"),
        record(1, 86_400_000, b"1970", b"a timestamp of fewer digits"),
        record(2, EPOCH, b"h1", b"headers", [("one", b"1")]),
        record(2, EPOCH, b"h2", b"headers", [("same", b"1"), ("same", b"2"), ("same", b"1")]),
        record(
            2, EPOCH, b"h3", b"headers", [("empty", b""), ("binary", every_byte), ("é値", b"x")]
        ),
        record(2, EPOCH, b"h4", None, [("on a tombstone", b"yes")]),
        record(2, EPOCH, None, None, [("headers", b"alone")]),
        record(2, EPOCH, b"h5", b"null header value", [("a", b"1"), ("null", None), ("b", b"2")]),
        record(2, EPOCH, b"h6", b"fifty headers", [(f"name-{i}", b"v" * i) for i in range(50)]),
        record(2, EPOCH, b"h7", b"long header", [("long", text[:20_000])]),
        record(0, EPOCH + 6, b"text", text),
        record(1, EPOCH + 1_000, b"noise", noise),
        record(2, EPOCH + 1_000, noise[:5_000], noise[5_000:9_000]),
    ]


def bulk_records(count):
    """Small ones in order, all partitions in turn; the timestamps rise."""
    return [
        record(i % PARTITIONS, EPOCH + 2_000 + i, b"key-%d" % i, b"value-%d-" % i + b"x" * (i % 40))
        for i in range(count)
    ]


def plain_records():
    return edge_records() + bulk_records(300)


def idempotent_records():
    return bulk_records(3_000)


def can_write(library, one):
    if one["key"] is None and one["value"] is None and not library.writes_null_pair:
        return False
    return library.writes_null_header or all(data is not None for _name, data in one["headers"])


def as_read(library, one):
    """What the library shows of a record; kafka-javascript shows a null header value as empty."""
    if library.reads_null_header:
        return one
    return {**one, "headers": [[name, data or ""] for name, data in one["headers"]]}


def stored(topic, records):
    """The records as the broker must hold them: offsets dense from 0 in each partition."""
    offsets = [0] * PARTITIONS
    for one in records:
        yield {"topic": topic, "offset": offsets[one["partition"]], **one}
        offsets[one["partition"]] += 1


def expected_offsets(records):
    """For each partition: bounds, the first offset at PROBE_TIMESTAMP or later, the last value."""
    lines = []
    for partition in range(PARTITIONS):
        mine = [one for one in records if one["partition"] == partition]
        at = next(
            (i for i, one in enumerate(mine) if one["timestamp"] >= PROBE_TIMESTAMP), len(mine)
        )
        lines.append(
            {
                "partition": partition,
                "earliest": 0,
                "latest": len(mine),
                "at": at,
                "last": len(mine) - 1,
                "last_value": mine[-1]["value"],
            }
        )
    return lines
