"""Tools that consume in groups: kcat -G, console-consumer, perf-test, verifiable clients."""
import json
import pathlib
import re
import time

from groups_common import Background, GroupTools, java_tool, until

VERIFIED_RECORDS = 6000
PERF_RECORDS = 20000


class ConsumerSteps(GroupTools):
    def steps(self, second_host):
        self.kcat()
        self.console()
        self.console_from_the_end(second_host)
        self.perf_test()
        self.verifiable()
        self.compatibility()

    def kcat(self):
        self.tools.create("grp.a", 3)
        for partition in range(3):
            self.send("grp.a", partition, numbers(partition, 0, 10 * partition + 10))
        values, done = self.kcat_group("g.kcat", "grp.a")
        everything = [value for partition in range(3)
                      for value in numbers(partition, 0, 10 * partition + 10)]
        self.checks.check(sorted(values) == sorted(everything) and done.returncode == 0,
                          "kcat -G: every record once", f"{values}\n{done}")
        in_order = all([value for value in values if value[0] == str(partition)]
                       == numbers(partition, 0, 10 * partition + 10) for partition in range(3))
        self.checks.check(in_order, "kcat -G: each partition in its order", values)
        values, done = self.kcat_group("g.kcat", "grp.a")
        self.checks.check(not values, "kcat -G: nothing twice", f"{values}\n{done}")
        self.send("grp.a", 1, ["more1", "more2"])
        values, done = self.kcat_group("g.kcat", "grp.a")
        self.checks.check(values == ["more1", "more2"], "kcat -G: resumes where it stopped",
                          f"{values}\n{done}")
        self.same("kcat-group-described", self.groups("--describe", "--group", "g.kcat"))
        self.same("kcat-group-offsets", self.run("get-offsets", "--topic", "grp.a"))

    def console(self):
        ask = ("console-consumer", "--topic", "grp.a", "--from-beginning", "--formatter-property",
               "print.partition=true", "--formatter-property", "print.offset=true")
        group = (*ask, "--group", "g.console")
        first = self.run(*group, "--max-messages", 40, "--command-property", "max.poll.records=7")
        self.works("console-consumer: --from-beginning", first, len(records(first)) == 40)
        self.send("grp.a", 2, ["late1", "late2", "late3"])
        # 65 records by now. A group that has offsets goes on from them, whatever is asked.
        rest = self.run(*group, "--max-messages", 25)
        self.works("console-consumer: --group resumes", rest, len(records(rest)) == 25
                   and len(records(first) | records(rest)) == 65)
        self.same("console-nothing-left", self.run(*group, "--timeout-ms", 1500))
        self.same("console-described", self.groups("--describe", "--group", "g.console"))
        self.same("console-no-group", self.run(*ask, "--max-messages", 65))
        self.same("console-include", self.run("console-consumer", "--include", "grp\\.a|none.*",
                                              "--from-beginning", "--max-messages", 65))
        # Without --group it makes up one, which stays.
        made_up = re.findall(r"^console-consumer-\d+$", self.groups("--list").out, re.MULTILINE)
        self.checks.check(len(made_up) == 2, "console-consumer: makes up a group", made_up)
        gone = [self.groups("--delete", "--group", group) for group in made_up]
        self.works("console-consumer: that group can be deleted", gone[0],
                   all("successful" in ran.out for ran in gone))

    def console_from_the_end(self, second_host):
        """Without --from-beginning only what comes after the group is ready."""
        consumer = Background(second_host, "console-consumer", *self.tools.server, "--topic", "grp.a",
                              "--group", "g.console.end", "--max-messages", 4, "--timeout-ms", 60000)
        until(lambda: "Stable" in self.groups("--describe", "--state", "--group",
                                              "g.console.end").out, "console-consumer in its group")
        self.same("console-active-members", self.groups("--describe", "--members", "--verbose",
                                                        "--group", "g.console.end"))
        self.same("console-active-state", self.groups("--describe", "--state", "--group",
                                                      "g.console.end"))
        # Stable is not yet positioned: the consumer may still be asking for the end of a partition.
        until(lambda: self.positioned("g.console.end", 3), "positions of the console-consumer")
        for number in range(4):
            self.send("grp.a", number % 3, [f"new{number}"])
        self.same("console-from-the-end", consumer.end())

    def positioned(self, group, partitions):
        """An idle member commits its positions with each automatic commit, every 5 s."""
        rows = re.findall(rf"^{re.escape(group)} +\S+ +\d+ +\d+ ",
                          self.groups("--describe", "--group", group).out, re.MULTILINE)
        return len(rows) == partitions

    def perf_test(self):
        self.tools.create("grp.perf", 3)
        sent = self.run("producer-perf-test", "--topic", "grp.perf", "--num-records", PERF_RECORDS,
                        "--record-size", 100, "--throughput", -1)
        self.works("consumer-perf-test: records to read", sent)
        ran = self.run("consumer-perf-test", "--topic", "grp.perf", "--num-records", PERF_RECORDS,
                       "--group", "g.perf", "--timeout", 60000)
        header = "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg"
        self.works("consumer-perf-test: all records", ran,
                   header in ran.out and re.search(rf", 1\.9073, [\d.]+, {PERF_RECORDS}, ", ran.out))
        self.all_read("g.perf", PERF_RECORDS)

    def all_read(self, group, count):
        """The lag is 0 everywhere. Where the records lie is the producer's choice."""
        ran = self.groups("--describe", "--group", group)
        rows = re.findall(rf"^{re.escape(group)} +\S+ +\d+ +(\d+) +(\d+) +(\d+) ", ran.out,
                          re.MULTILINE)
        self.works(f"{group}: nothing left to read", ran,
                   all(current == end and lag == "0" for current, end, lag in rows)
                   and sum(int(end) for _, end, _ in rows) == count)
        gone = self.groups("--delete", "--group", group)
        self.works(f"{group}: deleted", gone, "successful" in gone.out)

    def verifiable(self):
        """Three members; one is killed while records come in: no record is lost."""
        self.tools.create("grp.verified", 6)
        members = [self.verifiable_consumer(number) for number in range(3)]
        try:
            until(lambda: all(assigned(member) for member in members), "assignment of each member")
            producer = java_tool(self.tools, "producer", "VerifiableProducer", "--topic",
                                 "grp.verified", "--max-messages", VERIFIED_RECORDS,
                                 "--throughput", 1500)
            until(lambda: sum(len(offsets(member)) for member in members) > 1000, "records read")
            # The producer's choice of partitions leaves some member with little to read.
            members.sort(key=lambda member: -len(offsets(member)))
            members[0].kill()
            members[0].wait()
            self.checks.check(producer.wait(120) == 0, "verifiable-producer: ends with 0")
            sent = [event for event in events(producer) if event["name"] == "producer_send_success"]
            self.checks.check(len(sent) == VERIFIED_RECORDS, "verifiable-producer: all acknowledged",
                              len(sent))
            want = {(event["partition"], event["offset"]): event["value"] for event in sent}
            read = Merged(members)
            until(lambda: read.update() >= want.keys(), "read of every record", 90)
            self.checks.check(read.values == want, "verifiable-consumer: no record lost or changed, "
                              f"one of three members killed, {read.doubles} read twice",
                              f"{len(read.values)} of {len(want)}")
        finally:
            for member in members:
                member.terminate()
                member.wait(60)
        self.checks.check(all(events(member)[-1]["name"] == "shutdown_complete"
                              for member in members[1:]), "verifiable-consumer: ends on SIGTERM")
        # The killed one may still be in session.
        until(lambda: " Empty " in self.groups("--describe", "--state", "--group",
                                               "g.verified").out, "group without members")
        self.all_read("g.verified", VERIFIED_RECORDS)

    def verifiable_consumer(self, number):
        return java_tool(self.tools, f"consumer-{number}", "VerifiableConsumer", "--topic",
                         "grp.verified", "--group-id", "g.verified", "--session-timeout", 6000,
                         "--verbose")

    def compatibility(self):
        self.tools.create("grp.compatible", 1)
        self.tools.settle()
        supported = ("offsets-for-times", "cluster-id", "create-topics", "describe-configs",
                     "idempotent-producer")
        yes = [part for name in supported for part in (f"--{name}-supported", "true")]
        arguments = (*self.tools.server, "--topic", "grp.compatible", "--num-cluster-nodes", 1,
                     "--expect-record-too-large-exception", "false", *yes)
        # Kafka answers DescribeAcls; kanald has no ACLs yet.
        acls = "true" if self.broker.kind == "kafka" else "false"
        self.same("client-compatibility-test", self.host.run(
            "client-compatibility-test", *arguments, "--describe-acls-supported", acls))


def records(ran):
    return {line for line in ran.out.splitlines() if line.startswith("Partition:")}


def numbers(partition, first, last):
    return [f"{partition}-{number}" for number in range(first, last)]


def events(process):
    """What a verifiable client printed; a killed one leaves half a line."""
    found = []
    for line in pathlib.Path(process.output).read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def assigned(process):
    return any(event["name"] == "partitions_assigned" for event in events(process))


def offsets(process):
    return [event for event in events(process) if event["name"] == "record_data"]


class Merged:
    """What several members read, together."""

    def __init__(self, members):
        self.members = members
        self.values = {}
        self.doubles = 0

    def update(self):
        read = [event for member in self.members for event in offsets(member)]
        self.values = {(event["partition"], event["offset"]): event["value"] for event in read}
        self.doubles = len(read) - len(self.values)
        time.sleep(0.2)
        return self.values.keys()
