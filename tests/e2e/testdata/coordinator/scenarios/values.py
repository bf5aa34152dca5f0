"""Functions that work, and what comes of them."""

import os

import clusterrun
from clusterrun import RemoteValueStatus

from . import ABORTED, CANCELLED, calls, raised, release, scenario, shared, until


@clusterrun.function
def square(i, seconds=0.0):
    raise AssertionError("the chief calls nothing by itself")


@scenario
def nested_values(c):
    """CC-15: tuples come back as tuples."""
    want = ({"tuple": (1, 2.5, None), "list": [True, ["b", ()]]}, "é")
    value = c.schedule("nested", args=("b",))
    assert value.fetch() == want == c.fetch(value), value.fetch()


@scenario
def a_list_of_values(c):
    """CC-16"""
    values = [c.schedule(square, args=(i,)) for i in range(5)]
    assert c.fetch(values) == [0, 1, 4, 9, 16]
    assert c.fetch({"a": (values[2], [values[3]]), "b": 7}) == {"a": (4, [9]), "b": 7}
    c.join()


@scenario
def schedule_and_join(c):
    """CC-18: a shared number is 10 after five closures that add 2, and 20 after ten."""
    c.join()
    assert c.done() is True
    for total in (10, 20):
        for _ in range(5):
            c.schedule("count_up", args=("cc18", 2))
        c.join()
        assert shared("cc18") == total
    c.join()
    c.join()
    assert c.done() is True


@scenario
def two_variables(c):
    """CC-44: one shared number grows by 0.1, a second number loses 0.2 of 1."""
    c.schedule("count_up", args=("cc44-b", 1)).fetch()
    first, second = c.schedule("count_up", args=("cc44-a", 0.1)), c.schedule("count_up", args=("cc44-b", -0.2))
    assert abs(first.fetch() - 0.1) < 1e-9 and isinstance(first.fetch(), float)
    assert abs(second.fetch() - 0.8) < 1e-9
    c.join()


@scenario
def per_worker_values(c):
    """CC-22: ten closures add 1 to the counter of their worker."""
    resource = c.create_per_worker_resource("counter", args=(0,))
    values = [c.schedule("count", args=(resource,)) for _ in range(10)]
    c.join()
    most = {}
    for task, n in c.fetch(values):
        most[task] = max(n, most.get(task, 0))
    assert sum(most.values()) == 10, most
    assert sorted(calls("counter 0")) == sorted(most), "each process that needed it has built it once"


@scenario
def arguments_that_are_refused(c):
    """CC-24, CC-25"""
    value = c.schedule(square, args=(3,))
    for args, kwargs in (((value,), None), (([{"x": value}],), None), ((), {"i": value})):
        e = raised(lambda: c.schedule(square, args=args, kwargs=kwargs), ValueError)
        assert "a RemoteValue is not supported as an argument" in str(e), e
    for fn in (lambda: 1, len, 7):
        e = raised(lambda: c.schedule(fn), TypeError)
        assert "only registered functions are accepted" in str(e), e
    c.join()
    assert value.fetch() == 9, "nothing else was scheduled, and this one was not disturbed"


@scenario
def statuses(c, name):
    """SEED-43, SEED-44: NOT_READY, then READY, also with an error; ABORTED is what nobody
    will know here, such as in a forked child."""
    held = c.schedule("hold", args=(name,))
    until("it is called", lambda: calls("hold " + name))
    assert held.status is RemoteValueStatus.NOT_READY and c.done() is False
    raised(lambda: held.fetch(timeout=0.01), TimeoutError)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert held.status is RemoteValueStatus.ABORTED
            assert str(raised(held.fetch, clusterrun.CancelledError)) == ABORTED
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert held.status is RemoteValueStatus.NOT_READY, "the parent's goes on"
    release(name)
    assert held.fetch() == name and held.status is RemoteValueStatus.READY
    c.join()
    failed = c.schedule("fail")
    raised(failed.fetch, ValueError)
    raised(c.join, ValueError)
    assert failed.status is RemoteValueStatus.READY
    waits = c.schedule("hold", args=("nobody",))
    until("it is called", lambda: calls("hold nobody"))
    c.schedule("fail")
    raised(c.join, ValueError)
    assert str(raised(waits.fetch, clusterrun.CancelledError)) == CANCELLED
    assert waits.status is RemoteValueStatus.READY
    c.join()
