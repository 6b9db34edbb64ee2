"""Kafka's messages by their published definitions: dicts to bytes and back, for any version.

The definitions are those of tests/golden/kafka-4.4/messages. Field names are theirs; uuids are 16
bytes, absent fields take their default, fields outside the version are left out. Decoding a request
is as lenient as Kafka is (Message.read), decoding an answer is not (Message.read_all).
"""
import json
import pathlib
import struct

FACTS = pathlib.Path(__file__).resolve().parents[2] / "golden/kafka-4.4"
NO_ID = bytes(16)
NUMBERS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "uint16": ">H",
           "float64": ">d"}
EVER = 32767


class Malformed(Exception):
    """Bytes that are no such message."""


def version_range(text):
    if text in (None, "none"):
        return range(0)
    low, dash, high = text.rstrip("+").partition("-")
    if text.endswith("+"):
        return range(int(low), EVER + 1)
    return range(int(low), int(high if dash else low) + 1)


def unsigned_varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def varint(number):
    return unsigned_varint((number << 1 ^ number >> 63) & 0xFFFFFFFFFFFFFFFF)


class Cursor:
    def __init__(self, data, lenient=False):
        self.data = data
        self.position = 0
        self.lenient = lenient

    def take(self, count):
        end = self.position + count
        if count < 0 or end > len(self.data):
            raise Malformed(f"{count} bytes wanted at {self.position} of {len(self.data)}")
        piece = self.data[self.position:end]
        self.position = end
        return piece

    def number(self, kind):
        return struct.unpack(NUMBERS[kind], self.take(struct.calcsize(NUMBERS[kind])))[0]

    def unsigned_varint(self):
        number = 0
        for shift in range(0, 35, 7):
            octet = self.take(1)[0]
            number |= (octet & 127) << shift
            if octet < 128:
                return number
        raise Malformed("varint of more than 5 bytes")

    def left(self):
        return len(self.data) - self.position


class Field:
    def __init__(self, definition, shared):
        self.name = definition["name"]
        kind = definition["type"]
        self.is_array = kind.startswith("[]")
        self.kind = kind.removeprefix("[]")
        self.versions = version_range(definition.get("versions", "0+"))
        self.nullable = version_range(definition.get("nullableVersions"))
        self.tagged = version_range(definition.get("taggedVersions"))
        self.tag = definition.get("tag")
        self.given_default = definition.get("default", "")
        fixed = definition.get("flexibleVersions")
        self.flexible = version_range(fixed) if fixed else None
        self.fields = None
        if self.kind[0].isupper():
            inner = definition.get("fields") or shared[self.kind]
            self.fields = [Field(each, shared) for each in inner]

    def default(self, version):
        given = self.given_default
        if given in ("null", None) and version in self.nullable:
            return None
        if self.is_array:
            return []
        if self.fields is not None:
            return {each.name: each.default(version) for each in self.fields
                    if version in each.versions}
        if self.kind == "bool":
            return str(given).lower() == "true"
        if self.kind in NUMBERS:
            return int(str(given), 0) if given not in ("", None) else 0
        plain = {"string": "", "uuid": NO_ID, "bytes": b"", "records": b""}
        return given if self.kind == "string" and given else plain[self.kind]

    # writing

    def write(self, value, version, flexible, out):
        flexible = flexible if self.flexible is None else version in self.flexible
        if self.is_array:
            write_length(None if value is None else len(value), flexible, ">i", out)
            for each in value or ():
                self.write_one(each, version, flexible, out)
        elif self.fields is not None and version in self.nullable:
            out += b"\xff" if value is None else b"\x01"
            if value is not None:
                self.write_one(value, version, flexible, out)
        else:
            self.write_one(value, version, flexible, out)

    def write_one(self, value, version, flexible, out):
        if self.fields is not None:
            write_fields(self.fields, value, version, flexible, out)
        elif self.kind in NUMBERS:
            out += struct.pack(NUMBERS[self.kind], value)
        elif self.kind == "bool":
            out.append(int(value))
        elif self.kind == "uuid":
            out += value
        else:
            octets = value.encode(errors="surrogateescape") if isinstance(value, str) else value
            write_length(None if value is None else len(octets), flexible,
                         ">h" if self.kind == "string" else ">i", out)
            out += octets or b""

    # reading

    def read(self, cursor, version, flexible):
        flexible = flexible if self.flexible is None else version in self.flexible
        if self.is_array:
            count = read_length(cursor, flexible, ">i")
            if count < 0:
                return self.read_null(cursor, version)
            if count > cursor.left():
                raise Malformed(f"{self.name}: {count} elements in {cursor.left()} bytes")
            return [self.read_one(cursor, version, flexible) for _ in range(count)]
        if self.fields is not None and version in self.nullable:
            if cursor.number("int8") < 0:
                return None
        return self.read_one(cursor, version, flexible)

    def read_null(self, cursor, version):
        if not cursor.lenient and version not in self.nullable and self.kind != "records":
            raise Malformed(f"{self.name}: null")
        return None

    def read_one(self, cursor, version, flexible):
        if self.fields is not None:
            return read_fields(self.fields, cursor, version, flexible)
        if self.kind in NUMBERS:
            return cursor.number(self.kind)
        if self.kind == "bool":
            return cursor.take(1) != b"\0"
        if self.kind == "uuid":
            return bytes(cursor.take(16))
        length = read_length(cursor, flexible, ">h" if self.kind == "string" else ">i")
        if length < 0:
            return self.read_null(cursor, version)
        octets = bytes(cursor.take(length))
        if self.kind != "string":
            return octets
        return octets.decode(errors="surrogateescape")


def write_length(length, flexible, layout, out):
    if flexible:
        out += unsigned_varint(0 if length is None else length + 1)
    else:
        out += struct.pack(layout, -1 if length is None else length)


def read_length(cursor, flexible, layout):
    if flexible:
        return cursor.unsigned_varint() - 1
    return cursor.number("int16" if layout == ">h" else "int32")


def write_fields(fields, values, version, flexible, out):
    unknown = set(values) - {field.name for field in fields}
    if unknown:
        raise KeyError(f"no such field: {unknown}")
    tagged = {}
    for field in fields:
        if version not in field.versions:
            continue
        value = values.get(field.name, field.default(version))
        if version in field.tagged:
            if value != field.default(version):
                tagged[field.tag] = bytearray()
                field.write(value, version, flexible, tagged[field.tag])
        else:
            field.write(value, version, flexible, out)
    if flexible:
        out += unsigned_varint(len(tagged))
        for tag in sorted(tagged):
            out += unsigned_varint(tag) + unsigned_varint(len(tagged[tag])) + tagged[tag]


def read_fields(fields, cursor, version, flexible):
    values, tagged = {}, {}
    for field in fields:
        if version not in field.versions:
            continue
        if version in field.tagged:
            tagged[field.tag] = field
            values[field.name] = field.default(version)
        else:
            values[field.name] = field.read(cursor, version, flexible)
    if flexible:
        for _ in range(cursor.unsigned_varint()):
            tag, size = cursor.unsigned_varint(), cursor.unsigned_varint()
            end = cursor.position + size
            if tag in tagged:
                values[tagged[tag].name] = tagged[tag].read(cursor, version, flexible)
            else:
                cursor.take(size)
            if cursor.position != end and not cursor.lenient:
                raise Malformed(f"tag {tag} is {size} bytes, not {cursor.position - end + size}")
    return values


class Message:
    def __init__(self, path):
        definition = json.loads(path.read_text())
        shared = {each["name"]: each["fields"] for each in definition.get("commonStructs", [])}
        self.key = definition.get("apiKey")
        self.name = definition["name"]
        self.flexible = version_range(definition.get("flexibleVersions"))
        self.versions = version_range(definition["validVersions"])
        self.fields = [Field(each, shared) for each in definition["fields"]]

    def write(self, values, version):
        out = bytearray()
        write_fields(self.fields, values, version, version in self.flexible, out)
        return bytes(out)

    def read(self, data, version):
        """As Kafka reads a request: bytes behind it, odd UTF-8 and odd nulls pass."""
        cursor = Cursor(data, lenient=True)
        return read_fields(self.fields, cursor, version, version in self.flexible)

    def read_all(self, data, version):
        cursor = Cursor(data)
        values = read_fields(self.fields, cursor, version, version in self.flexible)
        if cursor.left():
            raise Malformed(f"{self.name} v{version}: {cursor.left()} bytes behind it")
        return values


def load(kind):
    paths = sorted((FACTS / "messages").glob(f"*{kind}.json"))
    return {path.name.removesuffix(f"{kind}.json"): Message(path) for path in paths}


REQUESTS, RESPONSES = load("Request"), load("Response")
ERRORS = {int(line.split("\t")[0]): line.split("\t")[1]
          for line in (FACTS / "errors.tsv").read_text().splitlines()[1:]}


def request_bytes(api, version, correlation_id, body, client_id="conformance"):
    """One request without its size; `body` is a dict or the bytes themselves."""
    message = REQUESTS[api]
    if isinstance(body, dict):
        body = message.write(body, version)
    return request_head(message.key, version, correlation_id, client_id,
                        version in message.flexible) + body


def request_head(key, version, correlation_id, client_id, flexible=False):
    head = struct.pack(">hhi", key, version, correlation_id)
    octets = None if client_id is None else client_id.encode(errors="surrogateescape")
    head += struct.pack(">h", -1 if octets is None else len(octets)) + (octets or b"")
    return head + (b"\0" if flexible else b"")


def frame(octets):
    return struct.pack(">i", len(octets)) + octets


def read_answer(api, version, octets):
    """The body of an answer that came without its size; its header has no tags but where it may."""
    message = RESPONSES[api]
    head = 5 if version in message.flexible and api != "ApiVersions" else 4
    if head == 5 and octets[4:5] != b"\0":
        raise Malformed("tags in the answer's header")
    return message.read_all(octets[head:], version)
