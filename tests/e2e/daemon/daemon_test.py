#!/usr/bin/env python3
"""The daemon by its behaviour: command line, ready file, locks, signals, limits, framing. Standard library only.

    daemon_test.py KANALD [-k SUBSTRING]     KANAL_TEST_CYCLES=20000 for the long form of the leak test
"""
import contextlib
import itertools
import os
import pathlib
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

KANALD = ""
CYCLES = int(os.environ.get("KANAL_TEST_CYCLES", "1500"))


def frame(body):
    return struct.pack(">i", len(body)) + body


def request(key, version, correlation_id, body=b"", client_id=b"t"):
    return frame(struct.pack(">hhih", key, version, correlation_id, len(client_id)) + client_id + body)


def api_versions(correlation_id):
    return request(18, 0, correlation_id)


def metadata(correlation_id, topic=None):
    """Metadata v1 of one topic (made if missing) or of none."""
    names = [] if topic is None else [topic.encode()]
    body = struct.pack(">i", len(names)) + b"".join(struct.pack(">h", len(n)) + n for n in names)
    return request(3, 1, correlation_id, body)


def fetch(correlation_id, topic, max_wait_ms):
    """Fetch v4 of partition 0 from its start, waiting for one byte."""
    name = topic.encode()
    return request(1, 4, correlation_id, struct.pack(">iiiibi", -1, max_wait_ms, 1, 1 << 20, 0, 1)
                   + struct.pack(">h", len(name)) + name + struct.pack(">iiqi", 1, 0, 0, 1 << 20))


def produce(correlation_id, topic, acks):
    """Produce v3 of one record set that cannot be a batch: an error for the partition."""
    name = topic.encode()
    return request(0, 3, correlation_id, struct.pack(">hhii", -1, acks, 1000, 1) + struct.pack(">h", len(name)) + name
                   + struct.pack(">iii", 1, 0, 0))


def alter_broker(correlation_id, node, name, value):
    """IncrementalAlterConfigs v0 of one broker: sets a config, or removes it for None."""
    name, node = name.encode(), node.encode()
    text = struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()
    return request(44, 0, correlation_id, struct.pack(">ibh", 1, 4, len(node)) + node + struct.pack(">ih", 1, len(name))
                   + name + struct.pack(">b", 1 if value is None else 0) + text + b"\0")


class Client:
    def __init__(self, address):
        self.socket = socket.create_connection(address, timeout=10)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, *requests):
        self.socket.sendall(b"".join(requests))

    def bytes(self, count):
        got = b""
        while len(got) < count:
            more = self.socket.recv(count - len(got))
            if not more:
                raise EOFError(f"closed after {len(got)} of {count} bytes")
            got += more
        return got

    def answer(self):
        body = self.bytes(struct.unpack(">i", self.bytes(4))[0])
        return struct.unpack(">i", body[:4])[0], body[4:]

    def call(self, sent):
        self.send(sent)
        return self.answer()

    def closed(self):
        """Whether the broker closes without another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Kanald:
    """One process that we own, with its log in a file."""

    def __init__(self, directory, *arguments):
        self.directory = pathlib.Path(directory)
        self.ready = self.directory / "ready"
        self.log_path = self.directory / f"log-{time.monotonic_ns()}"
        self.ready.unlink(missing_ok=True)
        command = [KANALD, "--data-dir", str(self.directory / "data"), "--listen", "127.0.0.1:0", "--ready-file",
                   str(self.ready), *arguments]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 30
        while not self.ready.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"kanald did not start:\n{self.log()}")
            time.sleep(0.005)
        host, port = self.ready.read_text().split("\n")[0].rsplit(":", 1)
        self.address = (host, int(port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def log(self):
        return self.log_path.read_text(errors="replace")

    def connect(self):
        return Client(self.address)

    def terminate(self):
        """Exit code and seconds."""
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=20), time.monotonic() - begin

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def resident_kib(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def eventually(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def run(*arguments):
    return subprocess.run([KANALD, *arguments], capture_output=True, text=True, timeout=30)


class DaemonTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="kanal-daemon-")
        self.addCleanup(scratch.cleanup)
        self.scratch = scratch.name

    def start(self, *arguments):
        broker = Kanald(self.scratch, *arguments)
        self.addCleanup(broker.__exit__)
        return broker


class CommandLine(DaemonTest):
    def test_version_help_and_checks_leave_nothing_behind(self):
        self.assertRegex(run("--version").stdout, r"^kanald \d+\.\d+\.\d+\n$")
        self.assertIn("--ready-file", run("--help").stdout)
        data = os.path.join(self.scratch, "data")
        self.assertEqual(run("--check-config", "--data-dir", data).returncode, 0)
        shown = run("--print-config", "--data-dir", data, "--set", "kafka.num.partitions=7")
        self.assertEqual(shown.returncode, 0)
        self.assertRegex(shown.stdout, r"num.partitions: \"?7")
        self.assertFalse(os.path.exists(data))

    def test_what_print_config_shows_starts_the_same_broker(self):
        path = pathlib.Path(self.scratch, "again.yaml")
        path.write_text(run("--print-config", "--set", "kafka.num.partitions=7").stdout)
        again = run("--config", str(path), "--print-config")
        self.assertEqual(again.stdout, path.read_text())

    def test_bad_configuration_ends_with_2_and_says_where(self):
        path = pathlib.Path(self.scratch, "kanal.yaml")
        path.write_text("kafka:\n  num.partitons: 3\n")
        for arguments, expected in ((["--config", str(path)], "num.partitions"), (["--nonsense"], "--nonsense"),
                                    (["--set", "kafka.num.partitions=x"], "num.partitions"),
                                    (["--listen", "0.0.0.0:0"], "advertised"),
                                    (["--config", "/nonexistent.yaml"], "nonexistent")):
            with self.subTest(arguments):
                done = run(*arguments, "--data-dir", os.path.join(self.scratch, "data"))
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(expected, done.stderr)

    def test_ready_file_names_every_listener(self):
        broker = self.start("--listen", "127.0.0.1:0")
        lines = broker.ready.read_text().split("\n")
        self.assertEqual(len(lines), 3)
        self.assertEqual(lines[2], "")
        for line in lines[:2]:
            host, port = line.rsplit(":", 1)
            with Client((host, int(port))) as client:
                self.assertEqual(client.call(api_versions(1))[0], 1)
        self.assertEqual([p.name for p in broker.directory.iterdir() if p.name.startswith("ready")], ["ready"])
        self.assertIn("Serving.", broker.log())


class Locks(DaemonTest):
    def test_a_second_daemon_on_the_same_directory_is_refused(self):
        first = self.start()
        second = run("--data-dir", str(first.directory / "data"), "--listen", "127.0.0.1:0")
        self.assertEqual(second.returncode, 1)
        self.assertIn(str(first.directory / "data"), second.stderr)
        with first.connect() as client:
            self.assertEqual(client.call(api_versions(1))[0], 1)

    def test_a_port_in_use_is_named(self):
        first = self.start()
        listen = f"127.0.0.1:{first.address[1]}"
        second = run("--data-dir", os.path.join(self.scratch, "other"), "--listen", listen)
        self.assertEqual(second.returncode, 1)
        self.assertIn(listen, second.stderr)

    def test_kill_9_releases_the_directory(self):
        first = self.start()
        first.process.kill()
        self.start()  # at once: it waits until the killed one is gone
        first.process.wait()


class Stopping(DaemonTest):
    def test_sigterm_answers_what_is_parked(self):
        broker = self.start()
        clients = [broker.connect() for _ in range(20)]
        with contextlib.ExitStack() as stack:
            for client in clients:
                stack.enter_context(client)
                client.call(metadata(1, "t"))
                client.send(fetch(2, "t", 60_000), api_versions(3))
            time.sleep(0.2)
            broker.process.send_signal(signal.SIGTERM)
            for client in clients:
                self.assertEqual(client.answer()[0], 2)
                self.assertEqual(client.answer()[0], 3)
                self.assertTrue(client.closed())
            begin = time.monotonic()
            self.assertEqual(broker.process.wait(timeout=20), 0)
            self.assertLess(time.monotonic() - begin, 5)
        self.assertIn("Stopped.", broker.log())

    def test_sigint_stops_an_idle_broker_at_once(self):
        broker = self.start()
        begin = time.monotonic()
        broker.process.send_signal(signal.SIGINT)
        self.assertEqual(broker.process.wait(timeout=20), 0)
        self.assertLess(time.monotonic() - begin, 5)
        self.start()

    def stuck(self):
        """A broker with a client that takes no answers."""
        broker = self.start("--set", "limits.answer_bytes_per_connection=1GiB", "--set",
                            "limits.requests_per_connection=100000")
        client = broker.connect()
        self.addCleanup(client.socket.close)
        describe = request(32, 1, 1, struct.pack(">ibh1sib", 1, 4, 1, b"1", -1, 1))  # all configs of broker 1
        client.socket.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            for _ in range(2000):
                client.send(describe * 10)
        return broker

    def test_a_client_that_does_not_read_cannot_hold_the_stop(self):
        code, seconds = self.stuck().terminate()
        self.assertEqual(code, 0)
        self.assertLess(seconds, 5)

    def test_a_second_sigterm_ends_at_once(self):
        broker = self.stuck()
        broker.process.send_signal(signal.SIGTERM)
        self.assertTrue(eventually(lambda: "Stopping." in broker.log()))
        begin = time.monotonic()
        broker.process.send_signal(signal.SIGTERM)
        self.assertEqual(broker.process.wait(timeout=20), 128 + signal.SIGTERM)
        self.assertLess(time.monotonic() - begin, 2)


class Wire(DaemonTest):
    @classmethod
    def setUpClass(cls):
        cls.scratch_of_class = tempfile.TemporaryDirectory(prefix="kanal-daemon-")
        cls.broker = Kanald(cls.scratch_of_class.name)

    @classmethod
    def tearDownClass(cls):
        code, _ = cls.broker.terminate()
        log = cls.broker.log()
        cls.scratch_of_class.cleanup()
        assert code == 0, log

    def test_answers_leave_in_request_order(self):
        with self.broker.connect() as client:
            client.call(metadata(0, "order"))
            client.send(fetch(1, "order", 300), metadata(2), produce(3, "order", 1), request(18, 99, 4, b"\0\2x\0021\0"),
                        fetch(5, "order", 100), api_versions(6))
            self.assertEqual([client.answer()[0] for _ in range(6)], [1, 2, 3, 4, 5, 6])

    def test_acks_0_sends_nothing_and_blocks_nothing(self):
        with self.broker.connect() as client:
            client.call(metadata(0, "acks"))
            client.send(request(0, 3, 1, struct.pack(">hhii", -1, 0, 1000, 0)), api_versions(2))
            self.assertEqual(client.answer()[0], 2)

    def test_frames_cut_anywhere(self):
        two = api_versions(1) + metadata(2)
        for cut in range(1, len(two)):
            with self.broker.connect() as client:
                client.send(two[:cut])
                time.sleep(0.001)
                client.send(two[cut:])
                self.assertEqual([client.answer()[0], client.answer()[0]], [1, 2])

    def test_what_is_no_request_closes_without_a_byte_and_is_logged(self):
        cases = {
            "negative size": b"\xff\xff\xff\xff", "2 GiB": b"\x7f\xff\xff\xff", "empty": b"\0\0\0\0",
            "no client id": frame(struct.pack(">hhi", 18, 0, 9)),
            "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "tls": bytes.fromhex("16030100a5010000a10303") + b"\0" * 40,
            "unknown key": request(99, 0, 1), "negative key": request(-2, 0, 1),
            "produce 2": request(0, 2, 1, b"\0" * 10), "fetch 19": request(1, 19, 1, b"\0" * 10),
            "metadata 32767": request(3, 32767, 1), "truncated": request(3, 1, 1, b"\0\0\0\1\0\5ab"),
            "count": request(3, 1, 1, b"\x7f\xff\xff\xff"), "client id": frame(struct.pack(">hhih", 18, 0, 5, 50) + b"abc"),
        }
        for number, (name, sent) in enumerate(cases.items()):
            if number % 7 == 0:
                time.sleep(1.1)  # only so many lines a second
            with self.subTest(name), self.broker.connect() as client:
                client.send(sent)
                self.assertTrue(client.closed())
        log = self.broker.log()
        for words in ("HTTP", "TLS", "api=Produce version=2", "api=Fetch version=19", "key 99", "at byte"):
            self.assertIn(words, log)
        with self.broker.connect() as client:
            self.assertEqual(client.call(api_versions(1))[0], 1)

    def test_a_thousand_bad_requests_are_few_lines_and_no_errors(self):
        for _ in range(1000):
            with self.broker.connect() as client:
                client.send(request(3, 99, 1))
                self.assertTrue(client.closed())
        lines = [line for line in self.broker.log().splitlines() if "version=99" in line]
        self.assertGreater(len(lines), 0)
        self.assertLess(len(lines), 1000)
        self.assertNotIn(" error ", self.broker.log())

    def test_unknown_api_versions_are_answered_in_version_0(self):
        for version in (6, 99, -1):
            with self.broker.connect() as client:
                correlation_id, body = client.call(request(18, version, 7, b"\0\2x\0021\0" if version > 0 else b""))
                self.assertEqual((correlation_id, body[:8]), (7, struct.pack(">hihh"[:3], 35, 1) + struct.pack(">h", 18)))
                self.assertEqual(client.call(api_versions(8))[0], 8)

    def test_a_half_closed_client_gets_its_answers(self):
        with self.broker.connect() as client:
            client.call(metadata(0, "half"))
            client.send(fetch(1, "half", 60_000), api_versions(2))
            client.socket.shutdown(socket.SHUT_WR)
            self.assertEqual([client.answer()[0], client.answer()[0]], [1, 2])
            self.assertTrue(client.closed())

    def test_a_slow_reader_costs_only_itself(self):
        before = self.broker.resident_kib()
        with self.broker.connect() as slow:
            slow.socket.settimeout(0.3)
            with contextlib.suppress(TimeoutError):
                for _ in range(100_000):
                    slow.send(api_versions(1) * 100)
            with self.broker.connect() as other:
                begin = time.monotonic()
                self.assertEqual(other.call(api_versions(2))[0], 2)
                self.assertLess(time.monotonic() - begin, 2)
            self.assertLess(self.broker.resident_kib() - before, 200_000)

    def test_connections_leave_nothing_behind(self):
        def cycle(count):
            for i in range(count):
                client = self.broker.connect()
                if i % 3 == 1:
                    client.send(metadata(1, "left")[:9])
                if i % 3 == 2:
                    client.send(fetch(1, "left", 60_000))
                client.reset() if i % 2 else client.socket.close()
        cycle(300)
        time.sleep(0.3)
        descriptors, threads, resident = self.broker.descriptors(), self.broker.threads(), self.broker.resident_kib()
        cycle(CYCLES)
        self.assertTrue(eventually(lambda: self.broker.descriptors() <= descriptors), self.broker.descriptors())
        self.assertEqual(self.broker.threads(), threads)
        self.assertLess(self.broker.resident_kib() - resident, 30_000 + CYCLES)


class Limits(DaemonTest):
    def test_connections_per_address(self):
        broker = self.start("--set", "kafka.max.connections.per.ip=3")
        clients = [broker.connect() for _ in range(3)]
        for client in clients:
            client.call(api_versions(1))
        with broker.connect() as fourth:
            self.assertTrue(fourth.closed())
        self.assertIn("limit=3", broker.log())
        clients.pop().socket.close()

        def admitted():
            with broker.connect() as client, contextlib.suppress(EOFError, ConnectionError):
                return client.call(api_versions(2))[0] == 2
        self.assertTrue(eventually(admitted))
        for client in clients:
            client.socket.close()

    def test_overrides_per_address(self):
        broker = self.start("--set", "kafka.max.connections.per.ip=0", "--set",
                            "kafka.max.connections.per.ip.overrides=127.0.0.1:2")
        with broker.connect() as one, broker.connect() as two:
            one.call(api_versions(1))
            two.call(api_versions(1))
            with broker.connect() as three:
                self.assertTrue(three.closed())

    def test_connections_per_address_change_while_running(self):
        broker = self.start("--set", "node.id=7", "--set", "kafka.max.connections.per.ip=3")
        clients = [broker.connect() for _ in range(3)]
        numbers = itertools.count(10)

        def alter(name, value):
            number = next(numbers)
            answered, body = clients[0].call(alter_broker(number, "7", name, value))
            self.assertEqual((answered, struct.unpack_from(">h", body, 8)[0]), (number, 0), body)

        def another_is_admitted():
            with broker.connect() as client, contextlib.suppress(EOFError, ConnectionError):
                return client.call(api_versions(2))[0] == 2
            return False
        for client in clients:
            client.call(api_versions(1))
        self.assertFalse(another_is_admitted())
        alter("max.connections.per.ip", "4")
        self.assertTrue(eventually(another_is_admitted))
        alter("max.connections.per.ip", "1")
        self.assertFalse(another_is_admitted())
        for client in clients:  # those that are there stay
            self.assertEqual(client.call(api_versions(3))[0], 3)
        alter("max.connections.per.ip.overrides", "127.0.0.1:9")
        self.assertTrue(eventually(another_is_admitted))
        alter("max.connections.per.ip.overrides", None)
        self.assertFalse(another_is_admitted())
        alter("max.connections.per.ip", None)  # the start-up file's again
        clients.pop().socket.close()
        self.assertTrue(eventually(another_is_admitted))
        for client in clients:
            client.socket.close()

    def test_over_max_connections_clients_wait(self):
        broker = self.start("--set", "kafka.max.connections=3")
        clients = [broker.connect() for _ in range(3)]
        for client in clients:
            client.call(api_versions(1))
        with broker.connect() as fourth:
            fourth.send(api_versions(4))
            fourth.socket.settimeout(0.3)
            with self.assertRaises(TimeoutError):
                fourth.answer()
            fourth.socket.settimeout(10)
            clients.pop().socket.close()
            self.assertEqual(fourth.answer()[0], 4)
        for client in clients:
            client.socket.close()

    def test_idle_connections_are_closed_with_a_fin_but_not_waiting_ones(self):
        broker = self.start("--set", "kafka.connections.max.idle.ms=700")
        with broker.connect() as idle, broker.connect() as waiting:
            waiting.call(metadata(1, "t"))
            waiting.send(fetch(2, "t", 2_000))
            self.assertEqual(idle.socket.recv(1), b"")
            self.assertEqual(waiting.answer()[0], 2)

    def test_a_frame_over_the_limit_is_refused(self):
        broker = self.start("--set", "kafka.socket.request.max.bytes=1000")
        with broker.connect() as client:
            client.send(request(3, 1, 1, b"\0" * 985))
            self.assertEqual(client.answer()[0], 1)
            client.send(struct.pack(">i", 1001))
            self.assertTrue(client.closed())

    def test_without_descriptors_accepting_pauses_and_does_not_spin(self):
        broker = self.start()
        with contextlib.ExitStack() as stack:
            first = stack.enter_context(broker.connect())
            self.assertEqual(first.call(api_versions(1))[0], 1)
            limit = resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (broker.descriptors() + 4, limit[1]))
            others = [stack.enter_context(broker.connect()) for _ in range(20)]
            for client in others:
                client.send(api_versions(2))
            self.assertTrue(eventually(lambda: "Cannot accept a connection" in broker.log()))
            before = broker.cpu_seconds()
            time.sleep(0.5)
            self.assertLess(broker.cpu_seconds() - before, 0.25)
            self.assertEqual(first.call(api_versions(3))[0], 3)
            resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, limit)
            self.assertEqual([client.answer()[0] for client in others], [2] * 20)
        self.assertEqual(broker.terminate()[0], 0)

    def test_two_thousand_connections_in_a_moment(self):
        broker = self.start()
        with contextlib.ExitStack() as stack:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            clients = [stack.enter_context(broker.connect()) for _ in range(2000)]
            for i, client in enumerate(clients):
                client.send(api_versions(i))
            self.assertEqual([client.answer()[0] for client in clients], list(range(2000)))
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


if __name__ == "__main__":
    KANALD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
