"""Workers that die in the middle."""

import os
import signal

from . import calls, kill, pid, release, scenario, shared, until


@scenario
def between_functions(c):
    """CC-61: a worker that dies between functions costs nothing."""
    for total in (2, 4):
        for _ in range(2):
            c.schedule("count_up", args=("cc61", 1))
        c.join()
        assert shared("cc61") == total
        if total == 2:
            kill(c, "worker-0")


@scenario
def amid_functions(c, name):
    """CC-62: what was called is called again: at least once."""
    victim = pid(c, "worker-0")
    values = [c.schedule("hold", args=(name,)) for _ in range(4)]
    until("worker-0 calls one", lambda: "worker-0" in calls("hold " + name))
    assert c.done() is False
    os.kill(victim, signal.SIGKILL)
    assert c.done() is False
    release(name)
    c.join()
    assert c.fetch(values) == [name] * 4
    assert len(calls("released " + name)) >= 4
    assert len(calls("hold " + name)) >= 5, "one was called twice"


@scenario
def a_value_outlives_its_worker(c, *tasks):
    """CC-72, CC-87"""
    value = c.schedule("pair")
    assert value.fetch() == (1, -1)
    kill(c, *tasks)
    assert value.fetch() == (1, -1) == c.fetch(value)
    again = c.remote_value(value.id)
    assert again.fetch() == (1, -1), "and another look at it has it, too"
    c.join()
    for task in tasks:
        pid(c, task)  # it is back: a run may end with a worker that failed before, but not amid its failure
