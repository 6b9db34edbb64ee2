#!/usr/bin/env python3
"""The operator's view of backup, check and repair: kanald --snapshot, --check-data, log.recovery.

    backup_test.py [KANALD]     one line a check, the last one counts them
"""
import argparse
import hashlib
import os
import pathlib
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from broker import Kanald, BrokerFailed, add_broker_arguments, require  # noqa: E402
from checks import Checks  # noqa: E402

RECORDS = 2000
ROUNDS = 8  # of values for the keys of the compacted topic
NEVER_READ = ("OPTIONS-", "IDENTITY", "LOCK", "LOG")  # of RocksDB


def kcat(broker, *arguments, text=None):
    return subprocess.run(["kcat", "-b", broker.address, *arguments], input=text, text=True,
                          capture_output=True, timeout=60, check=False)


def produce(broker, topic, count=RECORDS, batch=20):
    lines = "".join(f"{topic}-{i}-{'x' * 900}\n" for i in range(count))
    return kcat(broker, "-P", "-t", topic, "-X", f"batch.num.messages={batch}", text=lines)


def consume(broker, topic, *arguments):
    return kcat(broker, "-C", "-t", topic, "-o", "beginning", "-e", "-q",
                *arguments).stdout.splitlines()


class Commands:
    def __init__(self, binary):
        self.binary = binary

    def run(self, *arguments):
        return subprocess.run([self.binary, *map(str, arguments)], text=True, capture_output=True,
                              timeout=120, check=False)

    def check(self, directory):
        return self.run("--check-data", directory)

    def snapshot(self, data, directory):
        return self.run("--data-dir", data, "--snapshot", directory)


def picture(directory):
    """Every file with its content and times."""
    found = {}
    for path in sorted(directory.rglob("*")):
        status = path.lstat()
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        found[str(path)] = (digest, status.st_size, status.st_mtime_ns)
    return found


def fill(broker):
    """Two topics of several segments, a group with offsets."""
    for topic in ("one", "two"):
        produce(broker, topic)
    kcat(broker, "-G", "readers", "-e", "-q", "-X", "auto.offset.reset=earliest", "one")


def batch_at(segment, number):
    """Where the batch begins."""
    position = 0
    for _ in range(number):
        position += 12 + int.from_bytes(segment[position + 8:position + 12], "big")
    return position


def flip(path, position, mask=0x10):
    content = bytearray(path.read_bytes())
    content[position] ^= mask
    path.write_bytes(content)


def test_running(checks, broker, commands):
    control = broker.data_dir / "control"
    mode = control.stat().st_mode
    checks.check(stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600,
                 "the control socket is its owner's alone")
    used = commands.check(broker.data_dir)
    checks.check(used.returncode == 2 and "in use" in used.stderr, "no check of data in use", used)
    where = broker.scratch / "snapshot"
    made = commands.snapshot(broker.data_dir, where)
    checks.check(made.returncode == 0 and "Snapshot made." in made.stdout, "a snapshot", made)
    sound = commands.check(where)
    checks.check(sound.returncode == 0 and "Result: sound." in sound.stdout, "it is sound",
                 sound.stdout)
    again = commands.snapshot(broker.data_dir, where)
    checks.check(again.returncode == 1 and "not empty" in again.stderr, "never over another", again)
    for inside in ("", "channels", "channels/x", "reserved/x"):
        refused = commands.snapshot(broker.data_dir, broker.data_dir / inside)
        checks.check(refused.returncode == 1, f"never into the data itself: '{inside}'", refused)
    beside = broker.data_dir / "snapshots" / "monday"
    made = commands.snapshot(broker.data_dir, beside)
    checks.check(made.returncode == 0, "a snapshot inside the data directory", made)
    shutil.rmtree(beside.parent)
    return where


def test_left_over(checks, broker, commands):
    where = broker.scratch / "second"
    building = broker.scratch / "second.tmp"
    building.mkdir()
    (building / "precious").write_text("mine")
    refused = commands.snapshot(broker.data_dir, where)
    checks.check(refused.returncode == 1 and (building / "precious").exists(),
                 "a foreign DIR.tmp is not touched", refused)
    (building / "meta").write_text("kanal-data unfinished snapshot\n")
    started = commands.run("--data-dir", building, "--listen", "127.0.0.1:0")
    checks.check(started.returncode == 1 and "never finished" in started.stdout + started.stderr,
                 "no start on an unfinished snapshot", started)
    unsound = commands.check(building)
    checks.check(unsound.returncode != 0, "an unfinished snapshot is not sound", unsound.stdout)
    made = commands.snapshot(broker.data_dir, where)
    checks.check(made.returncode == 0 and not building.exists(), "what a crash left is cleared", made)
    shutil.rmtree(where)


def test_other_file_system(checks, broker, commands):
    shm = pathlib.Path("/dev/shm")
    if not shm.is_dir() or shm.stat().st_dev == broker.data_dir.stat().st_dev:
        return
    scratch = pathlib.Path(tempfile.mkdtemp(prefix="kanal-e2e-", dir=shm))
    try:
        made = commands.snapshot(broker.data_dir, scratch / "copy")
        checks.check(made.returncode == 0, "a snapshot on another file system", made)
        sound = commands.check(scratch / "copy")
        checks.check("Result: sound." in sound.stdout, "it is sound too", sound.stdout)
        checks.check(not (broker.data_dir / ".snapshot").exists(), "no links are left behind")
    finally:
        shutil.rmtree(scratch)


def test_killed(checks, broker, commands):
    broker.kill9()
    killed = commands.check(broker.data_dir)
    checks.check(killed.returncode == 0, "sound after kill -9", killed.stdout)
    segment = max(broker.channel_directory("one", 0).glob("*.log"))
    whole = segment.read_bytes()
    segment.write_bytes(whole + b"\x00\x01torn" * 20)
    torn = commands.check(broker.data_dir)
    place = f"{segment}:{len(whole)}: recoverable"
    checks.check(torn.returncode == 0 and "Result: recoverable." in torn.stdout
                 and place in torn.stdout, "a torn tail is recoverable", torn.stdout)
    where = broker.scratch / "killed"
    made = commands.snapshot(broker.data_dir, where)
    checks.check(made.returncode == 0, "a snapshot without a daemon", made)
    shutil.rmtree(where)
    broker.start()
    checks.check(len(consume(broker, "one")) == RECORDS, "a start goes on")
    where = broker.scratch / "third"
    made = commands.snapshot(broker.data_dir, where)
    checks.check(made.returncode == 0, "the dead daemon's socket was replaced", made)
    shutil.rmtree(where)


def test_stopped(checks, broker, commands):
    checks.check(broker.stop() == 0 and not (broker.data_dir / "control").exists(),
                 "a stop takes the socket away")
    before = picture(broker.data_dir)
    sound = commands.check(broker.data_dir)
    checks.check(sound.returncode == 0 and "Result: sound." in sound.stdout, "sound after a stop",
                 sound.stdout)
    checks.check(" 2 topics, 2 partitions, 1 groups, 1 committed offsets" in sound.stdout
                 and f"{2 * RECORDS} records" in sound.stdout, "everything is counted",
                 sound.stdout)
    checks.check(picture(broker.data_dir) == before, "the check writes nothing")
    data = broker.data_dir
    read_only = subprocess.run(
        ["unshare", "--mount", "sh", "-c",
         f"mount --bind {data} {data} && mount -o remount,ro,bind {data} && "
         f"! touch {data}/x 2>/dev/null && exec {commands.binary} --check-data {data}"],
        text=True, capture_output=True, check=False)
    if "unshare" not in read_only.stderr and "mount" not in read_only.stderr:
        checks.check(read_only.returncode == 0 and "Result: sound." in read_only.stdout,
                     "a read-only file system will do", read_only)
    nothing = commands.check(broker.scratch / "nothing")
    checks.check(nothing.returncode == 2, "nothing to check", nothing)
    empty = broker.scratch / "empty"
    empty.mkdir()
    checks.check(commands.check(empty).returncode == 2, "an empty directory is no data directory")


def places(size, count):
    return sorted({min(size - 1, i * size // count + (i * 7) % max(1, size // count))
                   for i in range(count)})


def test_flips(checks, broker, commands):
    """Every kind of file, a few bytes of each."""
    missed = []
    tried = 0
    seen = {}
    for path in sorted(broker.data_dir.rglob("*")):
        name = path.name
        if not path.is_file() or name.startswith(NEVER_READ) or name in ("lock", "reserve", "journal"):
            continue
        kind = path.suffix or name.split("-")[0]
        if path.stat().st_size == 0 or seen.setdefault((path.parent, kind), 0) >= 2:
            continue
        seen[(path.parent, kind)] += 1
        sound = path.read_bytes()
        # The journal's and the manifest's last record may be a torn one: only what is before it.
        size = 56 if name == "channel" else len(sound)
        for position in places(size, 6):
            flip(path, position, 0x01)
            found = commands.check(broker.data_dir)
            tried += 1
            if found.returncode != 1 and "recoverable" not in found.stdout:
                missed.append(f"{path}:{position}\n{found.stdout}{found.stderr}")
            path.write_bytes(sound)
    checks.check(tried > 40 and not missed, f"{tried} flipped bytes, each is told",
                 "\n".join(missed))
    checks.check("Result: sound." in commands.check(broker.data_dir).stdout, "sound again")


def test_cut_journal(checks, broker, commands):
    """What a clean stop left is known: a reserved journal that ends before it is no torn one."""
    broker.start()
    produce(broker, "three", 10)
    broker.stop()
    reserved, kept = broker.data_dir / "reserved", broker.scratch / "reserved.kept"
    stopped = (broker.data_dir / "stopped").read_bytes()
    shutil.copytree(reserved, kept)
    journal = max(reserved.glob("*.log"), key=lambda path: path.stat().st_size)
    journal.write_bytes(journal.read_bytes()[:-1])
    told = commands.check(broker.data_dir)
    checks.check(told.returncode == 1 and "last clean stop" in told.stdout, "the check tells", told)
    try:
        broker.start()
        checks.check(False, "strict: a start on a cut journal is refused")
    except BrokerFailed:
        checks.check("last clean stop" in broker.log_file.read_text(),
                     "strict: a start on a cut journal is refused")
    broker.settings = ["log.recovery=truncate"]
    broker.start()
    checks.check("last clean stop" in broker.log_file.read_text(), "truncate: said loudly")
    broker.kill9()
    broker.settings = []
    broker.start()
    checks.check(len(consume(broker, "one")) == RECORDS, "and once only")
    broker.stop()
    shutil.rmtree(reserved)
    kept.rename(reserved)
    (broker.data_dir / "stopped").write_bytes(stopped)


def test_damage(checks, broker, commands):
    """Damage in the middle: offline, or cut and kept."""
    segment = min(broker.channel_directory("one", 0).glob("*.log"))
    position = batch_at(segment.read_bytes(), 3)
    clean = broker.data_dir / "channels" / "clean-shutdown"
    clean.unlink()  # or nobody would look
    (broker.channel_directory("one", 0) / "checkpoint").unlink(missing_ok=True)
    flip(segment, position + 70)
    told = commands.check(broker.data_dir)
    checks.check(told.returncode == 1 and f"{segment}:{position}: DAMAGE" in told.stdout,
                 "the check names file and position", told.stdout)
    broker.start()
    log = broker.log_file.read_text()
    checks.check("broken=1" in log and f"position {position}" in log and segment.name in log
                 and "log.recovery=truncate" in log, "strict: offline, with file and position")
    checks.check(len(consume(broker, "two")) == RECORDS, "strict: the others serve")
    refused = commands.snapshot(broker.data_dir, broker.scratch / "offline")
    checks.check(refused.returncode == 1 and "kafka.one" in refused.stderr
                 and not (broker.scratch / "offline.tmp").exists(),
                 "no snapshot without the partition", refused)
    broker.stop()
    before = segment.read_bytes()
    broker.settings = ["log.recovery=truncate"]
    broker.start()
    checks.check("cut_logs=1" in broker.log_file.read_text()
                 and "DAMAGED LOG WAS CUT" in broker.log_file.read_text(), "truncate: said loudly")
    kept = segment.with_name(segment.name + ".cut")
    checks.check(segment.read_bytes() == before[:position] and kept.read_bytes() == before[position:],
                 "truncate: what lay behind is kept")
    records = consume(broker, "one")
    checks.check(0 < len(records) < RECORDS and
                 records == [f"one-{i}-{'x' * 900}" for i in range(len(records))],
                 "truncate: what lay before is there")
    produce(broker, "one", 10)
    checks.check(len(consume(broker, "one")) == len(records) + 10, "truncate: the log goes on")
    broker.settings = []
    broker.kill9()
    broker.start()
    checks.check(len(consume(broker, "one")) == len(records) + 10, "and after a kill")
    broker.stop()
    sound = commands.check(broker.data_dir)
    checks.check(sound.returncode == 0 and str(kept) in sound.stdout, "and the check lists it",
                 sound.stdout)


def commit(broker, group, topic, offset):
    """OffsetCommit 2 of nobody's, for partition 0."""
    def text(value):
        return struct.pack(">h", len(value)) + value.encode()

    body = (text(group) + struct.pack(">i", -1) + text("") + struct.pack(">qi", -1, 1) + text(topic)
            + struct.pack(">iiqh", 1, 0, offset, -1))
    frame = struct.pack(">hhi", 8, 2, 1) + text("") + body
    host, port = broker.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=10) as connection:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        answer = connection.makefile("rb").read(4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2)
    return int.from_bytes(answer[-2:], "big")


def test_names(checks, broker, commands):
    """Topics whose names look like those of files that a snapshot leaves out; a group's of two lines."""
    topics = ("a.cut.b", "c.tmp")
    for topic in topics:
        produce(broker, topic, 10)
    checks.check(commit(broker, "two\nlines", topics[0], 14) == 0, "a commit beyond the log's end")
    running = broker.scratch / "running"
    made = commands.snapshot(broker.data_dir, running)
    checks.check(made.returncode == 0 and " topics=2 " in made.stdout, "any topic's name", made)
    broker.stop()
    stopped = broker.scratch / "stopped"
    made = commands.snapshot(broker.data_dir, stopped)
    checks.check(made.returncode == 0, "any topic's name without a daemon", made)
    for where in (running, stopped):
        sound = commands.check(where)
        checks.check("Result: sound." in sound.stdout and " 2 topics, 2 partitions" in sound.stdout
                     and "20 records" in sound.stdout, f"{where.name}: with every record",
                     sound.stdout)
        checks.check("note: group two\\x0alines has committed offset 14 of a.cut.b-0" in sound.stdout,
                     f"{where.name}: what a client chose to commit is no damage, in one line",
                     sound.stdout)


def produce_keys(broker):
    for number in range(ROUNDS):
        lines = "".join(f"key{key}:{number} {'x' * 900}\n" for key in range(400))
        kcat(broker, "-P", "-t", "kept", "-K:", text=lines)


def compacted_segments(data):
    directory = data / "channels" / "kafka.kept"
    return {path.name for path in directory.iterdir()
            if re.fullmatch(r"\d{20}\.\d+\.log", path.name)}


def test_compacted(checks, broker, commands):
    """What compaction wrote, beside what it has not come to."""
    produce_keys(broker)
    first = broker.channel_directory("kept", 0) / "00000000000000000000.log"
    broker.wait_until(lambda: not first.exists(), "compacted segment in the place of the first")
    running = broker.scratch / "running"
    made = commands.snapshot(broker.data_dir, running)
    checks.check(made.returncode == 0 and compacted_segments(running),
                 "a snapshot of a compacted topic", made)
    broker.stop()
    stopped = broker.scratch / "stopped"
    made = commands.snapshot(broker.data_dir, stopped)
    checks.check(made.returncode == 0
                 and compacted_segments(stopped) == compacted_segments(broker.data_dir),
                 "a snapshot of a compacted topic without a daemon", made)
    newest = {f"{ROUNDS - 1} {'x' * 900}"}
    for where in (running, stopped):
        sound = commands.check(where)
        checks.check("Result: sound." in sound.stdout, f"{where.name}: compacted and sound", sound)
        broker.data_dir = where
        broker.start()
        found = {}
        for line in consume(broker, "kept", "-K:"):
            key, value = line.split(":", 1)
            found[key] = value
        checks.check(len(found) == 400 and set(found.values()) == newest,
                     f"{where.name}: the last value of each key", f"{len(found)} keys")
        broker.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    add_broker_arguments(parser)
    arguments = parser.parse_args()
    require("kcat")
    with Checks() as checks:
        settings = ["kafka.log.segment.bytes=1048576"]
        with Kanald(arguments.kanald, settings, arguments.keep) as broker:
            commands = Commands(broker.binary)
            fill(broker)
            test_running(checks, broker, commands)
            test_left_over(checks, broker, commands)
            test_other_file_system(checks, broker, commands)
            test_killed(checks, broker, commands)
            test_stopped(checks, broker, commands)
            test_flips(checks, broker, commands)
            test_cut_journal(checks, broker, commands)
            test_damage(checks, broker, commands)
        with Kanald(arguments.kanald, [], arguments.keep) as broker:
            test_names(checks, broker, Commands(broker.binary))
        settings += ["kafka.log.cleanup.policy=compact", "kafka.log.cleaner.backoff.ms=100",
                     "kafka.log.cleaner.min.cleanable.ratio=0.01",
                     "kafka.log.segment.delete.delay.ms=0"]
        with Kanald(arguments.kanald, settings, arguments.keep) as broker:
            test_compacted(checks, broker, Commands(broker.binary))
    return checks.finish()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokerFailed as failure:
        print(f"FAIL  {failure}\n0 passed, 1 failed")
        sys.exit(1)
