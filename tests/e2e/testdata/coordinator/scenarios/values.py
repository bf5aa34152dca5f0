"""Functions that work, and what comes of them."""

import os

import clusterrun
from clusterrun import RemoteValueStatus

from . import ABORTED, CANCELLED, calls, raised, release, scenario, until


@scenario
def two_variables(c):
    """One shared number grows by 0.1, a second number loses 0.2 of 1."""
    c.schedule("count_up", args=("cc44-b", 1)).fetch()
    first, second = c.schedule("count_up", args=("cc44-a", 0.1)), c.schedule("count_up", args=("cc44-b", -0.2))
    assert abs(first.fetch() - 0.1) < 1e-9 and isinstance(first.fetch(), float)
    assert abs(second.fetch() - 0.8) < 1e-9
    c.join()


@scenario
def statuses(c, name):
    """NOT_READY, then READY, also with an error; ABORTED is what nobody
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
