#!/usr/bin/env python3
"""A broker for an end-to-end test: start, stop, kill -9 and restart one process that we own.

Kanald(binary) starts `kanald --data-dir DIR --listen 127.0.0.1:PORT --ready-file FILE` and waits for
the ready file. ApacheKafka(home) does the same with a real Kafka laid out as home/start.sh PORT
DATADIR, so that a test can be checked against the original. Both have .address ("host:port"),
.data_dir and .channel_directory(topic, partition).

As a command: broker.py [--kanald PATH | --kafka HOME] [--set KEY=VALUE]... -- COMMAND ARG...
runs COMMAND with E2E_BROKER=host:port in its environment and stops the broker afterwards; the
exit code is COMMAND's.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
CLIENT_PORTS = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
START_DEADLINE_S = 60
STOP_DEADLINE_S = 15


class BrokerFailed(Exception):
    """The broker did not start or did not stop; the text carries the end of its log."""


def default_kanald():
    """$KANALD, else the release build, else the newest of build/*/bin/kanald."""
    if os.environ.get("KANALD"):
        return pathlib.Path(os.environ["KANALD"])
    release = REPOSITORY / "build/release/bin/kanald"
    built = sorted(REPOSITORY.glob("build/*/bin/kanald"), key=lambda path: path.stat().st_mtime)
    return release if release.exists() or not built else built[-1]


def require(*programs):
    """Exits when a program is missing: 1 under CI=true, 0 with a SKIP line elsewhere."""
    missing = [program for program in programs if shutil.which(program) is None]
    if not missing:
        return
    in_ci = os.environ.get("CI") == "true"
    print(f"{'FAIL' if in_ci else 'SKIP'}: missing {', '.join(missing)}")
    print(f"0 passed, {1 if in_ci else 0} failed")
    sys.exit(1 if in_ci else 0)


def free_port_pair():
    """A port p such that p and p + 1 are free now, of those that no client gets for its own end: a
    client that tries to connect while the broker is away would take it, connected to itself."""
    first_of_clients = int(CLIENT_PORTS.read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(10_000, first_of_clients - 1)
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                continue


class Broker:
    """What both kinds share: a scratch directory, a process, its end."""

    def __init__(self, keep=False):
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="kanal-e2e-"))
        self.keep = keep
        self.process = None
        self.address = None
        self.start_seconds = 0.0

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, kind, value, trace):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if kind is not None:
            sys.stderr.write(self.log_tail())
        if not self.keep:
            shutil.rmtree(self.scratch, ignore_errors=True)

    @property
    def pid(self):
        return self.process.pid

    @property
    def log_file(self):
        return self.scratch / "broker.log"

    def log_tail(self, lines=25):
        if not self.log_file.exists():
            return ""
        text = self.log_file.read_text(errors="replace").splitlines()[-lines:]
        return "".join(f"broker| {line}\n" for line in text)

    def spawn(self, command, **extra_environment):
        with open(self.log_file, "ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env={**os.environ, **extra_environment})

    def wait_until(self, ready, what):
        started = time.monotonic()
        while not ready():
            if self.process.poll() is not None:
                code = self.process.returncode
                raise BrokerFailed(f"ended with {code} before {what}\n" + self.log_tail())
            if time.monotonic() - started > START_DEADLINE_S:
                raise BrokerFailed(f"no {what} after {START_DEADLINE_S} s\n" + self.log_tail())
            time.sleep(0.005)
        self.start_seconds = time.monotonic() - started

    def kill9(self):
        """SIGKILL; returns once the process is gone."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired:
            text = f"still running {STOP_DEADLINE_S} s after SIGTERM\n" + self.log_tail()
            raise BrokerFailed(text) from None


class Kanald(Broker):
    kind = "kanald"

    def __init__(self, binary=None, settings=(), keep=False):
        super().__init__(keep)
        self.binary = pathlib.Path(binary) if binary else default_kanald()
        self.settings = settings
        self.data_dir = self.scratch / "data"
        self.ready_file = self.scratch / "ready"

    def start(self, listen=None):
        """Starts or restarts; on the same address then, so that clients may hold on to it."""
        if not os.access(self.binary, os.X_OK):
            raise BrokerFailed(f"{self.binary}: no such program (argument or $KANALD names it)\n")
        self.ready_file.unlink(missing_ok=True)
        command = [str(self.binary), "--data-dir", str(self.data_dir),
                   "--ready-file", str(self.ready_file),
                   "--listen", listen or self.address or f"127.0.0.1:{free_port_pair()}"]
        for setting in self.settings:
            command += ["--set", setting]
        self.spawn(command)
        self.wait_until(self.ready_file.exists, "ready file")
        self.address = self.ready_file.read_text().splitlines()[0].strip()

    def channel_directory(self, topic, partition):
        """Where the segment files of a partition lie (docs/storage_format.md)."""
        name = f"kafka.{topic}" if partition == 0 else f"kafka.{topic}~{partition}"
        return self.data_dir / "channels" / name


class ApacheKafka(Broker):
    kind = "kafka"

    def __init__(self, home, settings=(), keep=False):
        super().__init__(keep)
        self.home = pathlib.Path(home)
        self.extra = self.scratch / "extra.properties"
        lines = [setting.removeprefix("kafka.") + "\n" for setting in settings]
        self.extra.write_text("".join(lines))
        self.data_dir = self.scratch / "kafka"
        self.port = free_port_pair()

    def start(self):
        self.data_dir.mkdir(exist_ok=True)
        started = time.monotonic()
        environment = {"BROKER_HEAP": "-Xms256m -Xmx512m", **os.environ}
        with open(self.log_file, "ab") as log:
            command = [self.home / "start.sh", str(self.port), self.data_dir, self.extra]
            code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env=environment)
        if code:
            raise BrokerFailed("Apache Kafka did not start\n" + self.log_tail())
        self.process = ForeignProcess(int((self.data_dir / "pid").read_text()))
        self.address = f"127.0.0.1:{self.port}"
        self.wait_until(self.serves_its_topics, "leader for every topic")
        self.start_seconds = time.monotonic() - started

    def serves_its_topics(self):
        """Kafka opens its port before it knows its topics (kanald may not: no such wait there)."""
        on_disk = len(list((self.data_dir / "data").glob("*-0"))) - 1  # but for __cluster_metadata
        listing = subprocess.run(["kcat", "-L", "-J", "-b", self.address], capture_output=True,
                                 check=False)
        if listing.returncode:
            return False
        topics = json.loads(listing.stdout)["topics"]
        leaders = [partition["leader"] for topic in topics for partition in topic["partitions"]]
        return len(topics) >= on_disk and -1 not in leaders

    def channel_directory(self, topic, partition):
        return self.data_dir / "data" / f"{topic}-{partition}"


class ForeignProcess:
    """The few methods of Popen for a process that a start script left behind (not our child)."""

    def __init__(self, pid):
        self.pid = pid
        self.returncode = None

    def poll(self):
        try:
            state = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            state = "X"
        if state in "XZ":
            self.returncode = 0
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout=STOP_DEADLINE_S):
        started = time.monotonic()
        while self.poll() is None:
            if time.monotonic() - started > timeout:
                raise subprocess.TimeoutExpired(f"pid {self.pid}", timeout)
            time.sleep(0.02)
        return self.returncode


def add_broker_arguments(parser):
    parser.add_argument("kanald", nargs="?",
                        help="the daemon to test (default: $KANALD, else the one in build/release)")
    parser.add_argument("--kafka", metavar="HOME",
                        help="test a real Apache Kafka (HOME/start.sh) instead")
    parser.add_argument("--keep", action="store_true", help="leave the scratch directory behind")


def broker_from(arguments, settings=()):
    if arguments.kafka:
        return ApacheKafka(arguments.kafka, settings, arguments.keep)
    return Kanald(arguments.kanald, settings, arguments.keep)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kanald")
    parser.add_argument("--kafka", metavar="HOME")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not command:
        parser.error("no command")
    arguments.keep = False
    try:
        with broker_from(arguments, arguments.set) as broker:
            code = subprocess.call(command, env={**os.environ, "E2E_BROKER": broker.address})
            if code:
                sys.stderr.write(broker.log_tail())
            return code
    except BrokerFailed as failure:
        print(f"FAIL  {failure}\n0 passed, 1 failed")
        return 1


if __name__ == "__main__":
    sys.exit(main())
