#!/usr/bin/env python3
"""Hostile input against the live daemon: it keeps serving, and keeps no memory, files or threads.

    hostile_test.py KANALD [-k SUBSTRING]      KANAL_TEST_FRAMES=100000 for the long form

Standard library only. Inputs are made from a seed, the same in each run. Memory is measured after a
first part of the same input, so that what is taken once does not count.
"""
import contextlib
import os
import pathlib
import random
import resource
import socket
import struct
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib"), str(HERE.parent / "conformance")]
sys.dont_write_bytecode = True
import bombs  # noqa: E402
import broker as brokers  # noqa: E402
import wire  # noqa: E402
from batch import batch, crc32c  # noqa: E402
from scenarios import bodies  # noqa: E402
from world import World, fetch_body, produce_body  # noqa: E402

FRAMES = int(os.environ.get("KANAL_TEST_FRAMES", "10000"))
KANALD = None
MIB = 1 << 20


class Kanald(brokers.Kanald):
    """With what the kernel says about it."""

    def host(self):
        name, _, port = self.address.rpartition(":")
        return name, int(port)

    def status(self, field):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith(field + ":"):
                return int(line.split()[1])
        raise KeyError(field)

    def resident(self):
        return self.status("VmRSS") * 1024

    def threads(self):
        return self.status("Threads")

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def is_sanitized(self):
        """ASan reserves terabytes of addresses; its quarantine and redzones are not the daemon's."""
        return self.status("VmSize") > 1 << 30

    def is_under_thread_sanitizer(self):
        """A race in RocksDB, though suppressed, makes it read the program's debug information: 60 MiB."""
        return "libtsan" in pathlib.Path(f"/proc/{self.pid}/maps").read_text()

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def eventually(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


class HostileTest(unittest.TestCase):
    def start(self, *settings):
        os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=8:" + os.environ.get("ASAN_OPTIONS", "")
        broker = Kanald(KANALD, settings)
        self.addCleanup(broker.__exit__, None, None, None)
        broker.start()
        return broker

    def world(self, broker, name):
        world = World(broker.host(), name)
        self.addCleanup(world.close)
        return world

    def assert_serves(self, world, topic):
        """A record in and out again."""
        answer = world.ask("Produce", 9, produce_body(topic, batch(b"still here")))
        produced = answer["Responses"][0]["PartitionResponses"][0]
        self.assertEqual(produced["ErrorCode"], 0)
        answer = world.ask("Fetch", 11, fetch_body(topic, produced["BaseOffset"]))
        fetched = answer["Responses"][0]["Partitions"][0]
        self.assertEqual(fetched["ErrorCode"], 0)
        self.assertIn(b"still here", fetched["Records"])

    def assert_stops_well(self, broker):
        self.assertEqual(broker.stop(), 0)
        log = broker.log_file.read_text(errors="replace")
        self.assertNotIn("ERROR: AddressSanitizer", log)
        self.assertNotIn("runtime error", log)
        return log


# 10,000 frames

def valid_requests(world, topic_id):
    """Frames without their size, one for every API and version."""
    requests = []
    for api, message in wire.REQUESTS.items():
        for version in message.versions if message.key is not None else ():
            body = message.write(bodies.template(api, version, world, f"v{version:03}"), version)
            body = body.replace(bodies.TOPIC_ID, topic_id)
            requests.append(wire.request_bytes(api, version, 7, body, "hostile"))
    return requests


COUNTS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80\x00\x00\x00", b"\xff\xff\xff\xfe",
          b"\x00\x10\x00\x00", b"\xff" * 10)
FOREIGN = (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", b"POST /v3/clusters HTTP/1.1\r\n\r\n{}",
           bytes.fromhex("16030100a5010000a10303") + bytes(154), b"SSH-2.0-OpenSSH_9.2\r\n",
           b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x80\0\0\0", b"\r\n\r\n", b"")


def flipped(request, chance):
    out = bytearray(request)
    for _ in range(chance.randrange(1, 9)):
        out[chance.randrange(len(out))] ^= 1 << chance.randrange(8)
    return wire.frame(bytes(out))


def truncated(request, chance):
    return wire.frame(request[:chance.randrange(len(request))])


def cut_short(request, chance):
    """The size says more than ever comes."""
    return wire.frame(request)[:chance.randrange(4, len(request) + 4)]


def wrong_size(request, chance):
    return struct.pack(">i", len(request) + chance.choice((-9, -1, 1, 100, 1 << 20))) + request


def garbage(_, chance):
    return chance.randbytes(chance.randrange(1, 300))


def framed_garbage(_, chance):
    return wire.frame(chance.randbytes(chance.randrange(0, 300)))


def huge_count(request, chance):
    at = chance.randrange(8, len(request))
    return wire.frame(request[:at] + chance.choice(COUNTS) + request[at:])


def unknown_api(request, chance):
    key, version = chance.choice((99, 4, 58, 1000, -1, 32767)), chance.randrange(-3, 30)
    if chance.random() < 0.5:
        return wire.frame(struct.pack(">h", key) + request[2:])
    return wire.frame(request[:2] + struct.pack(">h", version) + request[4:])


def spliced(request, chance):
    at, end = sorted(chance.randrange(len(request)) for _ in range(2))
    return wire.frame(request[:end] + request[at:])


def foreign(_, chance):
    return chance.choice(FOREIGN)


def valid(request, _):
    return wire.frame(request)


MAKERS = (flipped, flipped, truncated, cut_short, wrong_size, garbage, framed_garbage, huge_count,
          unknown_api, spliced, foreign, valid)


class Attacker:
    """Sends frames on connections of its own and leaves them in every way there is."""

    def __init__(self, address, requests, seed):
        self.address = address
        self.requests = requests
        self.chance = random.Random(seed)
        self.open = []
        self.by_maker = {}

    def attack(self, count):
        for _ in range(count):
            maker = self.chance.choice(MAKERS)
            self.by_maker[maker.__name__] = self.by_maker.get(maker.__name__, 0) + 1
            octets = maker(self.chance.choice(self.requests), self.chance)
            self.send(octets)
            if len(self.open) > 100:
                self.leave(self.open.pop(self.chance.randrange(len(self.open))))

    def send(self, octets):
        reused = self.open and self.chance.random() < 0.3
        victim = self.chance.choice(self.open) if reused else socket.create_connection(self.address, 20)
        if not reused:
            self.open.append(victim)
        victim.setblocking(False)
        with contextlib.suppress(OSError):  # it may be closed already
            if self.chance.random() < 0.05:  # a slow drip
                for i in range(min(len(octets), 12)):
                    victim.send(octets[i:i + 1])
                octets = octets[12:]
            victim.send(octets)

    def leave(self, victim):
        with contextlib.suppress(OSError):
            how = self.chance.randrange(4)
            if how == 0:
                victim.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif how == 1:
                victim.shutdown(socket.SHUT_WR)
            elif how == 2:
                victim.recv(1 << 16)
        victim.close()

    def leave_all(self):
        while self.open:
            self.leave(self.open.pop())


class MutatedFrames(HostileTest):
    def test_ten_thousand_mutated_frames_leave_it_serving_and_take_nothing(self):
        broker = self.start("kafka.auto.create.topics.enable=false")
        world = self.world(broker, "hostile")
        healthy, _ = world.topic("healthy")
        targets = self.world(broker, "hostile.targets")  # the requests name its first topic
        targets.full = targets.topic("target", 2)
        attacker = Attacker(broker.host(), valid_requests(targets, targets.full[1]), seed=1)

        def settle():
            attacker.leave_all()
            eventually(lambda: broker.descriptors() <= descriptors, 60)
        descriptors, threads = broker.descriptors() + 8, broker.threads()
        if broker.is_sanitized():  # its shadow of a single large frame stays: all of them once before
            before_all = Attacker(broker.host(), attacker.requests, seed=1)
            before_all.attack(2_000 + FRAMES)
            before_all.leave_all()
        attacker.attack(2_000)
        settle()
        before, cpu = broker.resident(), broker.cpu_seconds()
        for _ in range(10):
            attacker.attack(FRAMES // 10)
            self.assert_serves(world, healthy)
        settle()
        grown = broker.resident() - before
        print(f"{FRAMES} frames: {before // MIB} MiB before, {grown / MIB:+.1f} MiB after, "
              f"{broker.cpu_seconds() - cpu:.1f} s of CPU; {attacker.by_maker}", flush=True)
        if not broker.is_under_thread_sanitizer():
            self.assertLess(grown, 16 * MIB)
        self.assertLessEqual(broker.descriptors(), descriptors)
        self.assertEqual(broker.threads(), threads)
        log = self.assert_stops_well(broker)
        lines = [line for line in log.splitlines() if "Closing a connection" in line]
        self.assertGreater(len(lines), 0)
        self.assertLess(len(lines), FRAMES // 10, "log lines are not limited")
        self.assertNotIn(" error ", log)

    def test_a_client_that_drips_or_sits_on_half_a_frame_costs_others_nothing(self):
        broker = self.start()
        world = self.world(broker, "drip")
        topic, _ = world.topic("t")
        before = broker.resident()
        sizes = (4, 100, 1 << 20, 100 << 20)
        idle = [socket.create_connection(broker.host(), 20) for _ in range(400)]
        for i, client in enumerate(idle):  # announced: 10 GiB
            client.send(struct.pack(">i", sizes[i % 4]) + b"\0\3\0\1"[:i % 5])
        for _ in range(20):
            for client in idle[::20]:
                with contextlib.suppress(OSError):
                    client.send(b"\0")
            self.assert_serves(world, topic)
        self.assertLess(broker.resident() - before, 64 * MIB)
        for client in idle:
            client.close()
        self.assert_stops_well(broker)


class Connections(HostileTest):
    def setUp(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))

    def test_two_thousand_connections_in_a_moment_over_the_limit_of_an_address(self):
        broker = self.start("kafka.max.connections.per.ip=300")
        descriptors = broker.descriptors() + 4
        ping = wire.frame(wire.request_bytes("ApiVersions", 0, 5, {}, "flood"))
        clients = []
        for _ in range(2_000):
            client = socket.create_connection(broker.host(), 20)
            with contextlib.suppress(OSError):
                client.send(ping)
            clients.append(client)
        answered = sum(self.is_answered(client) for client in clients)
        print(f"2000 connections, limit 300: {answered} answered", flush=True)
        self.assertEqual(answered, 300)
        for client in clients:
            client.close()
        self.assertTrue(eventually(lambda: broker.descriptors() <= descriptors))
        world = self.world(broker, "after")
        topic, _ = world.topic("t")
        self.assert_serves(world, topic)
        log = self.assert_stops_well(broker)
        self.assertLess(log.count("limit=300"), 200, "log lines are not limited")

    @staticmethod
    def is_answered(client):
        try:
            return client.recv(4) != b""
        except ConnectionError:
            return False

    def test_connections_opened_and_reset_as_fast_as_they_go(self):
        broker = self.start()
        world = self.world(broker, "reset")
        topic, _ = world.topic("t")
        descriptors = broker.descriptors() + 4
        for i in range(2_000):
            client = socket.create_connection(broker.host(), 20)
            client.send(b"\0\0\0\x20\0\3"[:i % 7])
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        self.assert_serves(world, topic)
        self.assertTrue(eventually(lambda: broker.descriptors() <= descriptors))
        self.assert_stops_well(broker)


class Bombs(HostileTest):
    def produce(self, world, topic, records):
        answer = world.ask("Produce", 9, produce_body(topic, records))
        return answer["Responses"][0]["PartitionResponses"][0]["ErrorCode"]

    def test_batches_that_inflate_past_the_limit_are_refused(self):
        broker = self.start("kafka.max.decompressed.message.bytes=16777216")
        world = self.world(broker, "bombs")
        topic, _ = world.topic("t", max_message_bytes=str(8 * MIB))
        for codec in bombs.CODECS:
            self.assertEqual(self.produce(world, topic, bombs.bomb(codec, MIB)), 0, codec)
        over = [bombs.bomb(codec, size) for codec in bombs.CODECS for size in (17 * MIB, 30 * MIB)]
        sizes = [broker.resident()]
        for _ in range(4):
            for records in over:
                self.assertNotEqual(self.produce(world, topic, records), 0)
            self.assert_serves(world, topic)
            sizes.append(broker.resident())
        first, later = sizes[1] - sizes[0], max(sizes[2:]) - sizes[1]
        print(f"bombs over the limit: {first / MIB:+.1f} MiB, then {later / MIB:+.1f} MiB", flush=True)
        self.assertLess(first, 128 * MIB)
        self.assertLess(later, 64 * MIB)
        self.assert_stops_well(broker)

    def test_batches_within_the_limit_of_2_gib_take_no_such_memory(self):
        broker = self.start()
        world = self.world(broker, "large")
        topic, _ = world.topic("t")
        before = broker.resident()
        large = bombs.bomb("zstd", 400 * MIB)
        self.assertLess(len(large), 20_000)
        code = self.produce(world, topic, large)
        answers = {codec: self.produce(world, topic, bombs.bomb(codec, 18 * MIB))
                   for codec in ("gzip", "snappy", "lz4")}
        grown = broker.resident() - before
        print(f"400 MiB in 13 KiB: code {code}; 18 MiB: {answers}; {grown / MIB:+.1f} MiB", flush=True)
        self.assertEqual(set(answers.values()) | {code}, {0})
        self.assertLess(grown, 96 * MIB)
        self.assert_serves(world, topic)
        self.assert_stops_well(broker)

    def test_lengths_that_lie_are_refused_without_taking_memory_for_them(self):
        broker = self.start()
        world = self.world(broker, "lies")
        topic, _ = world.topic("t")
        before = broker.resident()
        for claimed in (1 << 31, (1 << 32) - 1, 1 << 30, 0, 5):
            records = bombs.bomb("snappy", MIB, claimed=claimed)
            self.assertNotEqual(self.produce(world, topic, records), 0)
        xerial = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
        for chunk in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\5\xff\xff\xff\xff\x0f"):
            lying = batch(b"", attributes=2, records=xerial + chunk + bytes(40))
            self.assertNotEqual(self.produce(world, topic, lying), 0)
        chance = random.Random(4)
        for codec in bombs.CODECS:
            whole = bombs.bomb(codec, 200_000)
            for _ in range(60):
                damaged = bytearray(whole)
                for _ in range(chance.randrange(1, 4)):
                    damaged[chance.randrange(61, len(whole))] = chance.randrange(256)
                self.produce(world, topic, resealed(damaged))
        grown = broker.resident() - before
        print(f"lengths that lie: {grown / MIB:+.1f} MiB", flush=True)
        self.assertLess(grown, 96 * MIB)
        self.assert_serves(world, topic)
        self.assert_stops_well(broker)


def resealed(octets):
    """With the checksum that its bytes have now."""
    return bytes(octets[:17]) + struct.pack(">I", crc32c(octets[21:])) + bytes(octets[21:])


class Sessions(HostileTest):
    def test_a_thousand_sessions_of_one_client_do_not_fail_others(self):
        broker = self.start("kafka.max.incremental.fetch.session.cache.slots=200")
        world = self.world(broker, "sessions")
        topic, _ = world.topic("t")
        self.assert_serves(world, topic)

        def fetch(session, epoch, offset=0, connection=None):
            body = fetch_body(topic, offset, SessionId=session, SessionEpoch=epoch)
            if session and epoch > 0:
                body["Topics"] = []
            return world.ask("Fetch", 11, body, connection)
        mine = fetch(0, 0)["SessionId"]
        self.assertGreater(mine, 0)
        greedy = world.connect("greedy")
        given = [fetch(0, 0, connection=greedy)["SessionId"] for _ in range(1_000)]
        print(f"1000 sessions asked for: {sum(session > 0 for session in given)} given", flush=True)
        self.assertLess(sum(session > 0 for session in given[200:]), 200)
        answer = fetch(mine, 1)
        self.assertEqual((answer["ErrorCode"], answer["SessionId"]), (0, mine))
        late = world.connect("late")
        answer = fetch(0, 0, connection=late)  # with or without a session: served whole
        self.assertEqual(answer["ErrorCode"], 0)
        self.assertIn(b"still here", answer["Responses"][0]["Partitions"][0]["Records"])
        self.assert_serves(world, topic)
        self.assert_stops_well(broker)

    def test_fetches_parked_for_a_day_end_with_their_connection(self):
        broker = self.start()
        world = self.world(broker, "parked")
        topic, _ = world.topic("t")
        descriptors = broker.descriptors() + 4
        parked = [world.connect() for _ in range(500)]
        for connection in parked:
            connection.send("Fetch", 11, fetch_body(topic, MaxWaitMs=86_400_000, MinBytes=1 << 30))
        cpu = broker.cpu_seconds()
        self.assert_serves(world, topic)
        for connection in parked:
            connection.close()
        self.assertTrue(eventually(lambda: broker.descriptors() <= descriptors))
        self.assertLess(broker.cpu_seconds() - cpu, 10)
        self.assert_stops_well(broker)


if __name__ == "__main__":
    KANALD = os.path.abspath(sys.argv.pop(1))
    unittest.main()
