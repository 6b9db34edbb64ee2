"""kafka-configs: what it shows and changes of topics, brokers, groups, client metrics, loggers.

Told apart from Kafka: which loggers there are, and min.insync.replicas, which Kafka's ELR feature
sets for every broker.
"""
import re

ELR_LINE = re.compile(r"^  min\.insync\.replicas=.*\n", re.MULTILINE)


class ConfigsSteps:
    def __init__(self, tools):
        self.tools = tools
        self.node = tools.node_id()

    def run(self):
        self.tools.create("tools.configs", 1)
        self.topics()
        self.brokers()
        self.groups()
        self.client_metrics()
        self.loggers()
        self.tools.tool("topics", "--delete", "--topic", "tools.configs")

    def configs(self, *arguments):
        ran = self.tools.tool("configs", *arguments)
        ran.out = ELR_LINE.sub("", ran.out)
        return ran

    def same(self, name, *arguments):
        self.tools.same(f"configs-{name}", self.configs(*arguments))

    def alter(self, name, entity, *change):
        """The change, and what is shown of the entity after it."""
        self.same(name, *entity, "--alter", *change)
        self.tools.settle()
        self.same(f"{name}-shown", *entity, "--describe")

    def topics(self):
        topic = ("--topic", "tools.configs")
        self.alter("topic-set", topic, "--add-config",
                   "retention.ms=3600000,cleanup.policy=[compact,delete],segment.ms=5000")
        self.alter("topic-delete", topic, "--delete-config", "segment.ms")
        self.alter("topic-change", topic, "--add-config", "retention.ms=7200000",
                   "--delete-config", "cleanup.policy")
        self.same("topic-bad-value", *topic, "--alter", "--add-config", "retention.ms=soon")
        self.same("topic-unknown-name", *topic, "--alter", "--add-config", "nonsense=1")
        self.same("topic-delete-unset", *topic, "--alter", "--delete-config", "nonsense")
        self.same("topic-unknown", "--topic", "none", "--alter", "--add-config", "segment.ms=1")
        self.same("topic-entity-type", "--entity-type", "topics", "--entity-name",
                  "tools.configs", "--describe")

    def brokers(self):
        own = ("--broker", self.node)
        defaults = ("--entity-type", "brokers", "--entity-default")
        self.same("broker-nothing-set", *own, "--describe")
        self.alter("broker-set", own, "--add-config",
                   "log.segment.bytes=2000000,log.cleanup.policy=[compact]")
        self.alter("brokers-set", defaults, "--add-config",
                   "log.segment.bytes=3000000,log.message.timestamp.type=LogAppendTime")
        self.same("broker-both-set", *own, "--describe")
        self.same("topic-follows-broker", "--topic", "tools.configs", "--describe", "--all")
        self.same("broker-read-only", *own, "--alter", "--add-config", "num.partitions=9")
        self.same("broker-bad-value", *own, "--alter", "--add-config", "log.segment.bytes=1")
        self.same("broker-threads", *own, "--alter", "--add-config", "num.io.threads=100")
        self.same("broker-security", *own, "--alter", "--add-config", "ssl.keystore.location=/x")
        self.same("brokers-per-broker-only", *defaults, "--alter", "--add-config",
                  "cordoned.log.dirs=/x")
        self.alter("broker-delete", own, "--delete-config", "log.segment.bytes,log.cleanup.policy")
        self.alter("brokers-delete", defaults, "--delete-config",
                   "log.segment.bytes,log.message.timestamp.type")
        self.same("broker-all-gone", *own, "--describe")

    def groups(self):
        group = ("--entity-type", "groups", "--entity-name", "tools.group")
        self.same("group-all", *group, "--describe", "--all")
        self.alter("group-set", group, "--add-config",
                   "consumer.session.timeout.ms=50000,share.auto.offset.reset=earliest")
        self.same("group-out-of-bounds", *group, "--alter", "--add-config",
                  "consumer.session.timeout.ms=1")
        self.same("group-unknown-name", *group, "--alter", "--add-config", "nonsense=1")
        self.same("groups-described", "--entity-type", "groups", "--describe")
        self.alter("group-delete", group, "--delete-config",
                   "consumer.session.timeout.ms,share.auto.offset.reset")

    def client_metrics(self):
        metrics = ("--entity-type", "client-metrics", "--entity-name", "tools.metrics")
        self.alter("client-metrics-set", metrics, "--add-config",
                   "interval.ms=1000,metrics=[org.apache.kafka.producer.,consumer.],"
                   "match=[client_id=tools.*]")
        self.same("client-metrics-bad-interval", *metrics, "--alter", "--add-config",
                  "interval.ms=1")
        self.same("client-metrics-bad-match", *metrics, "--alter", "--add-config", "match=[what=x]")
        self.same("client-metrics-described", "--entity-type", "client-metrics", "--describe")
        self.alter("client-metrics-delete", metrics, "--delete-config",
                   "interval.ms,metrics,match")

    def loggers(self):
        loggers = ("--broker-logger", self.node)
        for name, change in (("set", ("--add-config", "root=WARN")),
                             ("set-back", ("--add-config", "root=INFO"))):
            self.same(f"logger-{name}", *loggers, "--alter", *change)
            ran = self.configs(*loggers, "--describe")
            self.tools.checks.check(ran.out.count("\n") > 2, "configs: loggers are listed", ran)
            ran.out = "".join(re.findall(r"^(?:  root=.*|\S.*)\n", ran.out, re.MULTILINE))
            self.tools.same(f"configs-logger-{name}-shown", ran)
        self.same("logger-unknown", *loggers, "--alter", "--add-config", "nonsense=WARN")
        self.same("logger-bad-level", *loggers, "--alter", "--add-config", "root=LOUD")
        self.same("logger-root-kept", *loggers, "--alter", "--delete-config", "root")


def run(tools):
    ConfigsSteps(tools).run()
