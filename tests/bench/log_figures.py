#!/usr/bin/env python3
"""log_figures.py [--kanald PATH] [--only kanald|kafka] [--scale X] [ROW]...: the log's figures beside Apache Kafka 4.4's.

    compaction  MB/s cleaned and CPU per GB, from when cleaning may begin until the log shrinks no more
    beside      produce throughput while retention and compaction work all the time, against the same load without
    kill        start after kill -9 with 10,000 partitions and 10 GB: first answers, and every partition's end
    limits      100,000 partitions (Kafka: 10,000): handles, memory, start after a clean stop, and how long others'
                produces take while a topic of 10,000 partitions is deleted

Each row has a broker of its own, kanald first, Kafka after it, never both at once; what they wrote is removed. --scale
multiplies bytes and partitions of all rows, the other options set one each. At most 10 GB of disk (and Kafka's index
files) are in use at a time; with less free, the kill row writes less and says so. Both brokers look for work of the
cleaner and of retention every second. Records of 1 KiB. Machines differ and are shared: read ratios and CPU. Writes
build/bench/log_figures.json. Asserts nothing. Needs java and mvn (Kafka's jars) but with --only kanald.
"""
import argparse
import itertools
import json
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import figures
import raw_client
import raw_log
from figures import OUT, ROOT, Kafka, Kanald, cpu_seconds, rss_mib, show

SEGMENT = 64 << 20
MARGIN = 3 << 30  # of the disk that are left alone
SETTINGS = {"log.cleaner.backoff.ms": 1000, "log.retention.check.interval.ms": 1000}
KAFKA_SETTINGS = {"log.initial.task.delay.ms": 500, "log.segment.delete.delay.ms": 1000}
QUIET = 3.0  # seconds without a change that end a cleaning


class TunedKanald(Kanald):
    def command(self):
        return super().command() + [word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}")]


class TunedKafka(Kafka):
    def __init__(self, libs, directory):
        super().__init__(libs, directory)
        with open(self.properties, "a") as file:
            for key, value in {**SETTINGS, **KAFKA_SETTINGS}.items():
                file.write(f"{key}={value}\n")


def connect(broker):
    connection = raw_client.connect(broker.address)
    connection.settimeout(600)
    return connection


def start(broker):
    """Milliseconds until the first answer, however long that takes."""
    wait = figures.until_answer

    def patient(address):
        begin = time.monotonic()
        while broker.process.poll() is None and time.monotonic() - begin < 600:
            try:
                return wait(address, 0.2)
            except OSError:
                pass
        raise RuntimeError("the broker ended" if broker.process.poll() is not None else "no answer for 10 minutes")
    figures.until_answer = patient
    try:
        return broker.start()
    finally:
        figures.until_answer = wait


def end(broker, how=signal.SIGTERM):
    """Seconds until the process was gone."""
    begin = time.monotonic()
    broker.process.send_signal(how)
    broker.process.wait(600)
    return time.monotonic() - begin


def remove_tree(directory):
    """As rmtree, with eight files at a time: an unlink may wait for the disk for milliseconds."""
    directory = pathlib.Path(directory)
    with ThreadPoolExecutor(8) as pool:
        files = (os.path.join(at, name) for at, _, names in os.walk(directory) for name in names)
        for _ in pool.map(os.unlink, files):
            pass
    shutil.rmtree(directory, ignore_errors=True)


def machine_busy():
    fields = [int(field) for field in open("/proc/stat").readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / figures.TICKS


def make_topic(connection, name, partitions, configs=None):
    """A topic all of whose partitions are open."""
    first = min(partitions, 5000)  # Kafka's controller takes fewer than 10,000 new partitions in a request
    if errors := raw_client.create_topics(connection, [name], first, configs):
        raise RuntimeError(f"{name} cannot be made: {errors}")
    if first < partitions and (error := raw_log.create_partitions(connection, name, partitions)):
        raise RuntimeError(f"{name} cannot be given {partitions} partitions: {error}")
    raw_log.end_offsets(connection, name, partitions)


def fill_compacted(connection, topic, size, keys):
    """A topic of whole segments that may not be cleaned yet; the bytes in segments that are not written to any more."""
    configs = {"cleanup.policy": "compact", "segment.bytes": SEGMENT, "min.cleanable.dirty.ratio": 0.1,
               "min.compaction.lag.ms": 10**12, "file.delete.delay.ms": 1000}
    make_topic(connection, topic, 1, configs)
    batches = raw_log.keyed_batches(64, 240, keys)
    frames = [raw_log.produce_frame(topic, {0: data}) for data in batches]
    in_segment = SEGMENT // len(batches[0])
    count = max(2, round(size / SEGMENT)) * in_segment + 1  # the last one begins the segment that stays
    raw_log.send_all(connection, topic, itertools.islice(itertools.cycle(frames), count))
    return (count - 1) * len(batches[0])


class Watch(threading.Thread):
    """Notes (time, {topic: bytes}, CPU seconds) of a broker about every 50 ms until `topic` was cleaned."""

    def __init__(self, broker, topics, topic, on_note=None, patience=240):
        super().__init__(daemon=True)
        self.broker, self.topics, self.topic, self.on_note, self.patience = broker, topics, topic, on_note, patience
        self.notes, self.cleaned_at, self.failed = [], None, None

    def run(self):
        try:
            self.watch()
        except Exception as failure:  # pylint: disable=broad-except
            self.failed = failure

    def watch(self):
        with connect(self.broker) as connection:
            first, last, changed = None, None, None
            until = time.monotonic() + self.patience
            while (now := time.monotonic()) < until:
                sizes = raw_log.describe_sizes(connection, self.topics)
                self.notes.append((now, sizes, cpu_seconds(self.broker.pid)))
                if self.on_note is not None and not self.on_note(now, sizes):
                    return
                size = sizes[self.topic]
                first = size if first is None else first
                if size != last:
                    last, changed = size, now
                if last < first * 0.9 and now - changed > QUIET:
                    self.cleaned_at = changed
                    return
                time.sleep(0.05)


def io_bytes(pid):
    return sum(int(line.split()[1]) for line in open(f"/proc/{pid}/io") if line[:5] in ("rchar", "wchar"))


def compaction(broker, options):
    start(broker)
    with connect(broker) as connection:
        size = fill_compacted(connection, "cleaned", options.compact_gb * 1e9, options.keys)
        os.sync()
        time.sleep(2)
        before, io, begun = cpu_seconds(broker.pid), io_bytes(broker.pid), []

        def note(now, _):  # the cleaner looks for work once a second: the wait is not its work
            if not begun and io_bytes(broker.pid) - io > 4 << 20:
                begun.append(now)
            return True
        watch = Watch(broker, {"cleaned": 1}, "cleaned", note)
        allowed = time.monotonic()
        raw_log.alter_topic(connection, "cleaned", {"min.compaction.lag.ms": 0})
        watch.run()
    if watch.failed or watch.cleaned_at is None:
        return {"failed": str(watch.failed or "the log did not shrink")}
    cpu = next(cpu for at, _, cpu in watch.notes if at >= watch.cleaned_at) - before
    took = watch.cleaned_at - (begun[0] if begun else allowed)
    return {"bytes": size, "bytes_after": watch.notes[-1][1]["cleaned"], "keys": options.keys, "seconds": took,
            "waited_s": watch.cleaned_at - allowed - took, "mb_s": size / 1e6 / took, "cpu_s": cpu,
            "cpu_s_per_gb": cpu / (size / 1e9), "rss_mib": rss_mib(broker.pid)}


class Load(threading.Thread):
    """Produces to a topic, over one connection, as fast as it is answered or at a rate, and notes when each answer came."""

    def __init__(self, broker, topic, batch, window=16, rate=0.0):
        super().__init__(daemon=True)
        self.broker, self.topic, self.window, self.rate = broker, topic, window, rate
        self.frame = raw_log.produce_frame(topic, {0: batch})
        self.records = int.from_bytes(batch[57:61], "big")
        self.answers, self.stopped, self.failed = [], threading.Event(), None  # answers: (when, seconds)

    def run(self):
        try:
            with connect(self.broker) as connection:
                self.load(connection)
        except Exception as failure:  # pylint: disable=broad-except
            self.failed = failure

    def load(self, connection):
        under_way, due = [], time.monotonic()
        burst = max(1, round(self.rate / 200))  # of each 5 ms: one sleep a request would be the limit
        while self.rate and not self.stopped.is_set():
            time.sleep(max(0.0, due - time.monotonic()))
            connection.sendall(self.frame * burst)
            for _ in range(burst):
                raw_log.check(connection, self.topic)
                now = time.monotonic()
                self.answers.append((now, now - due))
            due += burst / self.rate
        while not self.stopped.is_set():
            under_way.append(time.monotonic())
            connection.sendall(self.frame)
            if len(under_way) >= self.window:
                raw_log.check(connection, self.topic)
                now = time.monotonic()
                self.answers.append((now, now - under_way.pop(0)))

    def stop(self):
        self.stopped.set()
        self.join(60)
        if self.failed:
            raise self.failed

    def figures(self, begin, until):
        took = sorted(seconds for at, seconds in self.answers if begin <= at < until)
        if not took or until <= begin:
            return {"records_s": 0.0, "answers": 0}
        return {"records_s": len(took) * self.records / (until - begin), "answers": len(took), "seconds": until - begin,
                "p50_ms": took[len(took) // 2] * 1000, "p99_ms": took[len(took) * 99 // 100] * 1000,
                "max_ms": took[-1] * 1000}


def plain_run(broker, options, name, rate, watched=None):
    """The load by itself, or while `watched` is cleaned and retention holds the load's own topic to 256 MiB."""
    configs = {"segment.bytes": SEGMENT, "file.delete.delay.ms": 1000}
    if watched:
        configs["retention.bytes"] = 4 * SEGMENT
    with connect(broker) as connection:
        make_topic(connection, name, 1, configs)
        os.sync()
        load = Load(broker, name, raw_log.plain_batch(options.batch), rate=rate)
        limit, room = options.plain_gb * 1e9, shutil.disk_usage(OUT).free - MARGIN
        begin, busy, cpu = time.monotonic(), machine_busy(), cpu_seconds(broker.pid)
        load.start()
        time.sleep(1)

        def note(now, sizes):
            if sizes[name] > min(limit if not watched else 2 * limit, room):
                return False
            return load.failed is None and (watched is not None or now - begin < options.secs + 1)
        watch = Watch(broker, {name: 1, **({watched: 1} if watched else {})}, watched or name, note, 120)
        if watched:
            raw_log.alter_topic(connection, watched, {"min.compaction.lag.ms": 0})
        watch.run()
        load.stop()
        busy, cpu = machine_busy() - busy, cpu_seconds(broker.pid) - cpu
        wall = time.monotonic() - begin
        raw_log.delete_topic(connection, name)
        time.sleep(3)
    if watch.failed:
        raise watch.failed
    until = watch.cleaned_at if watch.cleaned_at else watch.notes[-1][0]
    since = begin + 1 if until < begin + 3 else begin + 2  # the cleaner looks once a second, so it is at work by then
    result = load.figures(since if watched else begin + 1, until)
    result.update(cores_busy=busy / wall, broker_cores=cpu / wall, cleaned=watch.cleaned_at is not None,
                  plain_bytes_most=max(sizes[name] for _, sizes, _ in watch.notes))
    return result


def beside(broker, options):
    figures.fill_page_cache()
    start(broker)
    result = {}
    warm = plain_run(broker, argparse.Namespace(**{**vars(options), "secs": 3}), "warm", 0)
    rate = 0.4 * warm["records_s"] / (options.batch // 1035)
    for turn, pace in (("full", 0), ("paced", rate)):
        with connect(broker) as connection:
            fill_compacted(connection, f"c-{turn}", options.beside_gb * 1e9, options.keys)
        before = plain_run(broker, options, f"{turn}-before", pace)
        during = plain_run(broker, options, f"{turn}-during", pace, f"c-{turn}")
        after = plain_run(broker, options, f"{turn}-after", pace)
        without = (before["records_s"] + after["records_s"]) / 2
        result[turn] = {"before": before, "during": during, "after": after, "without_records_s": without,
                        "ratio": during["records_s"] / without if without else 0.0}
    (OUT / "sparse").unlink(missing_ok=True)
    return result


def fill_partitions(connection, topics, partitions, size):
    """`size` bytes, the same number in each partition; the records of each."""
    data = raw_log.plain_batch(min(256 << 10, max(2048, int(size / topics / partitions))))
    rounds = max(1, round(size / topics / partitions / len(data)))
    together = max(1, min(partitions, (8 << 20) // len(data)))
    for topic in range(topics):
        def frames(name=f"many-{topic}"):
            for at in range(0, partitions, together):
                request = raw_log.produce_frame(name, dict.fromkeys(range(at, min(at + together, partitions)), data))
                yield from itertools.repeat(request, rounds)
        raw_log.send_all(connection, f"many-{topic}", frames(), 4)
    return rounds * int.from_bytes(data[57:61], "big"), rounds * len(data) * topics * partitions


def first_produce(broker, topic, partition, begin):
    """Milliseconds from `begin` to the first acknowledged record."""
    request = raw_log.produce_frame(topic, {partition: raw_log.plain_batch(1)})
    with connect(broker) as connection:
        while True:
            connection.sendall(request)
            errors = raw_log.produce_errors(raw_client.receive(connection), topic)
            if not errors:
                return (time.monotonic() - begin) * 1000
            if set(errors) - set(raw_log.NOT_YET):
                raise RuntimeError(f"the first produce is answered with {errors}")
            time.sleep(0.002)


def kill(broker, options):
    size, topics = options.kill_gb * 1e9, max(1, options.kill_partitions // 1000)
    if broker.kind == "kafka":
        size *= options.kafka_kill
        topics = max(1, round(topics * options.kafka_kill))
    partitions = min(1000, options.kill_partitions)
    index_files = 2 * 4096 * topics * partitions
    room = shutil.disk_usage(OUT).free - MARGIN - index_files
    result = {"asked_bytes": size, "less_for_room": size > room}
    start(broker)
    begin = time.monotonic()
    with connect(broker) as connection:
        for topic in range(topics):
            make_topic(connection, f"many-{topic}", partitions)
        made = time.monotonic()
        records, size = fill_partitions(connection, topics, partitions, max(1e6, min(size, room)))
    result.update(partitions=topics * partitions, bytes=size, creation_s=made - begin, write_s=time.monotonic() - made)
    end(broker, signal.SIGKILL)
    begin = time.monotonic()
    result["first_answer_ms"] = start(broker)
    result["first_produce_ms"] = first_produce(broker, f"many-{topics - 1}", partitions - 1, begin)
    ends = []
    with connect(broker) as connection:
        for topic in range(topics):
            ends += raw_log.end_offsets(connection, f"many-{topic}", partitions)
    result["all_answered_ms"] = (time.monotonic() - begin) * 1000
    ends[-1] -= 1
    result["partitions_with_another_end"] = sum(offset != records for offset in ends)
    result["cpu_s"] = cpu_seconds(broker.pid)
    result["rss_mib"] = rss_mib(broker.pid)
    return result


def handles(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def open_files_limit(pid):
    return int(next(line for line in open(f"/proc/{pid}/limits") if line.startswith("Max open files")).split()[3])


def limits(broker, options):
    """One topic of 10,000 partitions, the rest in topics of 1,000. Names are of 8 bytes, next to nothing a partition. Some
    get a record, more than the files kanald keeps open by default (half of 20,000 handles)."""
    wanted = options.partitions if broker.kind == "kanald" else options.kafka_partitions
    victim = min(10_000, wanted)
    each = min(1000, max(1, wanted - victim))
    names = [f"many-{number:03}" for number in range((wanted - victim) // each)]
    start(broker)
    result = {"handles_empty": handles(broker.pid)}
    time.sleep(2)
    rss, begin = rss_mib(broker.pid), time.monotonic()
    with connect(broker) as connection:
        make_topic(connection, "victim-0", victim, {"file.delete.delay.ms": 1000})
        for name in names:
            make_topic(connection, name, each)
        count = victim + each * len(names)
        result.update(partitions=count, creation_s=time.monotonic() - begin)
        time.sleep(2)
        result["rss_kib_each_idle"] = (rss_mib(broker.pid) - rss) * 1024 / count
        result["handles_idle"] = handles(broker.pid)
        data = raw_log.plain_batch(1)
        begin = time.monotonic()
        written = [("victim-0", victim)] + [(name, each) for name in names]
        written = written[:1 + max(0, options.written - victim + each - 1) // each]
        for name, partitions in written:
            request = [raw_log.produce_frame(name, dict.fromkeys(range(at, min(at + 1000, partitions)), data))
                       for at in range(0, partitions, 1000)]
            raw_log.send_all(connection, name, request, 2)
        result["write_s"] = time.monotonic() - begin
        result["partitions_written"] = sum(partitions for _, partitions in written)
        result["handles_written"] = handles(broker.pid)
        result["rss_mib_written"] = rss_mib(broker.pid)
        result["open_files_limit"] = open_files_limit(broker.pid)
    result["stop_s"] = end(broker)
    begin = time.monotonic()
    result["start_ms"] = start(broker)
    result["start_cpu_s"] = cpu_seconds(broker.pid)
    last = names[-1] if names else "victim-0"
    result["start_first_produce_ms"] = first_produce(broker, last, (each if names else victim) - 1, begin)
    result["start_rss_kib_each"] = (rss_mib(broker.pid) - rss) * 1024 / count
    result["start_handles"] = handles(broker.pid)
    result["delete"] = delete_beside_others(broker, victim)
    return result


def delete_beside_others(broker, victim):
    with connect(broker) as connection:
        make_topic(connection, "others-0", 1)
        load = Load(broker, "others-0", raw_log.plain_batch(1), 1)
        load.start()
        time.sleep(5)
        begin, cpu = time.monotonic(), cpu_seconds(broker.pid)
        error = raw_log.delete_topic(connection, "victim-0")
        answered = time.monotonic()
        time.sleep(8)  # the files go after the answer
        until = time.monotonic()
        load.stop()
    return {"partitions": victim, "error": error, "answer_ms": (answered - begin) * 1000,
            "cpu_s": cpu_seconds(broker.pid) - cpu,
            "before": load.figures(begin - 4, begin), "until_answer": load.figures(begin, answered),
            "during": load.figures(begin, until)}


ROWS = {"compaction": compaction, "beside": beside, "kill": kill, "limits": limits}
LINES = {  # row: (text, path in the result, format, owed)
    "compaction": [("cleaned, MB", "bytes", "{:.0f}e-6", ""), ("left, MB", "bytes_after", "{:.0f}e-6", ""),
                   ("MB/s cleaned", "mb_s", "{:.0f}", ""), ("CPU s per GB cleaned", "cpu_s_per_gb", "{:.2f}", ""),
                   ("RSS after it, MiB", "rss_mib", "{:.0f}", "")],
    "beside": [(f"{text}: {what}", f"{turn}/{path}", form, owed)
               for turn, text in (("full", "as fast as it goes"), ("paced", "at 40 % of that"))
               for what, path, form, owed in (
                   ("records/s without", "without_records_s", "{:.0f}", ""),
                   ("records/s beside retention, compaction", "during/records_s", "{:.0f}", ""),
                   ("ratio", "ratio", "{:.3f}", ">= 0.9"), ("p99 without, ms", "before/p99_ms", "{:.2f}", ""),
                   ("p99 beside, ms", "during/p99_ms", "{:.2f}", ""),
                   ("longest beside, ms", "during/max_ms", "{:.1f}", ""),
                   ("seconds of cleaning", "during/seconds", "{:.1f}", ""),
                   ("cores busy without, of all", "before/cores_busy", "{:.2f}", f"of {os.cpu_count()}"),
                   ("cores busy beside, of all", "during/cores_busy", "{:.2f}", f"of {os.cpu_count()}"))],
    "kill": [("partitions", "partitions", "{:.0f}", ""), ("GB in them", "bytes", "{:.2f}e-9", ""),
             ("start to first answer, ms", "first_answer_ms", "{:.0f}", ""),
             ("to the first acknowledged record, ms", "first_produce_ms", "{:.0f}", ""),
             ("to the end of every partition, ms", "all_answered_ms", "{:.0f}", ""),
             ("partitions with another end than acknowledged", "partitions_with_another_end", "{:.0f}", "0"),
             ("CPU by then, s", "cpu_s", "{:.1f}", "")],
    "limits": [("partitions", "partitions", "{:.0f}", ""), ("creation, s", "creation_s", "{:.1f}", ""),
               ("RSS an idle partition, KiB", "rss_kib_each_idle", "{:.2f}", "<= 2"),
               ("RSS a partition after the start, KiB", "start_rss_kib_each", "{:.2f}", "<= 2"),
               ("handles, never written to", "handles_idle", "{:.0f}", ""),
               ("partitions that got a record", "partitions_written", "{:.0f}", ""),
               ("handles after it", "handles_written", "{:.0f}", "within the limit"),
               ("RSS after it, MiB", "rss_mib_written", "{:.0f}", ""),
               ("limit of handles", "open_files_limit", "{:.0f}", ""),
               ("clean stop, s", "stop_s", "{:.1f}", ""), ("start after it to first answer, ms", "start_ms", "{:.0f}", "<= 1000"),
               ("to the first acknowledged record, ms", "start_first_produce_ms", "{:.0f}", "<= 1000"),
               ("CPU of that start, s", "start_cpu_s", "{:.2f}", ""),
               ("deleting 10,000 partitions: answer, ms", "delete/answer_ms", "{:.0f}", ""),
               ("others' produce p99 before, ms", "delete/before/p99_ms", "{:.2f}", ""),
               ("others' p99 until that answer, ms", "delete/until_answer/p99_ms", "{:.2f}", ""),
               ("others' p99 from the request on, 8 s, ms", "delete/during/p99_ms", "{:.2f}", ""),
               ("others' longest, ms", "delete/during/max_ms", "{:.1f}", "")],
}


def value_at(result, path, form):
    for step in path.split("/"):
        result = result.get(step) if isinstance(result, dict) else None
    if result is None:
        return "-"
    form, _, power = form.partition("e-")
    return form.format(result / 10 ** int(power or 0))


def summary(results, rows):
    kinds = [kind for kind in ("kanald", "kafka") if any(key[0] == kind for key in results)]
    print(f"\n{' / '.join(kinds)}:")
    for row in rows:
        for kind in kinds:
            if "failed" in results.get((kind, row), {}):
                print(f"{row}: {kind} FAILED: {results[kind, row]['failed']}")
        for text, path, form, owed in LINES[row]:
            values = [value_at(results.get((kind, row), {}), path, form) for kind in kinds]
            show(f"{row}: {text}", " / ".join(values), owed)


def run_row(broker, row, options):
    begin, result = time.monotonic(), {"failed": "ended by hand"}
    try:
        result = ROWS[row](broker, options)
    except Exception as failure:  # a row that fails leaves the others their figures
        result = {"failed": f"{type(failure).__name__}: {failure}"}
    finally:
        if broker.process is not None and broker.process.poll() is None:
            end(broker, signal.SIGKILL)
        if "failed" in result:
            shutil.copy(broker.directory / "log.txt", OUT / f"log-figures-{broker.kind}-{row}.txt")
        remove_tree(broker.directory)
    result["row_s"] = time.monotonic() - begin
    print(f"  {broker.kind:7s} {row:10s} {result['row_s']:.0f} s  {json.dumps(result)}", flush=True)
    return result


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kanald", default=str(ROOT / "build/release/bin/kanald"))
    parser.add_argument("--only", choices=("kanald", "kafka"), help="no comparison")
    parser.add_argument("--scale", type=float, default=1.0, help="of bytes and partitions of all rows")
    parser.add_argument("--compact-gb", type=float, default=1.0)
    parser.add_argument("--keys", type=int, default=10_000)
    parser.add_argument("--beside-gb", type=float, default=3.0, help="bytes to clean beside each of two loads")
    parser.add_argument("--plain-gb", type=float, default=4.0, help="most bytes of the load's own topic")
    parser.add_argument("--batch", type=int, default=16384, help="bytes of a batch of that load")
    parser.add_argument("--secs", type=float, default=8, help="of each load by itself")
    parser.add_argument("--kill-gb", type=float, default=10.0)
    parser.add_argument("--kill-partitions", type=int, default=10_000)
    parser.add_argument("--kafka-kill", type=float, default=1.0, help="Kafka's part of that, bytes and partitions")
    parser.add_argument("--partitions", type=int, default=100_000)
    parser.add_argument("--written", type=int, default=15_000, help="partitions of those that get a record")
    parser.add_argument("--kafka-partitions", type=int, default=10_000)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    options = parser.parse_args()
    unknown = set(options.rows) - set(ROWS)
    if unknown:
        parser.error("no such row: " + ", ".join(sorted(unknown)))
    for name in ("compact_gb", "beside_gb", "plain_gb", "kill_gb"):
        setattr(options, name, getattr(options, name) * options.scale)
    for name in ("kill_partitions", "partitions", "written", "kafka_partitions"):
        setattr(options, name, max(10, int(getattr(options, name) * options.scale)))
    return options


def main():
    options = arguments()
    sys.setswitchinterval(0.0005)  # a load and its watch are threads of one interpreter
    kinds = [kind for kind in ("kanald", "kafka") if options.only in (None, kind)]
    if "kafka" in kinds:
        subprocess.run(["sh", str(ROOT / "tests/e2e/kafka_tools/fetch.sh")], check=True)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    pathlib.Path(OUT).mkdir(parents=True, exist_ok=True)
    results, rows = {}, options.rows or list(ROWS)
    for row in rows:
        for kind in kinds:
            directory = OUT / f"log-figures-{kind}"
            remove_tree(directory)
            broker = (TunedKanald(options.kanald, directory) if kind == "kanald"
                      else TunedKafka(ROOT / "build/kafka-tools/libs", directory))
            results[kind, row] = run_row(broker, row, options)
    summary(results, rows)
    lines = [{"broker": kind, "row": row, **result} for (kind, row), result in results.items()]
    (OUT / "log_figures.json").write_text(json.dumps({"options": vars(options), "rows": lines}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
