"""Parameter servers that die, and what functions say that need them."""

import os
import signal
import sys

import clusterrun

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "..", "closures"))
import parameters  # noqa: E402 what the workers have

from . import calls, only, pid, raised, raised_soon, release, scenario, until  # noqa: E402

kept = {}  # from one scenario for another


def check(e, ps="ps-0"):
    """It names the server that does not answer, and where it was, and no worker."""
    assert isinstance(e, clusterrun.UnavailableError) and isinstance(e, clusterrun.ClosureError), repr(e)
    assert e.kind == "UnavailableError" and e.task == ps, vars(e)
    address = parameters.servers()[int(ps.split("-")[1])]
    assert str(e).startswith("%s at %s: " % (ps, address)), e
    assert "worker" not in str(e), e
    assert "parameters.py" in e.traceback


@scenario
def steps(c, name, n):
    """Each step updates a number at each server. Steps meet there in any order."""
    values = [c.schedule(parameters.step, args=(name,)) for _ in range(n)]
    c.join()
    return [max(numbers) for numbers in zip(*c.fetch(values))]


@scenario
def servers_answer(c):
    """They listen a little later than their processes begin."""

    def all_answer():
        try:
            return [parameters.ask(i, "answer", 0) for i in range(len(parameters.servers()))]
        except OSError:
            return None

    until("all servers answer", all_answer)


@scenario
def begin_endless(c, name, n):
    """All workers are busy with updates that do not end by themselves."""
    for _ in range(n):
        c.schedule(parameters.steps, args=(name,))
    until("all workers are busy", lambda: len(set(calls("steps " + name))) == min(n, workers()))
    assert c.done() is False


def workers():
    return sum(t["type"] == "worker" for t in clusterrun.cluster())


@scenario
def join_raises_unavailable(c):
    """Once, and then the queue is as new."""
    check(raised(c.join, clusterrun.UnavailableError))
    c.join()
    assert c.done() is True


@scenario
def schedule_raises_unavailable(c):
    check(raised_soon("schedule raises", lambda: c.schedule(parameters.step, args=("more",)), clusterrun.UnavailableError))
    try:
        # The calls after the error fail again.
        c.join()
    except clusterrun.UnavailableError as e:
        check(e)
    c.join()


@scenario
def every_worker_says_so(c, tasks, *dead):
    """Each call that needs a server, on each worker; other functions work."""
    for task in tasks:
        for _ in range(2):
            e = raised(only(c, task, parameters.step, "each").fetch, clusterrun.UnavailableError)
            assert e.task in dead, vars(e)
            check(e, e.task)
        assert only(c, task, "square", 4).fetch() == 16
    c.join()


@scenario
def a_resource_needs_a_server(c):
    """One that is built while a server does not answer is not broken for good."""
    kept["resource"] = c.create_per_worker_resource(parameters.slot, args=("slot",))
    value = c.schedule("echo", args=(kept["resource"],))
    check(raised(c.join, clusterrun.UnavailableError))
    check(raised(value.fetch, clusterrun.UnavailableError))


@scenario
def the_resource_is_built_again(c):
    value = c.schedule("echo", args=(kept["resource"],))
    c.join()
    assert value.fetch()[0][0] == [1, 1], value.fetch()


@scenario
def pinned_calls(c, name):
    """Calls for worker-0 that dies under them. The error of the one that has
    begun names the worker, and no server; the others wait for it."""
    kept["name"] = name
    kept["pinned"] = [only(c, "worker-0", "hold", name) for _ in range(3)]
    until("one is called", lambda: calls("hold " + name))


@scenario
def pinned_calls_end(c):
    release(kept["name"])
    e = raised(kept["pinned"][0].fetch, clusterrun.ClosureError)
    assert e.kind == "QuarantinedError" and "worker-0" in str(e) + e.task, vars(e)
    assert "ps-" not in str(e) and parameters.servers()[0] not in str(e), e
    c.join()
    assert c.fetch(kept["pinned"][1:]) == [kept["name"]] * 2
    assert set(calls("released " + kept["name"])) == {"worker-0"}


@scenario
def reads_go_on(c, name):
    """While a worker dies and returns, what the servers have can be read."""
    before, first, reads, done = 0, pid(c, "worker-0"), 0, 0
    while done < 5:
        c.schedule(parameters.step, args=(name,))
        c.join()
        for i in range(len(parameters.servers())):
            value = parameters.ask(i, name, 0)
            assert value > before or i, "the step that was joined can be read"
        before, reads = parameters.ask(0, name, 0), reads + 1
        if reads == 5:
            os.kill(first, signal.SIGKILL)
        if reads > 5 and pid(c, "worker-0") != first:
            done += 1
    return reads


@scenario
def a_server_returns(c, name):
    """A server that dies and is started again is an error or not, by how long it is
    away. If so that names the server."""
    release(name)
    try:
        c.join()
    except clusterrun.UnavailableError as e:
        check(e)

    def works():
        try:
            return only(c, "worker-0", parameters.step, name).fetch()
        except clusterrun.UnavailableError as e:
            check(e)

    until("it is back", works)
    c.join()
