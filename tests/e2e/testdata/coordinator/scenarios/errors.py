"""Functions that fail, and which error is raised."""

import os
import signal

import clusterrun

from . import CANCELLED, calls, pid, raised, scenario, until, worker_names


def good(c, n=3):
    return [c.schedule("square", args=(i,)) for i in range(n)]


def check(e, text="on purpose"):
    """It has the text that the function has raised, and the traceback from there."""
    assert isinstance(e, ValueError) and isinstance(e, clusterrun.ClosureError), repr(e)
    assert str(e) == text and e.kind == "ValueError" and e.task.startswith("worker-"), vars(e)
    assert "serve.py" in e.traceback and "raise ValueError(text)" in str(e.__cause__), e.traceback


@scenario
def an_error_while_a_worker_is_away(c, name):
    """A worker dies under a long closure, and another closure fails."""
    pids = {task: pid(c, task) for task in worker_names()}
    values = good(c)
    long = c.schedule("hold", args=(name,))
    until("a worker calls it", lambda: calls("hold " + name))
    victim = calls("hold " + name)[0]
    os.kill(pids[victim], signal.SIGKILL)
    c.schedule("fail")
    check(raised(c.join, ValueError))
    assert str(raised(long.fetch, clusterrun.CancelledError)) == CANCELLED
    values = good(c)
    c.join()
    assert c.fetch(values) == [0, 1, 4]
    pid(c, victim)  # it is back
