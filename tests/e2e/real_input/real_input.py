"""Issue 3, "Must show" 1: Debian's word list and ISO code tables through kcat, byte for byte.

For every codec one topic of six partitions. Every partition gets all of the input, in an order of
its own (so that a mix-up of partitions shows). Round one sends the lines of all files, round two
each iso_*.json whole as one record (up to 875 KB) behind them. After each round the broker is
killed with SIGKILL, started again, and everything is read back with `kcat -C`, CRCs checked: the
same bytes in the same order, offsets 0, 1, 2 … without a gap.
"""
import argparse
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from broker import add_broker_arguments, broker_from, require  # noqa: E402
from checks import Checks  # noqa: E402

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PARTITIONS = 6
WORDS = pathlib.Path("/usr/share/dict/american-english")
TABLES = pathlib.Path("/usr/share/iso-codes/json")
KCAT_TIMEOUT_S = 120


def input_files():
    files = [WORDS, *sorted(TABLES.glob("iso_*.json"))]
    missing = not WORDS.exists() or len(files) < 2
    if missing:
        in_ci = os.environ.get("CI") == "true"
        print(f"{'FAIL' if in_ci else 'SKIP'}: needs Debian's wamerican and iso-codes")
        print(f"0 passed, {int(in_ci)} failed")
        sys.exit(int(in_ci))
    return files


def kcat(broker, *arguments, **options):
    command = ["kcat", "-b", broker.address, *arguments]
    return subprocess.run(command, check=True, timeout=KCAT_TIMEOUT_S, **options)


def produce_lines(broker, topic, partition, codec, file):
    kcat(broker, "-P", "-t", topic, "-p", str(partition), "-z", codec, "-l", str(file),
         stdin=subprocess.DEVNULL)


def produce_whole(broker, topic, partition, codec, files):
    kcat(broker, "-P", "-t", topic, "-p", str(partition), "-z", codec, *map(str, files),
         stdin=subprocess.DEVNULL)


def read_back(broker, topic, partition, record_format):
    """queued.min.messages: librdkafka 2.0 sleeps a second whenever more than that lie ready."""
    done = kcat(broker, "-C", "-t", topic, "-p", str(partition), "-o", "beginning", "-e", "-q",
                "-X", "check.crcs=true", "-X", "queued.min.messages=1000000",
                "-f", record_format, stdout=subprocess.PIPE)
    return done.stdout


def rotated(files, by):
    return files[by % len(files):] + files[:by % len(files)]


def disk_bytes(broker, topic):
    directories = (broker.channel_directory(topic, partition) for partition in range(PARTITIONS))
    # Blocks, not sizes: segments may be preallocated.
    files = (file for directory in directories for file in directory.glob("*.log"))
    return sum(file.stat().st_blocks * 512 for file in files)


def create_topics(broker, topics):
    """By auto-creation: num.partitions is set for that."""
    for topic in topics:
        kcat(broker, "-L", "-t", topic, stdout=subprocess.DEVNULL)


class RealInput:
    def __init__(self, broker, checks, scratch):
        self.broker = broker
        self.checks = checks
        self.files = input_files()
        self.tables = self.files[1:]
        self.topics = {codec: f"real_input.{codec}" for codec in CODECS}
        self.lines = [scratch / f"lines.{partition}" for partition in range(PARTITIONS)]
        self.records = []
        for partition, file in enumerate(self.lines):
            file.write_bytes(b"".join(part.read_bytes() for part in rotated(self.files, partition)))
            self.records.append(file.read_bytes().split(b"\n")[:-1])

    def run(self):
        self.send_lines()
        self.restart_after_kill()
        self.verify("lines")
        self.send_tables()
        self.restart_after_kill()
        self.verify("lines and whole files")

    def send_lines(self):
        for codec, topic in self.topics.items():
            for partition in range(PARTITIONS):
                produce_lines(self.broker, topic, partition, codec, self.lines[partition])

    def send_tables(self):
        for partition in range(PARTITIONS):
            files = rotated(self.tables, partition)
            for codec, topic in self.topics.items():
                produce_whole(self.broker, topic, partition, codec, files)
            self.records[partition] += [file.read_bytes() for file in files]

    def restart_after_kill(self):
        self.broker.kill9()
        self.broker.start()
        print(f"killed with SIGKILL, serving again after {self.broker.start_seconds * 1000:.0f} ms")

    def verify(self, what):
        print(f"{'codec':8}{'partition':>10}{'records':>10}{'bytes':>12}  sha256 of what was read")
        for codec, topic in self.topics.items():
            rows = [self.verify_partition(codec, topic, number) for number in range(PARTITIONS)]
            records, size = (sum(row[column] for row in rows) for column in (0, 1))
            print(f"{codec:8}{'all':>10}{records:>10}{size:>12}"
                  f"  on disk: {disk_bytes(self.broker, topic)}")
            self.checks.check(all(row[2] for row in rows),
                              f"{codec}: {what} are the same bytes in all partitions")
            self.checks.check(all(row[3] for row in rows),
                              f"{codec}: {what} have offsets dense from 0")

    def verify_partition(self, codec, topic, partition):
        """One read with offsets; only a difference costs more reads, which tell what differs."""
        records = self.records[partition]
        count = len(records)
        expected = b"".join(b"%d %s\n" % numbered for numbered in enumerate(records))
        data = read_back(self.broker, topic, partition, "%o %s\n")
        same = dense = data == expected
        note = ""
        if not same:
            at = len(os.path.commonprefix([data, expected]))
            note = (f"  DIFFERS at byte {at} of {len(expected)}: {data[at:at + 40]!r},"
                    f" not {expected[at:at + 40]!r}")
            offsets = read_back(self.broker, topic, partition, "%o\n").split()
            dense = offsets == [b"%d" % offset for offset in range(count)]
            values = read_back(self.broker, topic, partition, "%s\n")
            same = values == b"".join(record + b"\n" for record in records)
        digest = hashlib.sha256(data).hexdigest()[:16]
        print(f"{codec:8}{partition:>10}{count:>10}{len(data):>12}  {digest}{note}")
        return count, len(data), same, dense


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_broker_arguments(parser)
    arguments = parser.parse_args()
    require("kcat")
    input_files()
    checks = Checks()
    settings = [f"kafka.num.partitions={PARTITIONS}"]
    with (checks, tempfile.TemporaryDirectory(prefix="kanal-e2e-") as scratch,
          broker_from(arguments, settings) as broker):
        test = RealInput(broker, checks, pathlib.Path(scratch))
        create_topics(broker, test.topics.values())
        test.run()
        if broker.kind == "kanald":
            checks.check(broker.stop() == 0, "SIGTERM afterwards ends with 0")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())
