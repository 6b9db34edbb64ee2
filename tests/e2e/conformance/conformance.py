#!/usr/bin/env python3
"""Scripted requests to kanald, answers held against those recorded from Apache Kafka 4.4.

    conformance.py [KANALD] [--only GLOB]... [-v]   start it, compare; every difference must be listed
    conformance.py --broker HOST:PORT ...           the same against a running one
    conformance.py --record HOST:PORT               write the answers of a fresh broker as the new facts

Answers: tests/golden/conformance/kafka-4.4.json.gz, {scenario: [[label, verdict, body], ...]}.
Differences that are meant: explained.json, each with its reason; one that no longer occurs is a
failure too. The broker: fresh, node 1, num.partitions=4, any request allowed. Python 3.11, standard
library only.
"""
import argparse
import collections
import fnmatch
import gzip
import json
import pathlib
import re
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib")]
sys.dont_write_bytecode = True
import broker as brokers  # noqa: E402
import scenarios  # noqa: E402
import transactional  # noqa: E402
import wire  # noqa: E402
import world as worlds  # noqa: E402

GOLDEN = HERE.parents[1] / "golden/conformance/kafka-4.4.json.gz"
EXPLAINED = HERE / "explained.json"
SETTINGS = ["num.partitions=4", "group.initial.rebalance.delay.ms=0",
            "group.min.session.timeout.ms=100"]
FEATURES = ("metadata.version", "transaction.version")  # Kafka has more
SETTLE_S = 0.3  # what Kafka's broker needs to learn of a change of its controller's
HANG_S = 6  # how long a recording waits before it says that Kafka does not answer


def run(address, chosen, silence, pause=0):
    """{scenario: steps}. One after another, so that each run sends the same in the same order. Those
    that need an API which is not served have None."""
    host, _, port = address.rpartition(":")
    place = (host, int(port))
    served = warm_up(place)
    taken = {}
    for name, function in chosen.items():
        world = worlds.World(place, name, silence, served, pause)
        try:
            function(world)
        except worlds.NotServed as missing:
            print(f"skip  {name}: no {missing}")
            taken[name] = None
            continue
        except Exception as failure:  # the rest is worth running
            where = traceback.extract_tb(failure.__traceback__)[-1]
            print(f"{name}: {type(failure).__name__}: {failure} ({where.name}, line {where.lineno})")
            world.note("(stopped)", type(failure).__name__)
        world.close()
        taken[name] = [list(step) for step in unique(world.steps)]
    return json.loads(json.dumps(taken))


def warm_up(place):
    """The names of the APIs that are served. Kafka makes its own topics when first asked."""
    world = worlds.World(place, "warm_up")
    keys = {each["ApiKey"] for each in world.ask("ApiVersions", 0, {})["ApiKeys"]}
    served = {name for name, message in wire.REQUESTS.items() if message.key in keys}
    while world.ask("FindCoordinator", 3, {"Key": "group", "KeyType": 0})["ErrorCode"] != 0:
        time.sleep(0.02)
    if "OffsetFetch" in served:
        while world.ask("OffsetFetch", 7, {"GroupId": "group", "Topics": None})["ErrorCode"] != 0:
            time.sleep(0.02)
    world.producer_id()
    if "EndTxn" in served:
        while world.ask("FindCoordinator", 3, {"Key": "a", "KeyType": 1})["ErrorCode"] != 0:
            time.sleep(0.02)
        transactional.Producer(world, "a")
    world.close()
    return served


def unique(steps):
    """Labels that are used again get a number."""
    seen = collections.Counter()
    for label, verdict, body in steps:
        seen[label] += 1
        yield (label if seen[label] == 1 else f"{label} ({seen[label]})"), verdict, body


def differences(expected, got, path=""):
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in sorted(expected.keys() | got.keys()):
            if key not in expected or key not in got:
                yield f"{path}.{key}", expected.get(key, "(absent)"), got.get(key, "(absent)")
            else:
                yield from differences(expected[key], got[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for i, pair in enumerate(zip(expected, got)):
            yield from differences(*pair, f"{path}[{i}]")
    elif expected != got or type(expected) is not type(got):
        yield path, expected, got


class Explanations:
    """Each: scenario (glob), step, path, kafka and here (regular expressions for the whole label, path
    and values as JSON; whatever is absent matches all), reason."""

    def __init__(self):
        self.entries = json.loads(EXPLAINED.read_text())
        self.used = collections.Counter()

    def covers(self, scenario, label, path, expected, got):
        for i, entry in enumerate(self.entries):
            if (fnmatch.fnmatchcase(scenario, entry["scenario"])
                    and re.fullmatch(entry.get("step", ".*"), label)
                    and re.fullmatch(entry["path"], path)
                    and re.fullmatch(entry.get("kafka", ".*"), json.dumps(expected))
                    and re.fullmatch(entry.get("here", ".*"), json.dumps(got))):
                self.used[i] += 1
                return True
        return False

    def unused(self):
        return [entry for i, entry in enumerate(self.entries) if not self.used[i]]


def comparable(steps, skipped):
    """Kafka lists more APIs than are served here so far; what is listed has to be right."""
    known = {str(message.key) for name, message in wire.REQUESTS.items() if name not in skipped}
    for _, _, body in steps:
        if isinstance(body, dict):
            if isinstance(body.get("ApiKeys"), dict):
                body["ApiKeys"] = {k: v for k, v in body["ApiKeys"].items() if k in known}
            for features in ("SupportedFeatures", "FinalizedFeatures"):
                if features in body:
                    body[features] = [each for each in body[features] if each["Name"] in FEATURES]
    return steps


def compare(facts, taken, explanations, verbose):
    """The number of steps, and of those that differ without an explanation."""
    steps = wrong = 0
    unserved = {name.partition(".")[2] for name, got in taken.items()
                if got is None and name.startswith("versions.")}
    for scenario, got in taken.items():
        if got is None:
            continue
        expected = comparable(facts.get(scenario, []), unserved)
        by_label = {label: (verdict, body) for label, verdict, body in comparable(got, unserved)}
        labels = {label for label, _, _ in expected}
        for label in by_label:
            if label not in labels:
                expected.append([label, "(not recorded)", None])
        bad = 0
        for label, verdict, body in expected:
            steps += 1
            here = by_label.get(label, ("(missing)", None))
            found = [each for each in differences({"verdict": verdict, "body": body},
                                                  {"verdict": here[0], "body": here[1]})
                     if not explanations.covers(scenario, label, *each)]
            if found:
                bad += 1
                for path, theirs, ours in found[:6]:
                    if bad <= 12 or verbose:
                        print(f"      {scenario} | {label} | {path}: Kafka {short(theirs)}, "
                              f"here {short(ours)}")
        wrong += bad
        print(f"{'FAIL' if bad else 'ok  '}  {scenario}: {len(expected)} steps"
              + (f", {bad} differ" if bad else ""), flush=True)
    return steps, wrong


def short(value):
    text = json.dumps(value, sort_keys=True)
    return text if len(text) < 150 else text[:147] + "..."


def record(address, chosen, only):
    taken = run(address, chosen, HANG_S, SETTLE_S)
    stopped = [name for name, steps in taken.items() if steps and steps[-1][0] == "(stopped)"]
    if stopped:
        return f"nothing recorded; not a fresh broker? Stopped: {', '.join(stopped)}"
    facts = read_facts() if only and GOLDEN.exists() else {}
    facts.update(taken)
    GOLDEN.parent.mkdir(exist_ok=True)
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    with open(GOLDEN, "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed:
        packed.write(text.encode())
    count = collections.Counter(step[1] for steps in taken.values() for step in steps)
    print(f"{sum(count.values())} steps of {len(taken)} scenarios: {dict(count)}")


def read_facts():
    return json.loads(gzip.decompress(GOLDEN.read_bytes()))


def check(address, chosen, arguments):
    started = time.monotonic()
    explanations = Explanations()
    taken = run(address, chosen, worlds.SILENCE_S, SETTLE_S if arguments.broker else 0)
    steps, wrong = compare(read_facts(), taken, explanations, arguments.verbose)
    skipped = sum(each is None for each in taken.values())
    stale = [] if arguments.only or skipped else explanations.unused()
    for entry in stale:
        print(f"FAIL  explained.json: nothing differs like this any more: {json.dumps(entry)}")
    print(f"{sum(explanations.used.values())} differences of {len(explanations.used)} kinds are "
          f"explained; took {time.monotonic() - started:.1f} s")
    print(f"{skipped} of {len(taken)} scenarios skipped for APIs that are not served")
    failed = wrong + len(stale) + skipped
    print(f"{steps - wrong} passed, {failed} failed", flush=True)
    return 1 if failed or not steps else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kanald", nargs="?")
    parser.add_argument("--broker", metavar="HOST:PORT")
    parser.add_argument("--record", metavar="HOST:PORT")
    parser.add_argument("--only", action="append", default=[], metavar="GLOB")
    parser.add_argument("-v", "--verbose", action="store_true")
    arguments = parser.parse_args()
    chosen = {name: function for name, function in scenarios.load().items()
              if not arguments.only or any(fnmatch.fnmatch(name, glob) for glob in arguments.only)}
    if arguments.record:
        return record(arguments.record, chosen, arguments.only)
    if arguments.broker:
        return check(arguments.broker, chosen, arguments)
    with brokers.Kanald(arguments.kanald, SETTINGS) as broker:
        return check(broker.address, chosen, arguments)


if __name__ == "__main__":
    sys.exit(main())
