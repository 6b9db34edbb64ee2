"""Judges what kafka-dump-log printed of a segment: batches that chain, offsets that are dense."""
import re

BATCH = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* position: (\d+) "
                   r"CreateTime: (\d+) size: (\d+) magic: 2 compresscodec: (\w+) .*isvalid: (\w+)$")
RECORD = re.compile(r"^\| offset: (\d+) CreateTime: (\d+) .* valueSize: (\d+) .* payload: (.*)$")
HEADING = re.compile(r"^(Dumping .*|Log starting offset: \d+)$")


def dump_log_problems(text, codec, payloads):
    """All that is wrong with the dump of one partition that holds `payloads` from offset 0."""
    problems = []
    batches = 0
    offset = 0
    position = 0
    read = []
    for line in text.splitlines():
        batch = BATCH.match(line)
        record = RECORD.match(line)
        if batch:
            batches += 1
            base, last, count, at, _, size = map(int, batch.groups()[:6])
            if (base, last, at) != (offset, offset + count - 1, position):
                problems.append(f"after offset {offset}, position {position}: {line}")
            if batch[7] != codec or batch[8] != "true":
                problems.append(f"codec {codec} and a valid CRC expected: {line}")
            offset = last + 1
            position = at + size
        elif record:
            if int(record[1]) != len(read):
                problems.append(f"offset {len(read)} expected: {line}")
            read.append(record[4])
        elif not HEADING.match(line):
            problems.append(f"unexpected: {line}")
    if read != payloads or offset != len(payloads):
        problems.append(f"{len(read)} payloads to offset {offset}, not the {len(payloads)} sent")
    if batches < 2:
        problems.append(f"{batches} batches, at least one for each of two producers expected")
    return problems
