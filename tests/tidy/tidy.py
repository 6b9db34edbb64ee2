#!/usr/bin/env python3
"""Holds the source to the architecture: include edges, banned calls, lengths, the co_await trap, header comments.

    tidy.py ROOT               checks src/ and include/ of the repository at ROOT; one line per finding, exit code 1
    tidy.py ROOT --self-test   plants one mistake of each kind and expects it to be found

The layer table is read from CMakeLists.txt (add_layer), so there is one place that says what may include what.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

LINE, FUNCTION, SOURCE, HEADER, HANDLER, PARAMETERS = 100, 70, 600, 250, 200, 5
COMMENT_LINES = range(1, 11)  # a header opens with what it is, who may touch it, its invariants

# What may appear where. A path matches a rule's `allowed` if it starts with one of its entries.
CORE = ("base", "wire", "records", "log", "reserved", "coordinator")
BANNED = [
    ("a clock is read", r"_clock::now\b|\bclock_gettime\b|\bgettimeofday\b|[^\w.>]time\((nullptr|NULL|0)\)",
     ("src/server/system_clock.cpp",)),
    ("randomness of its own", r"\brandom_device\b|\bmt19937\w*|\bgetrandom\b|[^\w]s?rand\(",
     ("src/server/system_random.cpp",)),
    ("a thread", r"\bstd::(jthread|thread|async)\b|\bpthread_create\b|<(thread|future)>",
     ("src/server/helper_pool.", "src/server/daemon.", "src/broker/flusher.",
      "src/server/control.")),                                            # snapshots take their time
    ("a lock", r"\bstd::(recursive_|shared_|timed_)*mutex\b|\bcondition_variable\b|<(shared_)?mutex>|<condition_variable>",
     ("src/base/logging.cpp",                                             # making a logger
      "src/log/leaf.", "src/log/file_cache.",                             # leaf locks (rank 4)
      "src/reserved/rocks_store.", "src/reserved/memory_store.", "include/kanal/reserved/memory_store.",
      "src/handlers/fetch_plan.cpp",                                      # one request at a time on a fetch session
      "include/kanal/broker/", "src/broker/",
      "src/server/helper_pool.", "src/server/request_memory.", "src/server/connection_limits.")),
    ("a file-system call outside base's FileSystem", r"(?<![\w>:])::(open|openat|creat|read|write|pread|pwrite|preadv2?|pwritev2?|"
     r"fsync|fdatasync|ftruncate|fallocate|unlink|rename|mkdir|rmdir|opendir|stat|fstat|flock)\(|\bf(re)?open\(|"
     r"\bstd::[io]?fstream\b|\bstd::filesystem\b|<(filesystem|fstream)>",
     ("src/base/system_file_system.cpp", "src/base/system_file_copies.cpp", "src/wiregen/",
      "src/server/config",                                                # the start-up file and /proc, /sys
      "src/server/signals.cpp",                                           # a pipe
      "src/broker/io_thread.cpp")),                                       # a timer descriptor
    ("a socket call", r"(?<![\w>:])::(socket|bind|listen|accept4?|recv|send|sendmsg|recvmsg|sendfile|setsockopt)\(|<sys/socket.h>",
     ("src/server/",)),
    ("Asio outside broker and server (handlers: through Task)", r"<boost/asio",
     ("include/kanal/broker/", "src/broker/", "src/server/")),
    ("RocksDB outside its store", r"<rocksdb/|\brocksdb::", ("src/reserved/rocks_", "include/kanal/reserved/rocks_")),
    ("yaml-cpp outside the configuration and wiregen", r"<yaml-cpp/|\bYAML::", ("src/server/config", "src/wiregen/")),
    ("an exception", r"\bthrow\b(?!\s*;)", ("src/wiregen/", "src/server/config")),
    ("a name that says nothing", r"\b(class|struct)\s+\w*(Manager|Helper|Helpers|Util|Utils|Impl)\b", ()),
    ("a coroutine type of our own or a detached thread", r"\bstd::coroutine_handle\b|\.detach\(\)", ()),
]
CORE_BANNED = [("a coroutine in the core", r"\bco_(await|return|yield)\b")]


class Text:
    """A source file: as it is, and with comments and literals blanked (same lines, same columns)."""

    def __init__(self, path, text):
        self.path = path
        self.raw = text
        self.code = blank(text)

    def line_of(self, at):
        return self.code.count("\n", 0, at) + 1


def blank(text):
    pattern = re.compile(r'R"(\w*)\(.*?\)\1"|//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-zA-Z_])\'(?:\\.|[^\'\\\n])+\'', re.S)

    def cover(match):
        token = match.group(0)
        if token.startswith('"') and text[:match.start()].rsplit("\n", 1)[-1].strip().startswith("#include"):
            return token
        keep = '"' if token[0] in '"R' else "'" if token[0] == "'" else " "
        inner = re.sub(r"[^\n]", " ", token)
        return keep + inner[1:-1] + keep if len(token) > 1 and keep != " " else inner
    return pattern.sub(cover, text)


def layer_table(root):
    table = {}
    for name, rest in re.findall(r"add_layer\(\s*(\w+)([^)]*)\)", (root / "CMakeLists.txt").read_text()):
        depends = re.search(r"DEPENDS((?:\s+[a-z]\w*)+)", rest)
        table[name] = set(depends.group(1).split()) if depends else set()
    def reach(name, seen):
        for other in table.get(name, ()):
            if other not in seen:
                seen.add(other)
                reach(other, seen)
        return seen
    return {name: reach(name, {name}) for name in table}


def layer_of(path):
    parts = pathlib.PurePosixPath(path).parts
    if parts[0] == "src":
        return parts[1]
    return parts[2] if parts[:2] == ("include", "kanal") else None


def check_includes(file, layers):
    layer = layer_of(file.path)
    reach = layers.get(layer, {"base", layer})
    for number, line in enumerate(file.code.split("\n"), 1):
        match = re.match(r'\s*#include\s+"(.*?)"', line)
        if not match:
            continue
        name = match.group(1)
        if name.startswith("kanal/"):
            other = name.split("/")[1]
            if other not in reach:
                yield number, f"{layer} includes {name}: it reaches only {', '.join(sorted(reach))}"
        elif file.path.startswith("include/") or ".." in name:
            yield number, f'"{name}": public headers and other layers are included as "kanal/<layer>/…"'


def check_banned(file):
    for what, pattern, allowed in BANNED:
        if any(file.path.startswith(entry) for entry in allowed):
            continue
        for match in re.finditer(pattern, file.code):
            yield file.line_of(match.start()), f"{what}: {match.group(0).strip()}"
    if layer_of(file.path) in CORE:
        for what, pattern in CORE_BANNED:
            for match in re.finditer(pattern, file.code):
                yield file.line_of(match.start()), f"{what}: {match.group(0)}"


def check_lengths(file):
    lines = file.raw.split("\n")
    for number, line in enumerate(lines, 1):
        if len(line) > LINE:
            yield number, f"line of {len(line)} columns, at most {LINE}"
    count = len(lines) - 1
    header = file.path.endswith(".hpp")
    limit = HEADER if header else HANDLER if re.match(r"src/handlers/(\d\d_|n\.)", file.path) else SOURCE
    if count > limit:
        yield 1, f"{count} lines, at most {limit}"


CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b(?!.*\)\s*(const|noexcept|override|final|\s)*$)", re.S)


def functions(file):
    """(signature, start offset, end offset, body) of each function definition outside other functions."""
    code = re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), file.code, flags=re.M)
    stack = []   # (kind, head, start)
    begin = 0    # of the statement that we are in
    depth = 0    # of parentheses
    for at, char in enumerate(code):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == ";" and depth == 0:
            begin = at + 1
        elif char == "{":
            head = code[begin:at].strip()
            inside_function = any(kind == "function" for kind, _, _ in stack)
            if inside_function or depth > 0:
                kind = "block"
            elif CONTAINER.search(re.sub(r"<[^<>]*>", "", head)) and "(" not in re.sub(r"\[\[.*?\]\]|alignas\([^)]*\)", "", head):
                kind = "container"
            elif head.startswith("namespace") or head.startswith('extern "'):
                kind = "container"
            elif "(" in head and not re.search(r"(^|[^=!<>])=\s*$", head) and not re.search(r"[,:]\s*\w+$", head):
                kind = "function"
            else:
                kind = "block"
            start = begin + len(code[begin:at]) - len(code[begin:at].lstrip())
            stack.append((kind, head, start, depth))
            stack[-1] = (kind, head, start)
            if kind != "block" or inside_function:
                begin = at + 1
        elif char == "}" and stack:
            kind, head, start = stack.pop()
            if kind == "function":
                yield head, start, at, code[start:at]
            if kind != "block" or any(k == "function" for k, _, _ in stack):
                begin = at + 1


def only_maps(body):
    lines = [line.strip() for line in body.split("\n") if line.strip()]
    mapping = sum(1 for line in lines if line.startswith(("case ", "default:", "return ", "break;", "{\"")))
    return "switch" in body and mapping * 10 >= len(lines) * 7


def parameters(head):
    match = re.search(r"[\w>~\]=+\-*/!<()]\s*\(", head)
    if not match or re.search(r"\brequires\b", head):
        return 0
    depth = angle = count = 0
    seen = False
    for char in head[match.end() - 1:]:
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                break
        elif char == "<":
            angle += 1
        elif char == ">":
            angle -= 1
        elif char == "," and depth == 1 and angle == 0:
            count += 1
        if depth >= 1 and not char.isspace() and char not in "()":
            seen = True
    return count + 1 if seen else 0


def check_functions(file):
    for head, start, end, body in functions(file):
        line = file.line_of(start)
        length = body.count("\n") + 1
        name = re.sub(r"\s+", " ", head.split("(")[0]).strip().split(" ")[-1]
        if length > FUNCTION and not only_maps(body):
            yield line, f"{name} has {length} lines, at most {FUNCTION}"
        if parameters(head) > PARAMETERS:
            yield line, f"{name} has {parameters(head)} parameters, at most {PARAMETERS}"


def brace_before(code, at):
    """Whether the statement has a brace of an expression before `at`."""
    depth = 0
    for index in range(at - 1, max(0, at - 4000), -1):
        char = code[index]
        before = code[:index].rstrip()
        if char == ")":
            depth += 1
        elif char == "(":
            if depth == 0 and re.search(r"\b(if|while|for|switch)(\s+constexpr)?$", before[-20:]):
                return False
            depth -= 1
        elif char == ";" and depth <= 0:
            return False
        elif char == "}":
            return code[index + 1:at].lstrip()[:1] in (",", ")", ".", "]", "?", ":", "+", "-", "=")
        elif char == "{":
            return before[-1:] in ("(", ",", "=", "<", "{") or code[index - 1].isalnum() or code[index - 1] in "_>"
    return False


def check_co_await(file):
    """GCC 12 frees an aggregate or a lambda inside a co_await statement twice."""
    code = file.code
    for match in re.finditer(r"\bco_await\b", code):
        bad = brace_before(code, match.start())
        depth = 0
        for char in code[match.end():match.end() + 4000]:
            if char == "(":
                depth += 1
            elif char == ")":
                depth -= 1
            elif char == "{":
                bad |= depth >= 0
                break
            elif char == ";":
                break
        if bad:
            yield file.line_of(match.start()), "a brace inside a co_await statement: name it on the line above"


def check_header_comment(file):
    if not file.path.endswith(".hpp"):
        return
    count = 0
    for line in file.raw.split("\n"):
        if not line.startswith("//"):
            break
        count += 1
    if count not in COMMENT_LINES:
        yield 1, f"opens with {count} lines of comment, not {COMMENT_LINES.start} to {COMMENT_LINES.stop - 1}"
    if "#pragma once" not in file.raw:
        yield 1, "no #pragma once"


def check_machine_paths(root):
    machine = "/" + "work" + "/"
    try:
        names = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return
    for name in names.decode().split("\0"):
        path = root / name
        if not name or not path.is_file() or path.stat().st_size > 1 << 20:
            continue
        text = path.read_bytes()
        if machine.encode() in text:
            yield f"{name}:{text[:text.index(machine.encode())].count(10) + 1}: a path of one machine ({machine})"


def check_tree(root):
    layers = layer_table(root)
    for top in ("include", "src"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix not in (".hpp", ".cpp"):
                continue
            file = Text(path.relative_to(root).as_posix(), path.read_text())
            checks = [check_banned(file), check_lengths(file), check_functions(file), check_co_await(file),
                      check_header_comment(file), check_includes(file, layers)]
            for findings in checks:
                for line, what in findings:
                    yield f"{file.path}:{line}: {what}"
    yield from check_machine_paths(root)


HEAD = "// A planted mistake.\n// Any thread.\n#pragma once\n"
PLANTS = {
    "src/log/a.cpp": ('#include "kanal/wire/reader.hpp"\n', "log includes kanal/wire/reader.hpp"),
    "src/coordinator/b.cpp": ("auto t = std::chrono::steady_clock::now();\n", "a clock is read"),
    "src/handlers/c.cpp": ("Task<void> f() {\n  co_await g(Point{1, 2});\n}\n", "a brace inside a co_await"),
    "src/handlers/d.cpp": ("Task<void> f() {\n  co_await g([] { return 1; });\n}\n", "a brace inside a co_await"),
    "src/handlers/e.cpp": ("Task<void> f() {\n  h(Point{1}, co_await g());\n}\n", "a brace inside a co_await"),
    "src/handlers/e2.cpp": ("Task<void> f() {\n  auto p = Point{co_await g(), 1};\n}\n", "a brace inside a co_await"),
    "src/handlers/f.cpp": ("#include <boost/asio/awaitable.hpp>\n", "Asio outside"),
    "src/records/g.cpp": ("void f() {\n" + "  g();\n" * 80 + "}\n", "f has 82 lines"),
    "src/records/h.cpp": ("int f(int a, int b, int c, int d, int e, int g) { return a; }\n", "f has 6 parameters"),
    "src/wire/i.cpp": ("// " + "x" * 120 + "\n", "line of 123 columns"),
    "include/kanal/base/j.hpp": ("#pragma once\n", "opens with 0 lines of comment"),
    "src/broker/k.cpp": ('#include <rocksdb/db.h>\n', "RocksDB outside"),
    "src/broker/l.cpp": ("int fd = ::open(path, 0);\n", "a file-system call"),
    "src/log/m.cpp": ("std::mutex lock;\n", "a lock"),
    "src/handlers/n.cpp": ("int x;\n" * 201, "201 lines, at most 200"),
    "src/broker/o.cpp": ("struct Foo {\n  void bar() {\n" + "    g();\n" * 75 + "  }\n};\n", "bar has 77 lines"),
    "src/reserved/p.cpp": ("Task<int> f() { co_return 1; }\n", "a coroutine in the core"),
}
SOUND = {
    "src/handlers/q.cpp": "Task<void> f() {\n  if (co_await g()) {\n    h();\n  }\n  auto x = [] { return 1; };\n  co_await g(x);\n}\n",
    "src/log/r.cpp": '#include "kanal/base/ids.hpp"\n#include "kanal/records/batch.hpp"\n// std::mutex in a comment\n',
    "src/records/s.cpp": "const char* f(int v) {\n  switch (v) {\n" + '    case 1: return "std::mutex";\n' * 90 + "  }\n}\n",
    "src/server/t.hpp": HEAD + "struct Options {\n" + "  int a = 1;\n" * 90 + "};\n",
}


def self_test(root):
    failures = []
    with tempfile.TemporaryDirectory() as scratch:
        tree = pathlib.Path(scratch)
        (tree / "CMakeLists.txt").write_text((root / "CMakeLists.txt").read_text())
        for name, text in [(n, t) for n, (t, _) in PLANTS.items()] + list(SOUND.items()):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        findings = list(check_tree(tree))
    for name, (_, expected) in PLANTS.items():
        if not any(finding.startswith(name + ":") and expected in finding for finding in findings):
            failures.append(f"not found: {name}: {expected}")
    failures += [f"found by mistake: {finding}" for finding in findings if finding.split(":")[0] in SOUND]
    return failures


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    findings = self_test(root) if "--self-test" in sys.argv else list(check_tree(root))
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
