"""Functions that fail: CC-32 to CC-39, and which error is raised."""

import os
import signal

import clusterrun

from . import CANCELLED, calls, pid, raised, raised_soon, release, scenario, until, worker_names


def good(c, n=3):
    return [c.schedule("square", args=(i,)) for i in range(n)]


def check(e, text="on purpose"):
    """It has the text that the function has raised, and the traceback from there."""
    assert isinstance(e, ValueError) and isinstance(e, clusterrun.ClosureError), repr(e)
    assert str(e) == text and e.kind == "ValueError" and e.task.startswith("worker-"), vars(e)
    assert "serve.py" in e.traceback and "raise ValueError(text)" in str(e.__cause__), e.traceback


@scenario
def join_raises(c):
    """CC-32, CC-35, CC-36: an error is raised once by join, and by each fetch. The next
    error is raised, too."""
    for text in ("first", "second"):
        values, failing = good(c), c.schedule("fail", args=(text,))
        check(raised(c.join, ValueError), text)
        for _ in range(2):
            check(raised(failing.fetch, ValueError), text)
        for i, value in enumerate(values):
            try:
                assert value.fetch() == i * i
            except clusterrun.CancelledError as e:
                assert str(e) == CANCELLED
        c.join()
        assert c.done() is True
    # The other way about: join raises an error that was fetched, too.
    failing = c.schedule("fail")
    check(raised(failing.fetch, ValueError))
    check(raised(c.join, ValueError))
    c.join()


@scenario
def schedule_raises(c):
    """CC-33: one of those that are scheduled after an error raises it."""
    c.schedule("fail")
    check(raised_soon("schedule raises", lambda: good(c, 1), ValueError))
    c.join()


@scenario
def schedule_raises_one_of_many(c):
    """CC-34: the others of the batch are swallowed with it."""
    last = []
    check(raised_soon("schedule raises", lambda: last.append(c.schedule("fail")), ValueError))
    c.join()
    raised(last[-1].fetch, ValueError, clusterrun.CancelledError)


@scenario
def input_error(c):
    """CC-37, CC-38: a resource that cannot be built is the error of those who use it."""
    broken = c.create_per_worker_resource("broken")
    value = c.schedule("square", args=(3,))
    c.join()
    assert value.fetch() == 9
    value = c.schedule("echo", args=(broken,))
    for call in (c.join, value.fetch):
        e = raised(call, clusterrun.InputError)
        assert str(e).startswith("Input has an error, the original exception is OSError('no such data'"), e
    c.join()


@scenario
def cancellation(c, name):
    """CC-39: a very long call is cancelled when a different call fails."""
    long = c.schedule("hold", args=(name,))
    until("it is called", lambda: calls("hold " + name))
    good(c)
    c.schedule("fail")
    check(raised(c.join, ValueError))
    assert str(raised(long.fetch, clusterrun.CancelledError)) == CANCELLED
    values = good(c)
    c.join()
    assert c.fetch(values) == [0, 1, 4]
    assert not calls("released " + name), "it has not come to its end"


@scenario
def the_first_error(c):
    """SEED-36, SEED-37: the error that came first is raised, once and alone, whatever was
    scheduled first; what was called meanwhile is cancelled or keeps its own error."""
    second = c.schedule("fail_later", args=("cc-second", "second"))
    first = c.schedule("fail_later", args=("cc-first", "first"))
    until("both are called", lambda: calls("hold cc-second") and calls("hold cc-first"))
    release("cc-first")
    check(raised(first.fetch, ValueError), "first")
    release("cc-second")
    check(raised(c.join, ValueError), "first")
    e = raised(second.fetch, ValueError, clusterrun.CancelledError)
    assert str(e) in ("second", CANCELLED), e
    c.join()
    values = good(c)
    c.join()
    assert c.fetch(values) == [0, 1, 4]


@scenario
def done_raises(c):
    """CC-07: an error is raised by done, once."""
    failing = c.schedule("fail")
    raised(failing.fetch, ValueError)
    check(raised_soon("done raises", c.done, ValueError))
    assert c.done() is True


@scenario
def a_resource_after_an_error(c):
    """CC-40: an error costs no resource."""
    resource = c.create_per_worker_resource("counter", args=(40,))
    c.schedule("count", args=(resource,))
    c.schedule("fail")
    check(raised(c.join, ValueError))
    value = c.schedule("count", args=(resource,))
    c.join()
    assert value.fetch()[1] > 40


@scenario
def an_error_while_a_worker_is_away(c, name):
    """CC-63: a worker dies under a long closure, and another closure fails."""
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
