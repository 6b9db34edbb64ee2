#!/usr/bin/env python3
"""build_times.py BUILD_DIR: how long a clean build of the daemon takes, and a build after one handler was edited.

Without ccache, on as many jobs as there are processors. Fails where the daemon takes over 5 minutes or the edit over
15 seconds (on 2 processors; fewer or busy ones are given more by KANAL_BUILD_SLACK, a factor).
"""
import os
import pathlib
import subprocess
import sys
import time

LIMITS = {"clean": 300.0, "edited handler": 15.0}


def build(directory):
    begin = time.monotonic()
    environment = dict(os.environ, CCACHE_DISABLE="1")
    subprocess.run(["cmake", "--build", directory, "--target", "kanald"], check=True, env=environment,
                   stdout=subprocess.DEVNULL)
    return time.monotonic() - begin


def main():
    directory = sys.argv[1]
    root = pathlib.Path(__file__).resolve().parents[2]
    subprocess.run(["cmake", "--build", directory, "--target", "clean"], check=True, stdout=subprocess.DEVNULL)
    times = {"clean": build(directory)}
    handler = root / "src/handlers/10_find_coordinator.cpp"
    os.utime(handler)
    times["edited handler"] = build(directory)
    slack = float(os.environ.get("KANAL_BUILD_SLACK", "1"))
    late = False
    for name, seconds in times.items():
        limit = LIMITS[name] * slack
        late |= seconds > limit
        print(f"build, {name}: {seconds:.1f} s (at most {limit:.0f} s)", flush=True)
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
