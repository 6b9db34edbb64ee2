"""What the Python group members share: the commands and the JSON lines of clients/README.md."""

import json
import queue
import sys
import threading


def emit(event, **fields):
    print(json.dumps({"event": event, **fields}), flush=True)


class Arguments:
    def __init__(self):
        self.broker, self.group, self.topic, self.assignor, session_ms, self.name = sys.argv[1:]
        self.session_ms = int(session_ms)
        self.heartbeat_ms = self.session_ms // 10


class Member:
    """Commands in, events out; what is owned now and which offset to commit for it."""

    def __init__(self):
        self.owned = set()
        self.next = {}
        self.commands = queue.SimpleQueue()
        threading.Thread(target=self._read_commands, daemon=True).start()

    def _read_commands(self):
        for line in sys.stdin:
            self.commands.put(line.strip())
        self.commands.put("close")

    def command(self):
        """The next command, or None; never waits."""
        try:
            return self.commands.get_nowait()
        except queue.Empty:
            return None

    def assigned(self, partitions):
        self.owned.update(partitions)
        self.next = {p: offset for p, offset in self.next.items() if p in self.owned}
        emit("assigned", partitions=sorted(self.owned))

    def revoked(self, partitions):
        self.owned.difference_update(partitions)
        emit("revoked", partitions=sorted(self.owned))

    def record(self, partition, offset, value):
        emit("record", partition=partition, offset=offset, value=value.decode())
        if partition in self.owned:
            self.next[partition] = offset + 1

    def to_commit(self):
        return {p: offset for p, offset in self.next.items() if p in self.owned}

    def committed(self, offsets):
        emit("committed", offsets=offsets)
