"""Holds a history of transactions against what they promise; finds anomalies.

    checker.py FILE        a history that anomalies.py kept; prints one line for each anomaly

A history is a list of events in the order in which the driver saw them happen, each a dict with
"event" and, by that:

    begin     txn                        a transaction begins; txn names it and nothing else
    send      txn, topic, partition, value   asked for; values are never used twice
    sent      txn, topic, partition, offset, value   acknowledged
    asked     txn                        its commit is asked for
    end       txn, how                   answered: "committed", "aborted"; "unknown" where no answer,
                                         or an error, came (without "asked" it never can be committed)
    open      reader, isolation          a reader starts at the beginning of all topics
    read      reader, topic, partition, offset, value
    final     isolation, topic, partition, offset, value   what is there in the end, read anew
    offsets   group, offsets             committed in the end, by partition of the group's topic
    plain     topic, partition, value    a record of no transaction, acknowledged

Copies have values `copy:GROUP:PARTITION:OFFSET:…`, so that each tells what it is a copy of.

The rules, each with what breaks it:

    lost       a committed record that is not there in the end, or not where it was acknowledged
    doubled    a value at two places
    aborted    read_committed showed a record of a transaction that was not committed
    early      read_committed showed a record before its commit was asked for
    torn       a transaction whose end nobody knows is there in part
    moved      two readers saw different records at one place
    unread     a reader went past a record that is there in the end, or saw one out of order
    disorder   records of a transaction are not in the order in which they were sent
    stranger   a record that nobody sent
    offsets    committed offsets without the copies of what is before them, copies of what is not
               before them, or more than one copy
"""
import collections
import json
import sys

LIMIT = 20  # anomalies of one rule that are told


class Checker:
    def __init__(self, events):
        self.events = events
        self.found = collections.defaultdict(list)
        self.sends = {}  # value: (txn, topic, partition, moment)
        self.acknowledged = {}  # value: (topic, partition, offset)
        self.asked, self.how = {}, {}  # by txn: the moment; how it ended
        self.order = collections.defaultdict(list)  # (txn, topic, partition): values as sent
        self.final = {"read_committed": {}, "read_uncommitted": {}}  # place: value
        self.reads = collections.defaultdict(list)  # reader: (moment, place, value)
        self.isolation = {}
        self.committed_offsets = {}
        self.plain = set()

    def tell(self, rule, text):
        self.found[rule].append(text)

    def check(self):
        """{rule: what broke it}."""
        self.sort_out()
        self.doubled()
        self.lost()
        self.shown()
        self.torn()
        self.readers()
        self.disorder()
        self.offsets()
        return {rule: texts[:LIMIT] for rule, texts in sorted(self.found.items())}

    def sort_out(self):
        for moment, event in enumerate(self.events):
            kind, txn = event["event"], event.get("txn")
            place = tuple(event.get(name) for name in ("topic", "partition", "offset"))
            if kind == "send":
                self.sends[event["value"]] = (txn, *place[:2], moment)
                self.order[(txn, *place[:2])].append(event["value"])
            elif kind == "sent":
                self.acknowledged[event["value"]] = place
            elif kind == "plain":
                self.plain.add(event["value"])
            elif kind == "asked":
                self.asked[txn] = moment
            elif kind == "end":
                self.how[txn] = event["how"]
            elif kind == "open":
                self.isolation[event["reader"]] = event["isolation"]
            elif kind == "read":
                self.reads[event["reader"]].append((moment, place, event["value"]))
            elif kind == "final":
                self.see(self.final[event["isolation"]], place, event["value"])
            elif kind == "offsets":
                wanted = {int(p): offset for p, offset in event["offsets"].items()}
                self.committed_offsets[event["group"]] = wanted

    def see(self, log, place, value):
        if log.setdefault(place, value) != value:
            self.tell("moved", f"{name_of(place)}: {log[place]} and {value}")

    def may_commit(self, txn):
        how = self.how.get(txn, "unknown")
        return how == "committed" or (how == "unknown" and txn in self.asked)

    def doubled(self):
        for isolation, log in self.final.items():
            places = collections.defaultdict(list)
            for place, value in log.items():
                places[value].append(place)
            for value, where in places.items():
                if len(where) > 1:
                    self.tell("doubled", f"{isolation}: {value} at {names_of(where)}")
                if value not in self.sends and value not in self.plain:
                    self.tell("stranger", f"{isolation}: {value} at {names_of(where)}")

    def lost(self):
        committed, every = self.final["read_committed"], self.final["read_uncommitted"]
        values = set(committed.values())
        for value, (txn, *_where) in self.sends.items():
            if self.how.get(txn) == "committed" and value not in values:
                self.tell("lost", f"{value} of {txn}, which was committed")
            place = self.acknowledged.get(value)
            if place is not None and every.get(place) != value:
                self.tell("lost", f"{value} was acknowledged at {name_of(place)}: {every.get(place)}")
        for value in self.plain - values:
            self.tell("lost", f"{value}, of no transaction")
        for place, value in committed.items():
            if every.get(place) != value:
                self.tell("moved", f"{name_of(place)}: {value}, read_uncommitted {every.get(place)}")

    def shown(self):
        """What read_committed showed, at any time, to anybody."""
        for reader, reads in self.reads.items():
            if self.isolation[reader] != "read_committed":
                continue
            for moment, place, value in reads:
                txn = self.sends.get(value, (None,))[0]
                if txn is None:
                    continue
                if not self.may_commit(txn):
                    self.tell("aborted", f"{reader} saw {value} of {txn} at {name_of(place)}")
                elif moment < self.asked.get(txn, len(self.events)):
                    self.tell("early", f"{reader} saw {value} of {txn} before its commit")
        for place, value in self.final["read_committed"].items():
            txn = self.sends.get(value, (None,))[0]
            if txn is not None and not self.may_commit(txn):
                self.tell("aborted", f"{value} of {txn} is at {name_of(place)} in the end")

    def torn(self):
        there = set(self.final["read_committed"].values())
        of = collections.defaultdict(list)
        for value, (txn, *_where) in self.sends.items():
            of[txn].append(value)
        for txn, values in of.items():
            shown = [value for value in values if value in there]
            if self.how.get(txn, "unknown") == "unknown" and 0 < len(shown) < len(values):
                missing = sorted(set(values) - there)
                self.tell("torn", f"{txn}: {shown[:3]} without {missing[:3]}")

    def readers(self):
        """Each session saw, of each partition, what is there in the end, from its start on."""
        for reader, reads in self.reads.items():
            final = self.final[self.isolation[reader]]
            seen = collections.defaultdict(list)
            for _moment, place, value in reads:
                seen[place[:2]].append(place[2])
                if final.get(place) != value:
                    self.tell("moved", f"{reader} saw {value} at {name_of(place)}: {final.get(place)}")
            for where, offsets in seen.items():
                if offsets != sorted(set(offsets)):
                    self.tell("unread", f"{reader}: {where[0]}-{where[1]} out of order, or twice")
            last = {where: max(offsets) for where, offsets in seen.items()}
            passed = {place for place in final if place[2] < last.get(place[:2], -1)}
            missing = passed - {place for _moment, place, _value in reads}
            if missing:
                self.tell("unread", f"{reader} went past {names_of(sorted(missing))}")

    def disorder(self):
        at = {value: place for place, value in self.final["read_uncommitted"].items()}
        for (txn, *_where), values in self.order.items():
            offsets = [at[value][2] for value in values if value in at]
            if offsets != sorted(offsets):
                self.tell("disorder", f"{txn}: {values[:5]}… at {offsets[:5]}…")

    def offsets(self):
        copies = collections.Counter()
        for value in self.final["read_committed"].values():
            if value.startswith("copy:"):
                _copy, group, partition, offset = value.split(":")[:4]
                copies[group, int(partition), int(offset)] += 1
        for (group, partition, offset), times in copies.items():
            if times > 1:
                self.tell("offsets", f"{group}: {partition}@{offset} was copied {times} times")
            if offset >= self.committed_offsets.get(group, {}).get(partition, 0):
                self.tell("offsets", f"{group}: {partition}@{offset} was copied, its offset is behind")
        for group, offsets in self.committed_offsets.items():
            for partition, end in offsets.items():
                missing = [o for o in range(end) if (group, partition, o) not in copies]
                if missing:
                    self.tell("offsets", f"{group}: no copies of {partition}@{missing[:5]}, "
                              f"{len(missing)} in all, before the committed {end}")


def name_of(place):
    return f"{place[0]}-{place[1]}@{place[2]}"


def names_of(places):
    return ", ".join(name_of(place) for place in list(places)[:5])


def check(events):
    return Checker(events).check()


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        events = [json.loads(line) for line in file]
    found = check(events)
    for rule, texts in found.items():
        for text in texts:
            print(f"{rule}: {text}")
    print(f"{len(events)} events, {sum(map(len, found.values()))} anomalies")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
