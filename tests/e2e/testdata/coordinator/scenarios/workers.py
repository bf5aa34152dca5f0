"""Workers that die in the middle."""

import os
import signal

from . import calls, kill, only, pid, release, scenario, shared, until

held = {}  # values, by name


@scenario
def between_functions(c):
    """A worker that dies between functions costs nothing."""
    for total in (2, 4):
        for _ in range(2):
            c.schedule("count_up", args=("cc61", 1))
        c.join()
        assert shared("cc61") == total
        if total == 2:
            kill(c, "worker-0")


@scenario
def amid_functions(c, name):
    """A lost call is repeated: at least once."""
    victim = pid(c, "worker-0")
    values = [c.schedule("hold", args=(name,)) for _ in range(6)]  # more than there are workers
    until("worker-0 calls one", lambda: "worker-0" in calls("hold " + name))
    assert c.done() is False
    os.kill(victim, signal.SIGKILL)
    assert c.done() is False
    release(name)
    c.join()
    assert c.fetch(values) == [name] * 6
    assert len(calls("released " + name)) >= 6
    assert len(calls("hold " + name)) >= 7, "one was called twice"


@scenario
def a_value_outlives_its_worker(c, *tasks):
    value = c.schedule("pair")
    assert value.fetch() == (1, -1)
    kill(c, *tasks)
    assert value.fetch() == (1, -1) == c.fetch(value)
    c.join()
    for task in tasks:
        pid(c, task)  # it is back: a run may end with a worker that failed before, but not amid its failure


@scenario
def count(c, name, n):
    """Closures add to a shared number, which is returned."""
    for _ in range(n):
        c.schedule("count_up", args=(name, 1))
    c.join()
    return shared(name)


@scenario
def begin_held(c, name, n, *tasks):
    """Closures that continue until they are released; tasks have begun with one."""
    values = [c.schedule("hold", args=(name,)) for _ in range(n)]
    await_held(c, name, *tasks)
    assert c.done() is False
    held[name] = values


@scenario
def await_held(c, name, *tasks):
    until("all of these call one", lambda: set(tasks) <= set(calls("hold " + name)))


@scenario
def end_held(c, name):
    release(name)
    c.join()
    assert c.fetch(held[name]) == [name] * len(held[name])
    return len(calls("released " + name))


@scenario
def serves(c, task):
    """A closure for one task is called there."""
    assert only(c, task, "where").fetch()[0] == task
    c.join()
