"""Counts checks and prints them as they happen.

The last line of every end-to-end test is `N passed, N failed`, whatever happens.
"""
import time
import traceback


class Checks:
    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.started = time.monotonic()

    def check(self, good, name, detail=""):
        """Records one result; the detail is shown when it failed."""
        if good:
            self.passed += 1
            print(f"ok    {name}", flush=True)
        else:
            self.failed += 1
            print(f"FAIL  {name}", flush=True)
            for line in str(detail).splitlines()[:40]:
                print(f"      {line}", flush=True)
        return good

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        """An exception is one more failure, and ends here."""
        if kind is None or not issubclass(kind, Exception):
            return False
        self.check(False, f"{kind.__name__}: {value}", "".join(traceback.format_tb(trace)))
        return True

    def finish(self):
        """Prints the summary line; returns the exit code."""
        print(f"took {time.monotonic() - self.started:.1f} s")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0
