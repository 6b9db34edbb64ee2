"""kafka-consumer-groups, kafka-groups and kafka-streams-application-reset, held against Kafka 4.4.

The topics grp.r (3 partitions: 10, 20 and 30 records, half of them older than the time `middle`)
and grp.s (1 partition, 5 records) are what the groups consume.
"""
import datetime
import re
import signal
import time

import consumer_steps
from groups_common import GroupTools, until

RESET = ("--reset-offsets", "--group")


def run(tools):
    """All steps about groups, on the broker and by the tools of `tools` (KafkaTools)."""
    scratch = tools.broker.scratch / "second"
    scratch.mkdir()
    second = type(tools.host)(scratch)
    try:
        consumer_steps.ConsumerSteps(tools).steps(second)
    finally:
        second.close()
    GroupSteps(tools).steps()


class GroupSteps(GroupTools):
    def steps(self):
        self.fill()
        self.active_group()
        self.rebalancing_group()
        self.lagging_group()
        self.listing()
        self.describe_quiet()
        self.reset_by_every_option()
        self.reset_scopes()
        self.reset_refusals()
        self.delete_offsets()
        self.streams_reset()
        self.deletion()

    def fill(self):
        self.tools.create("grp.r", 3)
        self.tools.create("grp.s", 1)
        for partition in range(3):
            self.send("grp.r", partition, range(5 * partition + 5))
        time.sleep(0.01)
        self.middle = datetime.datetime.now(datetime.timezone.utc)
        time.sleep(0.01)
        for partition in range(3):
            self.send("grp.r", partition, range(5 * partition + 5))
        self.send("grp.s", 0, range(5))
        self.kcat_group("g.quiet", "grp.r")
        self.kcat_group("g.quiet", "grp.s")

    def active_group(self):
        """Two members, one of them static; what is refused while they are there."""
        with self.member("g.active", "grp.r", "client.id=one", "group.instance.id=inst-1") as first, \
                self.member("g.active", "grp.r", "client.id=two") as second:
            first.assigned()
            second.assigned()
            self.stable("g.active")
            describe = ("--describe", "--group", "g.active")
            self.same("active-state", self.groups(*describe, "--state"))
            self.same("active-state-verbose", self.groups(*describe, "--state", "--verbose"))
            self.same("active-members-verbose", self.groups(*describe, "--members",
                                                              "--verbose"))
            self.same("active-members", self.groups(*describe, "--members"))
            self.same("active-list-states", self.groups("--list", "--state", "Stable"))
            self.same("active-groups-list", self.run("groups", "--list"))
            self.same("active-delete", self.groups("--delete", "--group", "g.active"))
            self.same("active-reset", self.groups(*RESET, "g.active", "--topic", "grp.r",
                                                  "--to-earliest", "--execute"))
            self.same("active-reset-dry", self.groups(*RESET, "g.active", "--topic", "grp.r",
                                                      "--to-earliest", "--dry-run"))
            self.same("active-delete-offsets", self.groups(
                "--delete-offsets", "--group", "g.active", "--topic", "grp.r"))
            self.same("active-delete-offsets-other", self.groups(
                "--delete-offsets", "--group", "g.active", "--topic", "grp.s"))
            self.same("active-streams-reset", self.members_away(self.run(
                "streams-application-reset", "--application-id", "g.active", "--input-topics",
                "grp.r")))
            # A static member that goes is still there, and the rebalance waits for it.
            first.process.kill()
        self.same("static-stays-members", self.groups(*describe, "--members", "--verbose"))
        self.same("static-stays-force", self.run(
            "streams-application-reset", "--application-id", "g.active", "--input-topics", "grp.r",
            "--force"))
        self.same("static-removed", self.groups(*describe, "--members", "--verbose"))

    def stable(self, group):
        until(lambda: " Stable " in self.groups("--describe", "--state", "--group", group).out,
              f"stable {group}")

    def members_away(self, ran):
        """Member ids and addresses of a refusal's text."""
        ran.err = re.sub(r" and has following members.*", "", ran.err)
        return ran

    def rebalancing_group(self):
        """A member that does not answer keeps its group waiting for as long as it is in session."""
        with self.member("g.waiting", "grp.r", "client.id=one") as first:
            first.assigned()
            first.process.send_signal(signal.SIGSTOP)
            with self.member("g.waiting", "grp.r", "client.id=two"):
                describe = ("--describe", "--group", "g.waiting")
                until(lambda: "PreparingRebalance" in self.groups(*describe, "--state").out,
                      "rebalance that waits")
                self.same("rebalancing-state", self.groups(*describe, "--state"))
                self.same("rebalancing-members", self.groups(*describe, "--members", "--verbose"))
                self.same("rebalancing-offsets", self.groups(*describe))
                self.same("rebalancing-list", self.groups("--list", "--state",
                                                          "PreparingRebalance"))
                first.process.send_signal(signal.SIGCONT)
                first.assigned(2)

    def lagging_group(self):
        """Members that read but do not commit: the lag is from what was set before they came."""
        self.tools.create("grp.lag", 3)
        for partition in range(3):
            self.send("grp.lag", partition, range(10 * partition + 10))
        self.tools.create("grp.more", 1)
        describe = ("--describe", "--group", "g.lag")
        for name, offset, topic in (("some", 4, "grp.lag:0,1"), ("more", 0, "grp.more")):
            self.same(f"lag-set-{name}", self.groups(*RESET, "g.lag", "--topic", topic,
                                                     "--to-offset", offset, "--execute"))
        quiet = "enable.auto.offset.store=false"  # kcat commits what is stored, whatever else it is told
        with self.member("g.lag", "grp.lag", "client.id=one", quiet) as first, \
                self.member("g.lag", "grp.lag", "client.id=two", quiet) as second:
            first.assigned()
            second.assigned()
            self.stable("g.lag")
            self.same("lag", self.groups(*describe))
            self.same("lag-verbose", self.groups(*describe, "--offsets", "--verbose"))
            self.send("grp.lag", 0, range(5))
            self.send("grp.lag", 2, range(7))
            self.send("grp.more", 0, range(2))
            self.same("lag-grown", self.groups(*describe))
            self.run("topics", "--delete", "--topic", "grp.more")
            self.tools.settle()
            self.same("lag-topic-deleted", self.groups(*describe))
        until(lambda: " Empty " in self.groups(*describe, "--state").out, "end of the members")
        self.same("lag-deleted", self.groups("--delete", "--group", "g.lag"))

    def listing(self):
        for name, *arguments in (
                ("list",), ("list-state", "--state"), ("list-state-empty", "--state", "Empty"),
                ("list-state-two", "--state", "stable,empty"),
                ("list-state-dead", "--state", "Dead"),
                ("list-type", "--type"), ("list-type-classic", "--type", "classic"),
                ("list-type-consumer", "--type", "consumer"),
                ("list-state-type", "--state", "--type")):
            self.same(name, self.groups("--list", *arguments))
        for name, *arguments in (
                ("groups-list",), ("groups-consumer", "--consumer"), ("groups-share", "--share"),
                ("groups-streams", "--streams"), ("groups-protocol", "--protocol", "consumer"),
                ("groups-protocol-other", "--protocol", "connect"),
                ("groups-type", "--group-type", "classic"),
                ("groups-type-consumer", "--group-type", "consumer"),
                ("groups-type-protocol", "--group-type", "classic", "--protocol", "consumer")):
            self.same(name, self.run("groups", "--list", *arguments))

    def describe_quiet(self):
        for name, *arguments in (("offsets",), ("offsets-verbose", "--offsets", "--verbose"),
                                 ("state", "--state"), ("members", "--members"),
                                 ("members-verbose", "--members", "--verbose")):
            for group in ("g.quiet", "g.missing"):
                self.same(f"describe-{group[2:]}-{name}",
                          self.groups("--describe", "--group", group, *arguments))
        self.same("describe-two", self.groups("--describe", "--group", "g.quiet", "--group",
                                              "g.kcat"))
        for name, *arguments in (("offsets",), ("state", "--state"), ("members", "--members")):
            self.same(f"describe-all-{name}", self.groups("--describe", "--all-groups", *arguments))

    def reset_by_every_option(self):
        middle = self.middle.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
        options = (("to-earliest", "--to-earliest"), ("to-latest", "--to-latest"),
                   ("to-offset", "--to-offset", 7), ("to-offset-beyond", "--to-offset", 1000),
                   ("to-offset-negative", "--to-offset=-5"), ("shift-by", "--shift-by", -3),
                   ("shift-by-beyond", "--shift-by", 1000), ("shift-by-low", "--shift-by", -1000),
                   ("to-datetime", "--to-datetime", middle),
                   ("to-datetime-zone", "--to-datetime", f"{middle}Z"),
                   ("to-datetime-old", "--to-datetime", "2001-01-01T00:00:00.000"),
                   ("to-datetime-bad", "--to-datetime", "yesterday"),
                   ("by-duration", "--by-duration", "PT0S"),
                   ("by-duration-long", "--by-duration", "P7DT1H"),
                   ("to-current", "--to-current"))
        scope = ("g.quiet", "--topic", "grp.r")
        for name, *option in options:
            self.same(f"reset-{name}", self.groups(*RESET, *scope, *option, "--execute"))
            self.same(f"reset-{name}-then", self.groups("--describe", "--group", "g.quiet"))
        self.same("reset-dry-run", self.groups(*RESET, *scope, "--to-earliest", "--dry-run"))
        self.same("reset-neither", self.groups(*RESET, *scope, "--to-earliest"))
        self.same("reset-export", self.groups(*RESET, *scope, "--to-offset", 4, "--export",
                                              "--dry-run"))
        self.same("reset-export-execute", self.groups(*RESET, *scope, "--to-offset", 4, "--export",
                                                      "--execute"))
        plan = self.broker.scratch / "plan.csv"
        plan.write_text("grp.r,0,1\ngrp.r,1,2\ngrp.s,0,3\n")
        self.same("reset-from-file", self.groups(*RESET, "g.quiet", "--from-file", plan,
                                                 "--execute"))
        plan.write_text("g.quiet,grp.r,0,5\ng.kcat,grp.a,1,6\n")
        self.same("reset-from-file-groups", self.groups(*RESET, "g.quiet", "--group", "g.kcat",
                                                        "--from-file", plan, "--execute"))
        self.same("reset-from-file-then", self.groups("--describe", "--group", "g.quiet"))

    def reset_scopes(self):
        earliest = ("--to-earliest", "--execute")
        self.same("reset-partitions", self.groups(*RESET, "g.quiet", "--topic", "grp.r:0,1",
                                                  "--to-latest", "--execute"))
        self.same("reset-two-topics", self.groups(*RESET, "g.quiet", "--topic", "grp.r:2",
                                                  "--topic", "grp.s", *earliest))
        self.same("reset-all-topics", self.groups(*RESET, "g.quiet", "--all-topics", "--shift-by",
                                                  2, "--execute"))
        self.same("reset-scopes-then", self.groups("--describe", "--group", "g.quiet"))
        self.same("reset-two-groups", self.groups(*RESET, "g.quiet", "--group", "g.kcat",
                                                  "--all-topics", *earliest))
        self.same("reset-new-group", self.groups(*RESET, "g.new", "--topic", "grp.r", "--to-offset",
                                                 3, "--execute"))
        for name, *arguments in (("offsets",), ("state", "--state"), ("members", "--members")):
            self.same(f"reset-new-group-{name}",
                      self.groups("--describe", "--group", "g.new", *arguments))
        self.same("reset-new-group-listed", self.run("groups", "--list"))
        self.same("reset-new-group-all-topics", self.groups(*RESET, "g.newer", "--all-topics",
                                                            *earliest))
        self.same("reset-new-group-current", self.groups(*RESET, "g.newest", "--topic", "grp.r",
                                                         "--to-current", "--dry-run"))
        self.same("reset-new-group-shift", self.groups(*RESET, "g.newest", "--topic", "grp.r",
                                                       "--shift-by", 2, "--dry-run"))
        values, done = self.kcat_group("g.new", "grp.r")
        self.checks.check(len(values) == 7 + 17 + 27, "reset-offsets: a group starts where it was "
                          "put", f"{values}\n{done}")

    def reset_refusals(self):
        for name, *arguments in (
                ("missing-topic", "--topic", "none", "--to-earliest", "--execute"),
                ("missing-partition", "--topic", "grp.r:9", "--to-earliest", "--execute"),
                ("no-scope", "--to-earliest", "--execute"),
                ("both", "--topic", "grp.r", "--to-earliest", "--execute", "--dry-run")):
            self.same(f"reset-refused-{name}", self.groups(*RESET, "g.quiet", *arguments))

    def delete_offsets(self):
        for name, group, *topics in (
                ("partition", "g.quiet", "grp.r:0"), ("topic", "g.quiet", "grp.r"),
                ("two", "g.new", "grp.r:1", "grp.s"), ("again", "g.quiet", "grp.r"),
                ("missing-topic", "g.quiet", "none"), ("missing-group", "g.missing", "grp.r")):
            arguments = [part for topic in topics for part in ("--topic", topic)]
            self.same(f"delete-offsets-{name}",
                      self.groups("--delete-offsets", "--group", group, *arguments))
            self.same(f"delete-offsets-{name}-then", self.groups("--describe", "--group", group))

    def streams_reset(self):
        """An application with an input, an intermediate and two internal topics."""
        for topic, partitions in (("app.in", 2), ("app.between", 1),
                                  ("app-KSTREAM-REDUCE-STATE-STORE-0000000003-changelog", 1),
                                  ("app-counts-repartition", 1), ("app-of-another", 1)):
            self.tools.create(topic, partitions)
            self.send(topic, 0, range(8))
        self.kcat_group("app", "app.in")
        self.kcat_group("app", "app.between")
        ask = ("streams-application-reset", "--application-id", "app", "--input-topics", "app.in")
        both = (*ask, "--intermediate-topics", "app.between")
        self.same("streams-reset-dry-run", self.run(*both, "--dry-run"))
        self.same("streams-reset-dry-run-then", self.groups("--describe", "--group", "app"))
        self.same("streams-reset-topics-kept", self.app_topics())
        self.same("streams-reset", self.run(*both))
        self.same("streams-reset-then", self.groups("--describe", "--group", "app"))
        self.tools.settle()
        self.same("streams-reset-topics-gone", self.app_topics())
        for name, *option in (("to-offset", "--to-offset", 3), ("shift-by", "--shift-by", 2),
                              ("to-latest", "--to-latest"), ("by-duration", "--by-duration", "P1D"),
                              ("to-earliest", "--to-earliest")):
            self.same(f"streams-reset-{name}", self.run(*ask, *option))
            self.same(f"streams-reset-{name}-then", self.groups("--describe", "--group", "app"))
        self.same("streams-reset-missing-topic", self.run(*ask[:-1], "none"))
        self.same("streams-reset-new-group", self.run(*ask[:2], "app.new", *ask[3:]))
        with self.member("app", "app.in", "client.id=busy") as busy:
            busy.assigned()
            self.stable("app")
            self.same("streams-reset-active", self.members_away(self.run(*both)))
            self.same("streams-reset-force", self.run(*both, "--force"))

    def app_topics(self):
        ran = self.run("topics", "--list")
        ran.out = "".join(re.findall(r"^app.*\n", ran.out, re.MULTILINE))
        return ran

    def deletion(self):
        self.same("delete", self.groups("--delete", "--group", "g.quiet"))
        self.same("delete-again", self.groups("--delete", "--group", "g.quiet"))
        self.same("delete-some", self.groups("--delete", "--group", "g.kcat", "--group",
                                             "g.missing"))
        self.same("delete-then-list", self.groups("--list"))
        self.same("delete-then-describe", self.groups("--describe", "--group", "g.kcat"))
        values, done = self.kcat_group("g.kcat", "grp.s")
        self.checks.check(len(values) == 5, "delete: the group made anew starts anew",
                          f"{values}\n{done}")
        everything = self.groups("--delete", "--all-groups")
        self.works("delete: all groups", everything,
                   "Deletion of requested consumer groups (" in everything.out)
        self.same("delete-all-then-list", self.groups("--list"))
