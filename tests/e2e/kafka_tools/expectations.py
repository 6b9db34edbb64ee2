"""What a real Kafka 4.4 printed (expected/NAME.txt), and how outputs are made alike to compare."""
import difflib
import re

# Order matters. The pattern's match becomes the second part.
ALIKE = (
    (r"/\S*kanal-e2e-\w+", "SCRATCH"),
    (r"^\s+at .*$\n|^\s+\.\.\. \d+ more$\n", ""),
    (r"\[\d{4}-\d\d-\d\d[ T][\d:,]+\]", "[time]"),
    # The exception tells the error code; the wording is each broker's own.
    (r"(Error while executing topic command : |\w+Exception: ).*", r"\1TEXT"),
    (r"TopicId: [\w-]{22}", "TopicId: ID"),
    (r"Topic [Ii]d: [\w-]{22}", "TopicId: ID"),
    # Kafka has the ELR feature switched on, which sets this one as a cluster-wide dynamic default.
    (r"\tElr: [^\t]*\tLastKnownElr: \S*", ""),
    (r"DYNAMIC_DEFAULT_BROKER_CONFIG:min\.insync\.replicas=1, ", ""),
    (r"min\.insync\.replicas=1,(?=\S+=)|,min\.insync\.replicas=1$|min\.insync\.replicas=1$", ""),
)


class Expectations:
    more = ()  # what a kind of steps makes alike besides, after ALIKE

    def __init__(self, directory, address, record):
        self.directory = directory
        self.address = address
        self.record = record

    def alike(self, ran):
        text = f"exit code {ran.code}\n{ran.out}" + (f"stderr:\n{ran.err}" if ran.err else "")
        text = text.replace(self.address, "HOST:PORT")
        host, port = self.address.rsplit(":", 1)
        text = re.sub(rf"{re.escape(host)}(\s+){port}", r"HOST\1PORT", text)
        text = substituted(text, ALIKE).rstrip() + "\n"
        return substituted(text, self.more)

    def store(self, name, ran):
        """Records an answer that is not compared as a whole."""
        if self.record:
            self.directory.mkdir(exist_ok=True)
            (self.directory / f"{name}.txt").write_text(self.alike(ran))

    def stored(self, name):
        return (self.directory / f"{name}.txt").read_text()

    def compare(self, name, ran):
        """A difference as text; empty where there is none."""
        self.store(name, ran)
        want = self.stored(name).splitlines()
        have = self.alike(ran).splitlines()
        return "\n".join(difflib.unified_diff(want, have, "Kafka 4.4", "here", lineterm="", n=1))


def substituted(text, patterns):
    for pattern, replacement in patterns:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text
