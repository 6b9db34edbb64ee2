"""What the group steps share: members that stay, outputs made alike, a second JVM for tools."""
import pathlib
import re
import signal
import subprocess
import threading
import time

from broker import REPOSITORY
from expectations import Expectations

HERE = pathlib.Path(__file__).resolve().parent
BUILT = REPOSITORY / "build/kafka-tools"
JOIN_DEADLINE_S = 60
TOOLS = {
    "consumer-groups": "consumer.group.ConsumerGroupCommand",
    "groups": "GroupsCommand",
    "streams-application-reset": "StreamsResetter",
    "consumer-perf-test": "ConsumerPerformance",
    "verifiable-producer": "VerifiableProducer",
    "verifiable-consumer": "VerifiableConsumer",
    "client-compatibility-test": "ClientCompatibilityTest",
}
ALIKE = (
    # The usage, printed after a refusal: no broker has a part in it.
    (r"^Option +Description\s[\s\S]*", ""),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    # Columns are as wide as what they hold; ports and ids differ in length.
    (r" {2,}", " "),
    (r" +$", ""),
    (r"127\.0\.0\.1:\d+ \(\d+\)", "COORDINATOR"),
)


class GroupExpectations(Expectations):
    """Also orders rows: a broker lists groups, members and partitions in the order of its tables."""

    more = ALIKE

    def alike(self, ran):
        text = super().alike(ran).strip("\n")
        blocks = [block.splitlines() for block in re.split(r"\n{2,}", text)]
        ordered = ["\n".join(block[:1] + sorted(block[1:])) for block in blocks]
        return "\n\n".join(ordered[:1] + sorted(ordered[1:])) + "\n"


class Member:
    """kcat -G that stays in its group until told to leave."""

    def __init__(self, tools, group, topic, *settings):
        self.errors = tools.broker.scratch / f"{group}-{time.monotonic_ns()}.txt"
        extra = [part for setting in settings for part in ("-X", setting)]
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(
                ["kcat", "-b", tools.broker.address, "-G", group, "-X", "auto.offset.reset=earliest",
                 *extra, topic], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait(JOIN_DEADLINE_S)

    def assigned(self, times=1):
        """Waits until the member got an assignment for the given time."""
        until(lambda: self.errors.read_text().count(": assigned: ") >= times,
              f"assignment {times} of a kcat member\n{self.errors.read_text()}")
        return self


class Background:
    """A tool that runs beside others, in a JVM of its own that ToolHost started."""

    def __init__(self, host, tool, *arguments):
        self.ran = None
        self.thread = threading.Thread(target=self.work, args=(host, tool, arguments), daemon=True)
        self.thread.start()

    def work(self, host, tool, arguments):
        self.ran = host.run(tool, *arguments)

    def end(self):
        self.thread.join()
        return self.ran


def java_tool(tools, name, tool, *arguments):
    """A tool in a process of its own, which can be killed; `.output` is the file of its stdout."""
    output = tools.broker.scratch / f"{name}.out"
    command = ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               f"-Dlog4j2.configurationFile={HERE / 'log4j2.properties'}",
               "-cp", f"{BUILT / 'libs'}/*", f"org.apache.kafka.tools.{tool}",
               *map(str, (*tools.server, *arguments))]
    with open(output, "wb") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=tools.host.log)
    process.output = output
    return process


def until(condition, what, deadline=JOIN_DEADLINE_S):
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"no {what} after {deadline} s")
        time.sleep(0.02)


class GroupTools:
    """The base of the modules' steps. `tools` is KafkaTools."""

    def __init__(self, tools):
        self.tools = tools
        self.broker = tools.broker
        self.host = tools.host
        self.checks = tools.checks
        common = tools.expectations
        self.expectations = GroupExpectations(common.directory / "groups", common.address,
                                              common.record)

    def run(self, tool, *arguments, stdin=b""):
        return self.tools.tool(tool, *arguments, stdin=stdin)

    def groups(self, *arguments):
        return self.run("consumer-groups", *arguments)

    def same(self, name, ran):
        problem = self.expectations.compare(name, ran)
        self.checks.check(not problem, f"{name}: as Kafka 4.4 prints it", problem)

    def works(self, name, ran, good=True):
        self.tools.works(name, ran, good)

    def member(self, group, topic, *settings):
        return Member(self.tools, group, topic, *settings)

    def send(self, topic, partition, values):
        """Records to one partition, by kcat."""
        subprocess.run(["kcat", "-P", "-b", self.broker.address, "-t", topic, "-p", str(partition)],
                       input="".join(f"{value}\n" for value in values).encode(), check=True)

    def kcat_group(self, group, topic, *arguments):
        """kcat -G to the end of every partition: (values in order of arrival, the process)."""
        done = subprocess.run(["kcat", "-b", self.broker.address, "-G", group, "-e", "-X",
                               "auto.offset.reset=earliest", *arguments, topic],
                              capture_output=True, timeout=JOIN_DEADLINE_S, check=False)
        return done.stdout.decode().split(), done
