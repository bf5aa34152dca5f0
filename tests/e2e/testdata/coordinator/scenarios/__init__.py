"""What the chief of the tests can be told to do. Each asserts by itself; what it returns
is for the test to see."""

import json
import os
import signal
import time

import clusterrun
from clusterrun._arguments import arguments
from clusterrun.functions import name_to_schedule

DIR = os.environ["DIR"]
PATIENCE = 60  # seconds for what has to come
CANCELLED = "The corresponding function is cancelled. Please reschedule the function."
ABORTED = "The corresponding function is aborted. Please reschedule the function."

SCENARIOS = {}


def scenario(fn):
    assert fn.__name__ not in SCENARIOS, fn.__name__
    SCENARIOS[fn.__name__] = fn
    return fn


def coordinator():
    return clusterrun.ClusterCoordinator()


def raised(call, *kinds):
    """The error that a call has to raise."""
    try:
        call()
    except BaseException as e:
        assert isinstance(e, kinds or Exception), repr(e)
        return e
    raise AssertionError("nothing was raised")


def until(what, condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "not within %ds: %s" % (PATIENCE, what)
        time.sleep(0.01)


def raised_soon(what, call, *kinds):
    """The error that a call raises sooner or later."""
    found = []

    def attempt():
        try:
            call()
        except Exception as e:
            assert isinstance(e, kinds), repr(e)
            found.append(e)
        return found

    until(what, attempt)
    return found[0]


def calls(line):
    """How often functions have noted a line, and which tasks."""
    with open(os.path.join(DIR, "calls")) as f:
        return [said.split()[-1] for said in f if said.rsplit(" ", 1)[0] == line]


def release(name):
    open(os.path.join(DIR, name), "w").close()


def shared(name):
    with open(os.path.join(DIR, "shared-" + name)) as f:
        return float(f.read())


def only(c, task, fn, *args):
    """Schedules a function for one task, as a pool does."""
    name = name_to_schedule(fn)
    raw, resources = arguments(name, args, None)
    return c._session.schedule(c, '{"function":%s%s,"task":"%s"}' % (json.dumps(name), raw, task), resources)


def pid(c, task):
    """The process that serves as a task."""
    while True:
        try:
            return only(c, task, "where").fetch(PATIENCE)[1]
        except clusterrun.ClosureError as e:  # it has died under the call
            assert e.kind == "QuarantinedError", e


def worker_names():
    return ["worker-%d" % i for i in range(sum(t["type"] == "worker" for t in clusterrun.cluster()))]


def kill(c, *tasks):
    for process in [pid(c, task) for task in tasks]:
        os.kill(process, signal.SIGKILL)


from . import datasets, errors, many, servers, values, workers  # noqa: E402,F401 they register theirs
