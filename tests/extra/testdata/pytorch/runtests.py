"""Runs tests of torch, each in a process of its own.

    runtests.py FILE list                  one name in each line, CLASS.METHOD
    runtests.py FILE NUMBER NAME...        NUMBER at a time; one line of JSON for each

A test that several classes inherit is one test, of the class that has it.
"""

import importlib
import json
import os
import sys
import tempfile
import unittest


def tests_of(module):
    return {
        "%s.%s" % (case.__name__, name): case
        for case in vars(module).values()
        if isinstance(case, type) and issubclass(case, unittest.TestCase) and case.__module__ == module.__name__
        for name in vars(case)
        if name.startswith("test")
    }


def run(case, name, calls):
    """Run a test in this process, and return what has become of it."""
    os.environ["CLUSTERRUN_CALLS"] = calls
    # What clusterrun counts: the processors that this process may use.
    os.cpu_count = lambda: len(os.sched_getaffinity(0))
    result = unittest.TestResult()
    unittest.TestSuite([case(name)]).run(result)
    outcome = "passed"
    if result.failures or result.errors or result.unexpectedSuccesses:
        outcome = "failed"
    elif result.skipped:
        outcome = "skipped"
    said = [text for _, text in result.failures + result.errors + result.skipped]
    return {"outcome": outcome, "said": "\n".join(said), "calls": os.path.exists(calls)}


def begin(directory, number, cases, name):
    """Run a test in a child, whose number is returned."""
    child = os.fork()
    if child:
        return child
    try:
        base = os.path.join(directory, str(number))
        output = os.open(base + ".output", os.O_RDWR | os.O_CREAT)
        os.dup2(output, 1)
        os.dup2(output, 2)
        told = run(cases[name], name.partition(".")[2], base + ".calls")
        sys.stdout.flush()
        with open(base + ".output", errors="replace") as f:
            told["output"] = f.read()
        with open(base + ".told", "w") as f:
            json.dump(dict(told, name=name), f)
    finally:
        os._exit(0)


def main(file, *args):
    sys.path.insert(0, os.path.dirname(file))
    module = importlib.import_module(os.path.basename(file).partition(".")[0])
    cases = tests_of(module)
    if args[0] == "list":
        print("\n".join(cases))
        return
    names = list(enumerate(args[1:]))
    running = {}
    with tempfile.TemporaryDirectory() as directory:
        while names or running:
            while names and len(running) < int(args[0]):
                number, name = names.pop(0)
                running[begin(directory, number, cases, name)] = number, name
            number, name = running.pop(os.wait()[0])
            try:
                with open(os.path.join(directory, "%d.told" % number)) as f:
                    print(f.read(), flush=True)
            except FileNotFoundError:
                print(json.dumps({"name": name, "outcome": "failed", "said": "its process has died"}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
