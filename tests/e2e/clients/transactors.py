"""The transactional programs of every client library as processes: told what to do, and readers.

README.md has their commands and answers. Used by transactions.py and ../exactly_once.
"""

import contextlib
import json
import os
import queue
import subprocess
import threading
import time

from groups import Library

ANSWER_DEADLINE_S = 120  # far beyond the programs' own minute
LIBRARIES = [
    Library("java", "java", "Transactor", ()),
    Library("franz-go", "franz_go", "transactor", ()),
    Library("confluent-kafka", "python", "confluent_transactor.py", ()),
    Library("kafka-python", "python", "kafka_python_transactor.py", ()),
    Library("aiokafka", "python", "aiokafka_transactor.py", ()),
    Library("kafka-javascript", "kafka_javascript", "confluent_transactor.js", ()),
    Library("kafkajs", "javascript", "kafkajs_transactor.js", ()),
]


class Gone(Exception):
    """The process has ended, or does not answer."""


class Refused(Exception):
    """It answered with an error."""


class Process:
    def __init__(self, library, arguments, log):
        self.library = library
        with open(log, "ab") as errors:
            self.process = subprocess.Popen(
                [*library.command, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, **library.environment},
            )
        self.listener = threading.Thread(target=self.listen, daemon=True)
        self.listener.start()

    def listen(self):
        for line in self.process.stdout:
            self.take(json.loads(line))
        self.take(None)

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.listener.join()
        with contextlib.suppress(BrokenPipeError):  # of a command that it was killed before it read
            self.process.stdin.close()
        self.process.stdout.close()


class Transactor(Process):
    """A process with any number of transactional producers, each under a name."""

    def __init__(self, library, broker, log):
        self.answers = queue.SimpleQueue()
        self.lock = threading.Lock()
        super().__init__(library, [broker, "transact"], log)

    def take(self, answer):
        self.answers.put(answer)

    def ask(self, command, name, *words):
        """The answer's fields; one command at a time, whoever asks."""
        with self.lock:
            try:
                self.process.stdin.write(" ".join([command, name, *map(str, words)]).encode() + b"\n")
                self.process.stdin.flush()
                answer = self.answers.get(timeout=ANSWER_DEADLINE_S)
            except (OSError, ValueError):
                answer = None
            except queue.Empty:
                raise Gone(f"{self.library.name} does not answer {command}") from None
        if answer is None:
            raise Gone(f"{self.library.name} is gone")
        if "error" in answer:
            raise Refused(f"{command}: {answer['error']}")
        return answer


class Reader(Process):
    """Reads topics from their start on, until it is killed; tells whoever waits for `changed`."""

    def __init__(self, library, broker, log, isolation, topics):
        self.isolation, self.name = isolation, f"{library.name} {isolation}"
        self.changed = threading.Condition()
        self.records = []  # (topic, partition, offset, value)
        self.places = set()  # (topic, partition, offset)
        self.ended, self.last = False, 0  # the time of the last record
        super().__init__(library, [broker, "read", isolation, *topics], log)

    def take(self, line):
        with self.changed:
            if line is None:
                self.ended = True
            else:
                place = line["topic"], line["partition"], line["offset"]
                self.records.append((*place, line["value"]))
                self.places.add(place)
                self.last = time.monotonic()
            self.changed.notify_all()

    def wait_for(self, places, deadline_s):
        """Waits until it has read all of these places; the missing ones."""
        with self.changed:
            self.changed.wait_for(lambda: self.ended or places <= self.places, deadline_s)
            return places - self.places
