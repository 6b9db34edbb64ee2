"""Compacted segments as kafka-dump-log reads them: every batch sound, offsets that only rise, the last
value of each key. Kafka's tool names the gaps of a compacted log, of its own as well; that is the one thing
it may say besides."""
import re
import time

TOPIC = "tools.dump.compacted"
ROUNDS = 6
DEADLINE_S = 60
BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* magic: 2 .*isvalid: (\w+)$")
RECORD = re.compile(r"^\| offset: (\d+) .* key: (\S+)(?: payload: (.*))?$")
HEADING = re.compile(r"^(Dumping .*|Log starting offset: \d+|Non-consecutive offsets in .*|"
                     r"  -?\d+ is followed by \d+)$")


def dumped(text):
    """(offsets and values by key, what is wrong)."""
    last, problems, offset = {}, [], -1
    for line in text.splitlines():
        batch, record = BATCH.match(line), RECORD.match(line)
        if batch:
            if batch[4] != "true" or int(batch[1]) <= offset:
                problems.append(line)
            offset = int(batch[2])
        elif record:
            last.setdefault(record[2], []).append((int(record[1]), record[3]))
        elif not HEADING.match(line):
            problems.append(f"unexpected: {line}")
    return last, problems


def run(tools):
    tools.tool("topics", "--create", "--topic", TOPIC, "--partitions", 1,
               "--config", "cleanup.policy=compact",
               "--config", "min.cleanable.dirty.ratio=0.01", "--config", "segment.ms=50",
               "--config", "file.delete.delay.ms=0")
    tools.settle()
    for number in range(ROUNDS):
        lines = "".join(f"key{key}\tvalue {number} of {key}\n" for key in range(40))
        tools.tool("console-producer", "--topic", TOPIC, "--reader-property", "parse.key=true",
                   "--compression-codec", ("none", "gzip", "snappy", "lz4", "zstd")[number % 5],
                   stdin=lines.encode())
        time.sleep(0.1)  # the next one rolls
    end = time.monotonic() + DEADLINE_S
    while True:
        segments = sorted(tools.broker.channel_directory(TOPIC, 0).glob("*.log"))
        ran = tools.host.run("dump-log", "--print-data-log", "--deep-iteration",
                             "--files", ",".join(map(str, segments)))
        last, problems = dumped(ran.out)
        if all(len(found) <= 2 for found in last.values()) or time.monotonic() > end:
            break
        time.sleep(1)
    # All but the newest segment was cleaned: one value a key in there, one behind.
    wrong = [f"{key}: {found}" for key, found in last.items()
             if len(found) > 2 or not str(found[-1][1]).startswith(f"value {ROUNDS - 1} ")]
    tools.works(f"dump-log: compacted, {len(segments)} segments", ran, ran.code == 0)
    tools.checks.check(len(last) == 40 and not problems and not wrong,
                       "dump-log: compacted, sound batches with the last values",
                       "\n".join(problems + wrong) or f"{len(last)} keys")
