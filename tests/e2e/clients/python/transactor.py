"""What the transactional Python programs share: the commands and JSON lines of clients/README.md."""

import json
import sys
import traceback

ANSWER_WITHIN_S = 60
POLL_S = 1
SESSION_MS = 2_000


def emit(**fields):
    print(json.dumps(fields), flush=True)


class Handle:
    """One transactional producer, and its consumer where it has one, both of one library."""

    def __init__(self, library, broker, words):
        self.topic, self.consumer, self.next = None, None, {}
        if len(words) > 2:
            group, self.topic, limit = words[2:]
            self.consumer = library.Consumer(broker, group, self.topic, int(limit))
        self.producer = library.Producer(broker, words[0], int(words[1]))

    def do(self, command, words):
        return getattr(self, command)(*words) or {}

    def begin(self):
        self.producer.begin()

    def send(self, topic, *words):
        pairs = [word.split(":", 1) for word in words]
        records = [(int(partition), value.encode()) for partition, value in pairs]
        return {"offsets": self.producer.send(topic, records)}

    def poll(self):
        records = [(p, o, value.decode()) for p, o, value in self.consumer.poll()]
        self.next.update({partition: offset + 1 for partition, offset, _value in records})
        return {"records": records}

    def offsets(self):
        self.producer.send_offsets(self.consumer, self.topic, self.next)

    def commit(self):
        self.producer.commit()
        self.next = {}

    def abort(self):
        self.producer.abort()
        self.next = {}
        if self.consumer:
            self.consumer.rewind()


def serve(library, broker):
    handles = {}
    for line in sys.stdin:
        command, name, *words = line.split()
        try:
            if command == "init":
                handles[name] = Handle(library, broker, words)
                emit()
            else:
                emit(**handles[name].do(command, words))
        except Exception as error:  # the answer; the driver judges it
            traceback.print_exc()
            emit(error=f"{type(error).__name__}: {error}")


def run(library):
    """library has Producer(broker, id, timeout_ms) with begin, send, send_offsets, commit, abort,
    Consumer(broker, group, topic, limit) with poll and rewind, and read(broker, isolation, topics),
    which yields all records of the topics for ever."""
    broker, command, *rest = sys.argv[1:]
    if command == "transact":
        serve(library, broker)
        return
    for topic, partition, offset, value in library.read(broker, rest[0], rest[1:]):
        emit(topic=topic, partition=partition, offset=offset, value=value.decode())
