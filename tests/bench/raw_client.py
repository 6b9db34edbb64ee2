"""The few requests that figures.py needs, as raw frames over blocking sockets (standard library only)."""
import socket
import struct


def text(value):
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def connect(address):
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=120)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def send(connection, key, version, body, correlation=1):
    frame = struct.pack(">hhi", key, version, correlation) + text("figures") + body
    connection.sendall(struct.pack(">i", len(frame)) + frame)


def receive(connection):
    def exactly(count):
        data = b""
        while len(data) < count:
            part = connection.recv(count - len(data))
            if not part:
                raise ConnectionError("the broker closed the connection")
            data += part
        return data
    return exactly(struct.unpack(">i", exactly(4))[0])[4:]


def api_versions(connection):
    send(connection, 18, 0, b"")
    return receive(connection)


def create_topics(connection, names, partitions, configs=None):
    """CreateTopics v2; the error codes of the answer that are not NONE."""
    pairs = b"".join(text(key) + text(str(value)) for key, value in (configs or {}).items())
    body = struct.pack(">i", len(names))
    for name in names:
        body += text(name) + struct.pack(">ihii", partitions, 1, 0, len(configs or {})) + pairs
    send(connection, 19, 2, body + struct.pack(">i?", 60000, False))
    answer = receive(connection)
    (count,), at, errors = struct.unpack_from(">i", answer, 4), 8, []
    for _ in range(count):
        (length,) = struct.unpack_from(">h", answer, at)
        (code, message) = struct.unpack_from(">hh", answer, at + 2 + length)
        at += 2 + length + 4 + max(message, 0)
        errors += [code] if code else []
    return errors


def send_fetch(connection, topic, offset, max_wait_ms):
    """Fetch v4 of partition 0 with min_bytes 1: parks at the end of the log."""
    body = struct.pack(">iiiib", -1, max_wait_ms, 1, 1 << 20, 0)
    body += struct.pack(">i", 1) + text(topic) + struct.pack(">iiqi", 1, 0, offset, 1 << 20)
    send(connection, 1, 4, body)
