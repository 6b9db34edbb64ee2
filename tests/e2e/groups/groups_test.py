#!/usr/bin/env python3
"""Groups by raw requests, each member on a connection of its own. Standard library only.

    groups_test.py KANALD [-k SUBSTRING]

A client library checks its session itself and would join anew after a stall; these members wait, so
what is seen is what the broker makes of it.
"""
import pathlib
import signal
import socket
import struct
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "lib"))
from broker import Kanald  # noqa: E402

KANALD = ""
SETTINGS = ["group.initial.rebalance.delay.ms=0", "group.min.session.timeout.ms=100"]
PATIENCE_S = 60
NONE, ILLEGAL_GENERATION, UNKNOWN_MEMBER, REBALANCE = 0, 22, 25, 27


def text(value):
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def blob(data):
    return struct.pack(">i", len(data)) + data


class Body:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, form):
        values = struct.unpack_from(">" + form, self.data, self.at)
        self.at += struct.calcsize(">" + form)
        return values[0]

    def text(self):
        size = self.take("h")
        self.at += max(size, 0)
        return self.data[self.at - size:self.at].decode() if size >= 0 else None

    def blob(self):
        size = self.take("i")
        self.at += size
        return self.data[self.at - size:self.at]


class Member:
    """A member of a group, with the old versions of the requests: JoinGroup 2, SyncGroup 1, Heartbeat 1."""

    def __init__(self, test, address, group, session_ms):
        self.group, self.session_ms = group, session_ms
        self.id, self.generation, self.leader = "", -1, ""
        self.assignment = None
        self.correlation = 0
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        test.addCleanup(self.socket.close)

    def send(self, key, version, body):
        self.correlation += 1
        frame = struct.pack(">hhi", key, version, self.correlation) + text("t") + body
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self):
        size = struct.unpack(">i", self.read(4))[0]
        body = Body(self.read(size))
        body.take("i")
        return body

    def read(self, size):
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError("the broker closed the connection")
            data += piece
        return data

    def send_join(self):
        self.send(11, 2, text(self.group) + struct.pack(">ii", self.session_ms, 60000) + text(self.id)
                  + text("consumer") + struct.pack(">i", 1) + text("range") + blob(b""))

    def receive_join(self):
        body = self.receive()
        body.take("i")
        error = body.take("h")
        self.generation = body.take("i")
        body.text()
        self.leader, self.id = body.text(), body.text()
        self.members = [(body.text(), body.blob())[0] for _ in range(body.take("i"))]
        return error

    def send_sync(self):
        mine = self.members if self.leader == self.id else []
        self.send(14, 1, text(self.group) + struct.pack(">i", self.generation) + text(self.id)
                  + struct.pack(">i", len(mine)) + b"".join(text(m) + blob(m.encode()) for m in mine))

    def receive_sync(self):
        body = self.receive()
        body.take("i")
        error = body.take("h")
        self.assignment = body.blob()
        return error

    def send_heartbeat(self):
        self.send(12, 1, text(self.group) + struct.pack(">i", self.generation) + text(self.id))

    def receive_heartbeat(self):
        body = self.receive()
        body.take("i")
        return body.take("h")

    def heartbeat(self):
        self.send_heartbeat()
        return self.receive_heartbeat()


def rejoin(test, members, new):
    """`new` joins; the others see the rebalance and join again: one more generation of all."""
    new.send_join()
    for member in members:
        while member.heartbeat() != REBALANCE:
            time.sleep(0.005)
        member.send_join()
    for member in [new, *members]:
        test.assertEqual(member.receive_join(), NONE)
        test.assertEqual(member.generation, new.generation)


def stable_group(test, address, group, count, session_ms):
    """`count` members in one generation, each with its assignment."""
    members = []
    for _ in range(count):
        new = Member(test, address, group, session_ms)
        rejoin(test, members, new)
        members.append(new)
    for member in members:
        member.send_sync()
    for member in members:
        test.assertEqual(member.receive_sync(), NONE)
        test.assertEqual(member.assignment, member.id.encode())
    return members


class Groups(unittest.TestCase):
    def test_a_stopped_broker_expires_nobody_who_stayed_connected(self):
        session_ms = 1500
        with Kanald(KANALD, SETTINGS) as broker:
            members = stable_group(self, broker.address, "g", 3, session_ms)
            generation = members[0].generation
            broker.process.send_signal(signal.SIGSTOP)
            # One member's heartbeats lie in its socket while the broker stands, the others sleep too.
            for _ in range(3):
                members[0].send_heartbeat()
            time.sleep(3 * session_ms / 1000)
            broker.process.send_signal(signal.SIGCONT)
            for _ in range(3):
                self.assertEqual(members[0].receive_heartbeat(), NONE)
            for member in members:
                self.assertEqual(member.heartbeat(), NONE)
                self.assertEqual(member.generation, generation)
            # And it goes on: who falls silent now is expired.
            silent = members[2]
            seen = NONE
            deadline = time.monotonic() + PATIENCE_S
            while seen == NONE and time.monotonic() < deadline:
                seen = members[0].heartbeat()
                members[1].heartbeat()
                time.sleep(0.05)
            self.assertEqual(seen, REBALANCE)
            self.assertEqual(silent.heartbeat(), UNKNOWN_MEMBER)

    def test_members_go_on_with_id_and_generation_after_kill_9(self):
        with Kanald(KANALD, SETTINGS) as broker:
            members = stable_group(self, broker.address, "g", 2, 30000)
            broker.kill9()
            broker.start()
            for member in members:
                again = Member(self, broker.address, "g", 30000)
                again.id, again.generation = member.id, member.generation
                self.assertEqual(again.heartbeat(), NONE)
                again.send_sync()
                self.assertEqual(again.receive_sync(), NONE)
                self.assertEqual(again.assignment, member.id.encode())

    def test_a_parked_join_is_answered_when_the_broker_stops(self):
        with Kanald(KANALD, ["group.initial.rebalance.delay.ms=60000"]) as broker:
            member = Member(self, broker.address, "g", 30000)
            member.send_join()
            # Parked once a later request of the connection is taken in: a second connection sees the group.
            other = Member(self, broker.address, "g", 30000)
            deadline = time.monotonic() + PATIENCE_S
            while time.monotonic() < deadline:
                other.send(16, 0, b"")
                body = other.receive()
                body.take("h")
                if body.take("i") == 1:
                    break
            broker.process.send_signal(signal.SIGTERM)
            self.assertEqual(member.receive_join(), 15)
            self.assertEqual(broker.process.wait(PATIENCE_S), 0)

    def test_a_request_behind_a_parked_one_is_taken_in(self):
        with Kanald(KANALD, SETTINGS) as broker:
            members = stable_group(self, broker.address, "g", 2, 30000)
            late = Member(self, broker.address, "g", 30000)
            late.send_join()  # parked: the others have not come
            late.id = members[0].id
            late.generation = members[0].generation
            late.send(13, 1, text("g") + text(members[1].id))  # it leaves, by the connection that waits
            while members[1].heartbeat() != UNKNOWN_MEMBER:
                time.sleep(0.005)
            members[0].send_join()
            self.assertEqual(members[0].receive_join(), NONE)
            self.assertEqual(late.receive_join(), NONE)


if __name__ == "__main__":
    KANALD = sys.argv.pop(1)
    unittest.main(verbosity=2)
