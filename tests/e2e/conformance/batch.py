"""Record batches: made field by field, any of them wrong on purpose, and read back as a summary."""
import gzip
import struct
import zlib

from wire import varint

# Whole batches carry this time: a fixed one, so that each run sends the same bytes.
T0 = 1_700_000_000_000
HEADER = ">qiibIhiqqqhii"


def crc32c_table():
    table = []
    for octet in range(256):
        for _ in range(8):
            octet = octet >> 1 ^ (0x82F63B78 if octet & 1 else 0)
        table.append(octet)
    return table


CRC32C = crc32c_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for octet in data:
        crc = CRC32C[(crc ^ octet) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def blob(octets):
    return varint(-1) if octets is None else varint(len(octets)) + octets


def record(index, value, key=None, headers=(), timestamp_delta=0):
    body = b"\0" + varint(timestamp_delta) + varint(index) + blob(key) + blob(value)
    body += varint(len(headers))
    for name, content in headers:
        body += varint(len(name)) + name + blob(content)
    return varint(len(body)) + body


def batch(*values, pid=-1, epoch=-1, sequence=-1, at=T0, times=None, attributes=0, **wrong):
    """One batch of these values (bytes, None, or (key, value)). `times` are added to T0 record by
    record; `wrong` overrides header fields: base_offset, length, leader_epoch, magic, crc,
    last_offset_delta, first_timestamp, max_timestamp, count, records."""
    deltas = times or [0] * len(values)
    pairs = [value if isinstance(value, tuple) else (None, value) for value in values]
    records = b"".join(record(i, value, key, timestamp_delta=deltas[i] - deltas[0])
                       for i, (key, value) in enumerate(pairs))
    records = wrong.get("records", records)
    if attributes & 7 == 1 and "records" not in wrong:
        records = gzip.compress(records, mtime=0)
    at += deltas[0] if deltas else 0
    after_crc = struct.pack(
        ">hiqqqhii", attributes, wrong.get("last_offset_delta", len(values) - 1),
        wrong.get("first_timestamp", at),
        wrong.get("max_timestamp", at + max(deltas) - deltas[0] if deltas else at),
        pid, epoch, sequence, wrong.get("count", len(values))) + records
    crc = wrong.get("crc", crc32c(after_crc))
    return struct.pack(">qiibI", wrong.get("base_offset", 0),
                       wrong.get("length", len(after_crc) + 9), wrong.get("leader_epoch", -1),
                       wrong.get("magic", 2), crc) + after_crc


def summaries(data):
    """What a fetch gave, batch by batch: every header field, the records as a checksum."""
    found = []
    while len(data) >= 12:
        length = struct.unpack(">i", data[8:12])[0]
        if len(data) < 12 + length:
            break  # Kafka may cut the last one
        one, data = data[:12 + length], data[12 + length:]
        fields = struct.unpack(HEADER, one[:61])
        (offset, _, leader_epoch, magic, crc, attributes, last_delta, first, latest, pid, epoch,
         sequence, count) = fields
        found.append({"BaseOffset": offset, "LeaderEpoch": leader_epoch, "Magic": magic,
                      "CrcRight": crc == crc32c(one[21:]), "Attributes": attributes,
                      "LastOffsetDelta": last_delta, "FirstTimestamp": first,
                      "MaxTimestamp": latest, "ProducerId": pid, "Epoch": epoch,
                      "Sequence": sequence, "Count": count, "RecordsCrc": zlib.crc32(one[61:])})
    return found
