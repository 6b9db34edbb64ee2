"""What the three Python programs share: the command line and the JSON lines of clients/README.md."""

import base64
import json
import sys
import traceback

TIMEOUT_S = 30
PARTITIONS = 3


def b64(data):
    return None if data is None else base64.b64encode(bytes(data)).decode()


def unb64(text):
    return None if text is None else base64.b64decode(text)


def emit(**fields):
    print(json.dumps(fields), flush=True)


def emit_record(topic, partition, offset, timestamp, key, value, headers):
    emit(
        topic=topic,
        partition=partition,
        offset=offset,
        timestamp=timestamp,
        key=b64(key),
        value=b64(value),
        headers=[[name, b64(data)] for name, data in headers or []],
    )


class Record:
    def __init__(self, line):
        fields = json.loads(line)
        self.partition = fields["partition"]
        self.timestamp = fields["timestamp"]
        self.key = unb64(fields["key"])
        self.value = unb64(fields["value"])
        self.headers = [(name, unb64(data)) for name, data in fields["headers"]]


def read_records():
    return [Record(line) for line in sys.stdin if line.strip()]


def run(library):
    """library has produce(broker, idempotent, topic, codec, records), consume(broker, topic),
    offsets(broker, topic, timestamp) and admin(broker, topic); each topic fails alone."""
    command, broker, *rest = sys.argv[1:]
    failed = False
    if command == "produce":
        idempotent = rest[0] == "idempotent"
        records = read_records()
        jobs = [
            (topic, lambda t=topic, c=codec: library.produce(broker, idempotent, t, c, records))
            for topic, codec in (item.split("=") for item in rest[1:])
        ]
    elif command == "consume":
        jobs = [(topic, lambda t=topic: library.consume(broker, t)) for topic in rest]
    elif command == "offsets":
        jobs = [(rest[0], lambda: library.offsets(broker, rest[0], int(rest[1])))]
    elif command == "admin":
        jobs = [(rest[0], lambda: library.admin(broker, rest[0]))]
    else:
        sys.exit(f"unknown command {command}")
    for topic, job in jobs:
        try:
            job()
            emit(topic=topic, done=True)
        except Exception as error:  # reported as this topic's failure, the next one still runs
            traceback.print_exc()
            emit(topic=topic, error=f"{type(error).__name__}: {error}")
            failed = True
    sys.exit(1 if failed else 0)
