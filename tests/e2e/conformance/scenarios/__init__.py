"""Scenarios by area. A function decorated with @scenario runs once, with a World of its own."""
import importlib
import pathlib

ALL = {}


def scenario(function):
    """Its name: file.function."""
    ALL[f"{function.__module__.rpartition('.')[2]}.{function.__name__}"] = function
    return function


def load():
    for path in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        if path.stem != "__init__":
            importlib.import_module(f"scenarios.{path.stem}")
    return ALL
