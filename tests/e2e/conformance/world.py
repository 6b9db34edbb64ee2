"""What a scenario sees of a broker: connections, named topics, and the list of its steps.

A step is [label, verdict, body]: what came back for one request. Verdicts: "answered", "nothing"
(no answer, and later requests are answered), "closed", "silent" (neither an answer nor a close).
Bodies are decoded and normalised: what may differ from run to run (ids, ports, clock times, message
texts) becomes a name, lists whose order Kafka does not keep are sorted.
"""
import json
import re
import socket
import struct
import time

import batch
import wire

UNSERVED = "no such version"  # read_as of a request that nobody answers
SILENCE_S = 20  # far beyond what a busy machine needs; recordings of Kafka's hangs take it shorter
CLOCK = 1_750_000_000_000  # times from here on are the broker's clock, those before are ours

ANY = {"Host", "Port", "ClusterId", "Rack", "ThrottleTimeMs", "Documentation",
       "FinalizedFeaturesEpoch", "ClientHost", "LogDir", "TotalBytes", "UsableBytes",
       "ReplicaDirectoryId"}
TEXTS = {"ErrorMessage", "BatchIndexErrorMessage"}
TIMES = {"LogAppendTimeMs", "Timestamp", "FirstTimestamp", "MaxTimestamp", "LastTimestamp",
         "LastFetchTimestamp", "LastCaughtUpTimestamp", "TransactionStartTimeMs"}
MEMBERS = {"MemberId", "Leader"}  # those that a broker gave end in a random uuid
UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ORDERED_APIS = {"Fetch", "OffsetForLeaderEpoch", "FindCoordinator", "DescribeTopicPartitions",
                "DescribeConfigs", "LeaveGroup"}
# Lists of all that a broker has: only what the scenario itself made is compared.
OWN = {"ListGroups": ("Groups", "GroupId"), "ListConfigResources": ("ConfigResources", "ResourceName"),
       "ElectLeaders": ("ReplicaElectionResults", "Topic"),
       "ListPartitionReassignments": ("Topics", "Name"),
       "ListTransactions": ("TransactionStates", "TransactionalId")}


class Closed(Exception):
    pass


class Silent(Exception):
    pass


class NotServed(Exception):
    """The broker does not list the API that a scenario asks for."""


class Connection:
    def __init__(self, address, client_id="conformance"):
        self.address = address
        self.client_id = client_id
        self.socket = None
        self.received = b""
        self.correlation_id = 0
        self.broken = False  # a request failed to leave: what came before may still be read

    def open(self):
        if self.socket is None:
            self.socket = socket.create_connection(self.address, timeout=SILENCE_S)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.received = b""

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def write(self, octets):
        self.open()
        try:
            self.socket.sendall(octets)
        except OSError:
            pass  # the read that follows tells

    def send(self, api, version, body, client_id=0):
        """The correlation id of the request sent."""
        self.correlation_id += 1
        name = self.client_id if client_id == 0 else client_id
        octets = wire.request_bytes(api, version, self.correlation_id, body, name)
        self.write(wire.frame(octets))
        return self.correlation_id

    def read(self, count, deadline):
        while len(self.received) < count:
            self.socket.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                more = self.socket.recv(1 << 18)
            except TimeoutError:
                raise Silent() from None
            except OSError:
                more = b""
            if not more:
                self.close()
                raise Closed()
            self.received += more
        taken, self.received = self.received[:count], self.received[count:]
        return taken

    def read_frame(self, silence=SILENCE_S):
        if self.socket is None:
            raise Closed()
        deadline = time.monotonic() + silence
        size = struct.unpack(">i", self.read(4, deadline))[0]
        return self.read(size, deadline)


class Names:
    """Run-dependent values and what stands for them."""

    def __init__(self):
        self.topics = {wire.NO_ID: "zero"}
        self.numbers = {}

    def topic(self, octets):
        return self.topics.get(octets) or f"id {octets.hex()}"

    def learn(self, octets, name):
        if octets != wire.NO_ID:
            self.topics[octets] = f"id of {name}"

    def learn_member(self, member):
        """An id that no step has shown: known from here on, whatever the order of later lists."""
        self.member(member)
        return member

    def member(self, text):
        return UUID.sub(lambda found: self.number("member", found[0]), text)

    def number(self, kind, value):
        seen = self.numbers.setdefault(kind, {})
        return seen.setdefault(value, f"{kind} {len(seen) + 1}")


class World:
    def __init__(self, address, scenario, silence=SILENCE_S, served=None, pause=0):
        self.address = address
        self.scenario = scenario
        self.silence = silence
        self.served = served  # names of APIs, or None for all
        self.pause = pause
        self.names = Names()
        self.steps = []
        self.connections = []
        self.main = self.connect()

    def connect(self, client_id="conformance"):
        self.connections.append(Connection(self.address, client_id))
        return self.connections[-1]

    def close(self):
        for connection in self.connections:
            connection.close()

    def name(self, short):
        return f"{self.scenario}.{short}"

    def note(self, label, verdict, body=None):
        self.steps.append([label, verdict, body])

    def settle(self):
        """Kafka's controller tells its broker of changes a moment later; kanald has no such moment."""
        time.sleep(self.pause)

    # one request and its answer

    def require(self, api):
        if self.served is not None and api not in self.served:
            raise NotServed(api)

    def ask(self, api, version, body, connection=None):
        """The answer as it came, without a step; None if there was none."""
        self.require(api)
        connection = connection or self.main
        connection.send(api, version, body)
        try:
            return wire.read_answer(api, version, connection.read_frame(self.silence))
        except (Closed, Silent):
            connection.close()
            return None

    def call(self, label, api, version, body, connection=None, drop=(), read_as=None, **sending):
        """Sends one request, and one that is always answered behind it; records what came."""
        if read_as != UNSERVED:
            self.require(api)
        connection = connection or self.main
        read_as = version if read_as in (None, UNSERVED) else read_as
        asked = connection.send(api, version, body, **sending)
        behind = connection.send("ApiVersions", 0, {})
        answer = verdict = None
        try:
            octets = connection.read_frame(self.silence)
            if octets[:4] == struct.pack(">i", behind):
                verdict = "nothing"
            elif octets[:4] != struct.pack(">i", asked):
                verdict = "wrong correlation id"
            else:
                answer = wire.read_answer(api, read_as, octets)
                verdict = "answered"
                connection.read_frame(self.silence)
        except Closed:
            verdict = "closed" if answer is None else "answered, then closed"
        except Silent:
            connection.close()
            verdict = "silent" if answer is None else "answered, then silent"
        except wire.Malformed as failure:
            connection.close()
            verdict = f"malformed: {failure}"
        self.note(label, verdict, self.normal(api, answer, drop))
        return answer

    def read_step(self, label, connection, api, version, asked, drop=()):
        """Records the next answer on a connection, which has to be that of request `asked`."""
        answer = None
        try:
            octets = connection.read_frame(self.silence)
            verdict = "answered"
            if octets[:4] != struct.pack(">i", asked):
                verdict = "out of order"
            else:
                answer = wire.read_answer(api, version, octets)
        except Closed:
            verdict = "closed"
        except Silent:
            connection.close()
            verdict = "silent"
        except wire.Malformed as failure:
            verdict = f"malformed: {failure}"
        self.note(label, verdict, self.normal(api, answer, drop))
        return answer

    # set-up, without steps

    def topic(self, short, partitions=1, **configs):
        """Makes a topic and waits until it is served. Its records stay, whatever their times."""
        name = self.name(short)
        configs = {"retention.ms": "-1", **{k.replace("_", "."): v for k, v in configs.items()}}
        body = {"Topics": [{"Name": name, "NumPartitions": partitions, "ReplicationFactor": 1,
                            "Configs": [{"Name": k, "Value": v} for k, v in configs.items()]}],
                "timeoutMs": 10_000}
        answer = self.ask("CreateTopics", 7, body)
        topic = answer["Topics"][0]
        if topic["ErrorCode"] != 0:
            raise RuntimeError(f"{name}: {topic}")
        self.names.learn(topic["TopicId"], name)
        self.wait_for(name, partitions)
        return name, topic["TopicId"]

    def wait_for(self, name, partitions=1, code=0):
        """Until every partition answers ListOffsets with this error code (Kafka takes a moment)."""
        asked = [{"PartitionIndex": i, "Timestamp": -1} for i in range(partitions)]
        body = {"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": asked}]}
        for _ in range(500):
            answer = self.ask("ListOffsets", 4, body)
            if all(each["ErrorCode"] == code for each in answer["Topics"][0]["Partitions"]):
                return
            time.sleep(0.02)
        raise RuntimeError(f"{name} is not served")

    def producer_id(self):
        """One that only this scenario has. (Kafka may not have a block of them yet: ask again.)"""
        for _ in range(200):
            answer = self.ask("InitProducerId", 4, {"TransactionalId": None})
            if answer["ErrorCode"] == 0:
                return answer["ProducerId"]
            time.sleep(0.05)
        raise RuntimeError("no producer id")

    # shorthands that record a step

    def produce(self, label, topic, records, partition=0, acks=-1, version=11, connection=None):
        return self.call(label, "Produce", version, produce_body(topic, records, partition, acks),
                         connection)

    def fetch(self, label, topic, offset=0, partition=0, version=11, **fields):
        return self.call(label, "Fetch", version, fetch_body(topic, offset, partition, **fields))

    def offset_at(self, label, topic, timestamp, version=7):
        body = {"ReplicaId": -1, "Topics": [
            {"Name": topic, "Partitions": [{"PartitionIndex": 0, "Timestamp": timestamp}]}]}
        return self.call(label, "ListOffsets", version, body)

    # normalising

    def normal(self, api, answer, drop=()):
        if answer is None:
            return None
        self.learn(answer)
        if api == "Fetch":
            unknown_last(answer["Responses"])
        if api in OWN:
            self.keep_own(answer, *OWN[api])
        if api == "DescribeLogDirs":
            for each in answer["Results"]:
                self.keep_own(each, "Topics", "Name")
        return self.tidy(answer, "", api not in ORDERED_APIS, set(drop))

    def keep_own(self, answer, items, key):
        answer[items] = [each for each in answer[items]
                         if (each[key] or "").startswith(self.scenario + ".")]

    def learn(self, value):
        """Topic ids that stand beside their names."""
        if isinstance(value, list):
            for each in value:
                self.learn(each)
        elif isinstance(value, dict):
            name = value.get("Name") or value.get("Topic")
            if isinstance(value.get("TopicId"), bytes) and isinstance(name, str):
                self.names.learn(value["TopicId"], name)
            for each in value.values():
                self.learn(each)

    def tidy(self, value, field, sort, drop):
        if isinstance(value, dict):
            return {key: self.tidy(each, key, sort, drop) for key, each in value.items()
                    if key not in drop and key != "ThrottleTimeMs"}
        if isinstance(value, list):
            if field == "Configs" or field == "ApiKeys":
                return by_name([self.tidy(each, "", sort, drop) for each in value])
            items = [self.tidy(each, field, sort, drop) for each in value]
            if sort:
                items.sort(key=lambda each: json.dumps(each, sort_keys=True))
            return items
        return self.tidy_leaf(value, field, sort, drop)

    def tidy_leaf(self, value, field, sort, drop):
        if value is None:
            return None
        if field in ANY:
            return "any"
        if field in TEXTS:
            return "text"
        if field == "Records":
            return self.tidy(batch.summaries(value), "", False, drop)
        if field in TIMES and value >= CLOCK:
            return "clock"
        if field.endswith("ErrorCode"):
            return f"{value} {wire.ERRORS.get(value, '?')}" if value else 0
        if field == "ProducerId" and value >= 0:
            return self.names.number("producer", value)
        if field == "SessionId" and value > 0:
            return self.names.number("session", value)
        if field in MEMBERS and isinstance(value, str):
            return self.names.member(value)
        if isinstance(value, bytes):
            return self.names.topic(value) if len(value) == 16 else value.hex()
        return value


def unknown_last(topics):
    """Kafka answers partitions that do not exist behind those that do; the order says nothing."""
    for topic in topics:
        topic["Partitions"].sort(key=lambda partition: partition["ErrorCode"] in (3, 100))


def by_name(items):
    """Lists that are compared entry by entry, so that a missing one does not shift the rest."""
    key = "Name" if items and "Name" in items[0] else "ApiKey"
    return {str(each[key]): each for each in items}


def produce_body(topic, records, partition=0, acks=-1):
    name = {"TopicId": topic} if isinstance(topic, bytes) else {"Name": topic}
    return {"Acks": acks, "TimeoutMs": 5_000, "TopicData": [
        {**name, "PartitionData": [{"Index": partition, "Records": records}]}]}


def fetch_body(topic, offset=0, partition=0, **fields):
    name = {"TopicId": topic} if isinstance(topic, bytes) else {"Topic": topic}
    asked = {"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20}
    return {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20,
            "Topics": [{**name, "Partitions": [asked]}], **fields}
