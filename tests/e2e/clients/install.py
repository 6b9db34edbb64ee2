"""Installs the pinned clients into the build directory, once for each state of their manifests."""

import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
INSTALL_TIMEOUT_S = 900


class Missing(Exception):
    """A toolchain, or what it should have brought, is not to be had here."""


class Installer:
    """franz_go(), python() and so on each return the environment's paths, or raise Missing."""

    def __init__(self, build):
        self.build = build
        build.mkdir(parents=True, exist_ok=True)
        self.lock = open(build / "lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)  # two runs at once share one installation

    def release(self):
        self.lock.close()

    def once(self, name, manifests, tool_version, work):
        state = hashlib.sha256(tool_version.encode())
        for manifest in manifests:
            state.update(manifest.read_bytes())
        stamp = self.build / f"{name}.stamp"
        if stamp.exists() and stamp.read_text() == state.hexdigest():
            return
        stamp.unlink(missing_ok=True)
        print(f"installing {name} …", flush=True)
        work()
        stamp.write_text(state.hexdigest())

    def call(self, name, command, directory, **environment):
        log = self.build / f"{name}.log"
        with open(log, "a") as out:
            print("+", *command, file=out, flush=True)
            try:
                done = (
                    subprocess.run(
                        command,
                        cwd=directory,
                        env={**os.environ, **environment},
                        stdin=subprocess.DEVNULL,
                        stdout=out,
                        stderr=out,
                        timeout=INSTALL_TIMEOUT_S,
                        check=False,
                    ).returncode
                    == 0
                )
            except subprocess.TimeoutExpired:
                done = False
        if not done:
            tail = log.read_text(errors="replace").splitlines()[-5:]
            raise Missing(f"{command[0]} failed, see {log}: " + " | ".join(tail))

    def franz_go(self):
        go = tool("go")
        binary = self.build / "franzgo"
        source = HERE / "go"

        def work():
            self.call(
                "franz-go",
                [go, "build", "-trimpath", "-o", str(binary), "."],
                source,
                GOTOOLCHAIN="local",
                GOFLAGS="-modcacherw -buildvcs=false",
                GOMODCACHE=str(self.build / "gomod"),
                GOCACHE=str(self.build / "gocache"),
            )

        manifests = [source / "go.mod", source / "go.sum", *sorted(source.glob("*.go"))]
        self.once("franz-go", manifests, output(go, "version"), work)
        return binary

    def java(self):
        """The Java client's jars and the program on it; returns java and the class path."""
        java, javac, maven = tool("java"), tool("javac"), tool("mvn")
        source = HERE / "java"
        libs, classes = self.build / "java" / "libs", self.build / "java" / "classes"

        def fetch():
            shutil.rmtree(libs, ignore_errors=True)
            arguments = [f"-DoutputDirectory={libs}", "-DincludeScope=runtime"]
            pom = ["-f", str(source / "pom.xml")]
            self.call(
                "java", [maven, "-q", "-B", *pom, "dependency:copy-dependencies", *arguments], HERE
            )

        def build():
            shutil.rmtree(classes, ignore_errors=True)
            options = ["-Xlint:all,-classfile,-processing", "-Werror", "-d", str(classes)]
            files = [str(file) for file in programs]
            self.call("java", [javac, *options, "-cp", f"{libs}/*", *files], HERE)

        programs = sorted(source.glob("*.java"))
        self.once("java-client", [source / "pom.xml"], "", fetch)
        self.once("java", [source / "pom.xml", *programs], output(javac, "--version"), build)
        return java, f"{classes}:{libs}/*"

    def python(self):
        venv = self.build / "python"
        requirements = HERE / "python" / "requirements.txt"

        def work():
            shutil.rmtree(venv, ignore_errors=True)
            self.call("python", [sys.executable, "-m", "venv", str(venv)], HERE)
            self.call(
                "python",
                [str(venv / "bin" / "pip"), "install", "--no-deps", "-r", str(requirements)],
                HERE,
            )

        self.once("python", [requirements], sys.version, work)
        return venv / "bin" / "python"

    def javascript(self):
        """kafkajs and its codecs: JavaScript and WebAssembly only, no install script is run."""
        node, npm = tool("node"), tool("npm")
        target = self.build / "js"
        manifests = [HERE / "js" / "package.json", HERE / "js" / "package-lock.json"]

        def work():
            (self.build / "kafka-javascript.stamp").unlink(missing_ok=True)
            target.mkdir(exist_ok=True)
            for manifest in manifests:
                shutil.copy(manifest, target)
            self.call(
                "javascript", [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], target
            )

        self.once("javascript", manifests, output(node, "--version"), work)
        return node, target / "node_modules"

    def kafka_javascript(self):
        """The package's own install step fetches a prebuilt binary from outside the registry. The
        sources of its librdkafka and of its binding are in the package: both are built here."""
        node, modules = self.javascript()
        for needed in ("g++", "make"):
            tool(needed)
        prefix = pathlib.Path(node).resolve().parent.parent
        if not (prefix / "include" / "node" / "node.h").exists():
            raise Missing(f"no headers of node in {prefix}/include/node")
        package = modules / "@confluentinc" / "kafka-javascript"
        librdkafka = package / "deps" / "librdkafka"
        target = self.build / "librdkafka"

        def work():
            shutil.rmtree(target, ignore_errors=True)
            self.call(
                "kafka-javascript",
                [
                    "./configure",
                    f"--prefix={target}",
                    f"--libdir={target}/lib",
                    "--disable-debug-symbols",
                ],
                librdkafka,
            )
            features = (librdkafka / "config.h").read_text()
            for feature, where in (("WITH_ZLIB", "zlib1g-dev"), ("WITH_ZSTD", "libzstd-dev")):
                if f"#define {feature} 1" not in features:
                    raise Missing(f"librdkafka found no {feature}: install {where}")
            self.call("kafka-javascript", ["make", "-j2", "libs"], librdkafka)
            self.call("kafka-javascript", ["make", "install-subdirs"], librdkafka)
            # -I in CXX: binding.gyp's /usr/include/librdkafka may hold an older one and comes later.
            self.call(
                "kafka-javascript",
                [
                    node,
                    str(modules / "node-gyp" / "bin" / "node-gyp.js"),
                    "rebuild",
                    "-j",
                    "2",
                    f"--nodedir={prefix}",
                ],
                package,
                BUILD_LIBRDKAFKA="0",
                CXX=f"g++ -I{target}/include/librdkafka",
                LDFLAGS=f"-L{target}/lib -Wl,-rpath,{target}/lib",
            )

        self.once(
            "kafka-javascript",
            [HERE / "js" / "package-lock.json"],
            output(node, "--version") + str(target),
            work,
        )
        return node, modules


def tool(name):
    path = shutil.which(name)
    if not path:
        raise Missing(f"no {name}")
    return path


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
