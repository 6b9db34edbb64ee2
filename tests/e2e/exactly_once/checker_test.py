"""The checker is checked: a history without anomalies has none, each planted one is found."""
import copy
import random
import unittest

import checker
import exactly_once

READERS = (("r", "read_committed"), ("u", "read_uncommitted"))
GROUP = "group"


class Model:
    """A broker of one partition an output topic, which keeps its promises, and what is seen of it."""

    def __init__(self, seed):
        self.dice = random.Random(seed)
        self.events, self.log, self.next = [], [], {0: 0, 1: 0}  # log: [value or None, txn, seen by]
        self.count = 0

    def note(self, event, **fields):
        self.events.append({"event": event, **fields})

    def transaction(self, end):
        txn = f"t{self.count}"
        self.count += 1
        self.note("begin", txn=txn)
        partition = self.dice.choice((0, 1))
        copied = range(self.next[partition], self.next[partition] + 2)
        values = [f"copy:{GROUP}:{partition}:{offset}:{txn}" for offset in copied]
        for value in [*values, f"{txn}.0", f"{txn}.1"]:
            self.note("send", txn=txn, topic="out", partition=0, value=value)
            self.note("sent", txn=txn, topic="out", partition=0, offset=len(self.log), value=value)
            self.log.append([value, txn, False])
        self.look(("u",))
        if end in ("committed", "unknown committed", "unknown aborted"):
            self.note("asked", txn=txn)
        self.note("end", txn=txn, how=end.split()[0])
        if end.endswith("committed"):
            self.next[partition] += 2
            for entry in self.log:
                entry[2] = entry[2] or entry[1] == txn
        self.log.append([None, txn, False])
        self.look(("u", "r"))

    def look(self, readers):
        """They read on to the end."""
        for reader in readers:
            at = sum(e["event"] == "read" and e["reader"] == reader for e in self.events)
            for offset, value in self.shown(reader)[at:]:
                self.note("read", reader=reader, topic="out", partition=0, offset=offset, value=value)

    def shown(self, reader):
        return [(offset, value) for offset, (value, _txn, committed) in enumerate(self.log)
                if value is not None and (committed or reader == "u")]

    def run(self):
        for reader, isolation in READERS:
            self.note("open", reader=reader, isolation=isolation)
        ends = ["committed", "aborted", "unknown committed", "unknown aborted", "unknown"] * 4
        self.dice.shuffle(ends)
        for end in ["committed", *ends, "committed"]:
            self.transaction(end)
        self.log.append(["plain", None, True])
        self.note("plain", topic="out", partition=0, value="plain")
        self.look(("u", "r"))
        for reader, isolation in READERS:
            for offset, value in self.shown(reader):
                self.note("final", isolation=isolation, topic="out", partition=0, offset=offset,
                          value=value)
        self.note("offsets", group=GROUP, offsets={str(p): n for p, n in self.next.items()})
        return self.events


def of(events, kind, **fields):
    """The events of this kind with these fields."""
    return [e for e in events if e["event"] == kind
            and all(e.get(name) == value for name, value in fields.items())]


def transactions(events, how, asked):
    wanted = {e["txn"] for e in of(events, "asked")}
    return [e["txn"] for e in of(events, "end", how=how) if (e["txn"] in wanted) == asked]


def forget(events, value, *kinds):
    """Nobody saw it there."""
    events[:] = [e for e in events if e["event"] not in kinds or e.get("value") != value]


class Planted(unittest.TestCase):
    def setUp(self):
        self.events = Model(1).run()
        self.assertEqual(checker.check(self.events), {})
        self.committed = transactions(self.events, "committed", True)
        self.aborted = transactions(self.events, "aborted", False)

    def expect(self, rule):
        found = checker.check(self.events)
        self.assertIn(rule, found)
        return found

    def show(self, value, at):
        """Makes read_committed's reader see what has this value, just before the event `at`."""
        place = of(self.events, "sent", value=value)[0]
        fields = {name: place[name] for name in ("topic", "partition", "offset", "value")}
        self.events.insert(at, {"event": "read", "reader": "r", **fields})

    def test_many_histories_have_none(self):
        for seed in range(200):
            self.assertEqual(checker.check(Model(seed).run()), {}, seed)

    def test_lost_write(self):
        forget(self.events, f"{self.committed[1]}.0", "read", "final")
        self.expect("lost")

    def test_lost_write_of_an_aborted_transaction_that_was_acknowledged(self):
        forget(self.events, f"{self.aborted[1]}.0", "read", "final")
        self.expect("lost")

    def test_lost_plain_record(self):
        forget(self.events, "plain", "read", "final")
        self.expect("lost")

    def test_committed_write_that_only_read_uncommitted_shows(self):
        value = f"{self.committed[1]}.1"
        self.events[:] = [e for e in self.events if e.get("value") != value or not (
            e.get("reader") == "r" or e.get("isolation") == "read_committed")]
        self.expect("lost")

    def test_doubled_write(self):
        value = f"{self.committed[1]}.0"
        for event in of(self.events, "final", value=value):
            self.events.append({**event, "offset": 10_000})
        self.expect("doubled")

    def test_doubled_write_of_an_aborted_transaction(self):
        event = of(self.events, "final", value=f"{self.aborted[0]}.0")[0]
        self.events.append({**event, "offset": 10_000})
        self.expect("doubled")

    def test_aborted_read(self):
        txn = self.aborted[0]
        end = self.events.index(of(self.events, "end", txn=txn)[0])
        self.show(f"{txn}.0", end + 1)
        self.expect("aborted")

    def test_read_of_a_transaction_whose_commit_nobody_asked_for(self):
        txn = transactions(self.events, "unknown", False)[0]
        self.show(f"{txn}.0", len(self.events))
        self.expect("aborted")

    def test_aborted_write_that_stays(self):
        event = of(self.events, "final", value=f"{self.aborted[0]}.0")[0]
        self.events.append({**event, "isolation": "read_committed"})
        self.expect("aborted")

    def test_read_before_commit(self):
        txn = self.committed[2]
        asked = self.events.index(of(self.events, "asked", txn=txn)[0])
        for value in (f"{txn}.0", f"{txn}.1"):
            read = of(self.events, "read", reader="r", value=value)[0]
            self.events.remove(read)
            self.events.insert(asked, read)
        self.expect("early")

    def test_read_of_one_record_before_commit_and_no_more_of_it(self):
        txn = self.committed[2]
        asked = self.events.index(of(self.events, "asked", txn=txn)[0])
        self.show(f"{txn}.0", asked)
        self.expect("early")

    def test_half_a_transaction(self):
        txn = next(t for t in transactions(self.events, "unknown", True)
                   if of(self.events, "final", isolation="read_committed", value=f"{t}.1"))
        self.events[:] = [e for e in self.events if e.get("value") != f"{txn}.1" or not (
            e.get("reader") == "r" or e.get("isolation") == "read_committed")]
        self.expect("torn")

    def test_offsets_without_their_records(self):
        self.events[-1] = copy.deepcopy(self.events[-1])
        self.events[-1]["offsets"]["0"] += 2
        self.expect("offsets")

    def test_records_without_their_offsets(self):
        self.events[-1] = copy.deepcopy(self.events[-1])
        self.events[-1]["offsets"]["1"] -= 1
        self.expect("offsets")

    def test_no_offsets_at_all(self):
        self.events[-1] = {**self.events[-1], "offsets": {}}
        self.expect("offsets")

    def test_input_copied_by_two_transactions(self):
        first, second = (next(e["value"] for e in of(self.events, "send", txn=txn))
                         for txn in self.committed[:2])
        twin = ":".join([*first.split(":")[:4], second.split(":")[4]])
        for event in self.events:
            if event.get("value") == second:
                event["value"] = twin
        self.expect("offsets")

    def test_record_at_another_place_than_acknowledged(self):
        of(self.events, "sent", value=f"{self.committed[1]}.0")[0]["offset"] += 1
        self.expect("lost")

    def test_record_that_changed_after_it_was_read(self):
        read = of(self.events, "read", reader="u")[5]
        read["value"] = of(self.events, "read", reader="u")[6]["value"]
        self.expect("moved")

    def test_read_uncommitted_lacks_what_read_committed_shows(self):
        value = f"{self.committed[1]}.0"
        self.events[:] = [e for e in self.events if e.get("value") != value or not (
            e.get("reader") == "u" or e.get("isolation") == "read_uncommitted")]
        self.expect("moved")

    def test_reader_that_leaves_one_out(self):
        self.events.remove(of(self.events, "read", reader="r")[7])
        self.expect("unread")

    def test_reader_that_reads_one_again(self):
        read = of(self.events, "read", reader="r")[7]
        self.events.append(dict(read))
        self.expect("unread")

    def test_records_out_of_order(self):
        values = {f"{self.committed[1]}.0": 1, f"{self.committed[1]}.1": -1}
        for event in self.events:
            if event["event"] in ("read", "final", "sent"):
                event["offset"] += values.get(event["value"], 0)
        self.expect("disorder")

    def test_record_of_nobody(self):
        self.events.append({**of(self.events, "final")[0], "offset": 10_000, "value": "whose?"})
        self.expect("stranger")


class Copied(unittest.TestCase):
    """What exactly_once.py says of an output."""

    def setUp(self):
        self.records, self.count = [], 5 * exactly_once.KEYS
        for number in range(self.count):
            key = number % exactly_once.KEYS
            value = f"{number}:{number // exactly_once.KEYS + 1}"
            self.records.append(("out", key % 3, number, value))

    def problems(self, counted=True):
        return exactly_once.problems_of(self.records, self.count, counted)

    def test_a_good_one(self):
        self.assertEqual(self.problems(), [])
        self.assertEqual(self.problems(counted=False), [])

    def test_lost(self):
        del self.records[7]
        self.assertEqual(len(self.problems(counted=False)), 1)

    def test_doubled(self):
        topic, partition, _offset, value = self.records[7]
        self.records.append((topic, partition, 10_000, value))
        self.assertGreater(len(self.problems()), 1)

    def test_doubled_and_its_twin_lost(self):
        self.records[7] = (*self.records[7][:3], self.records[10][3])
        self.assertEqual(len(self.problems(counted=False)), 2)

    def test_out_of_order(self):
        first, second = self.records[3], self.records[3 + exactly_once.KEYS]
        self.records[3] = (*first[:3], second[3])
        self.records[3 + exactly_once.KEYS] = (*second[:3], first[3])
        self.assertEqual(len(self.problems(counted=False)), 1)

    def test_in_another_partition(self):
        _topic, _partition, offset, value = self.records[7]
        self.records[7] = "out", 0, offset, value
        self.assertGreater(len(self.problems(counted=False)), 0)

    def test_counted_twice(self):
        self.records[7] = (*self.records[7][:3], "7:2")
        self.assertEqual(len(self.problems()), 1)


if __name__ == "__main__":
    unittest.main()
