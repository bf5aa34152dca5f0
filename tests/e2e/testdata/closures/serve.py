"""The functions that the tests of closures have called."""

import ctypes
import os
import signal
import socket
import sys
import time

import clusterrun
import datasets  # noqa: F401 registers more functions
import parameters  # noqa: F401 registers more functions
from notes import DIR, TASK, note


@clusterrun.function
def square(i, seconds=0.0):
    note("square %d" % i)
    if seconds:
        time.sleep(seconds)
    return i * i


@clusterrun.function
def nested(text="a"):
    return ({"tuple": (1, 2.5, None), "list": [True, [text, ()]]}, "é")


@clusterrun.function
def echo(*args, **kwargs):
    return [args, kwargs]


@clusterrun.function
def where():
    return [TASK, os.getpid()]


@clusterrun.function
def fail(text="on purpose"):
    raise ValueError(text)


@clusterrun.function
def fail_later(name, text):
    """Fails when the test makes a file of that name."""
    hold(name)
    raise ValueError(text)


@clusterrun.function
def unavailable(name, times):
    """So often it cannot reach ps-0, whoever calls it."""
    path = os.path.join(DIR, name)
    with open(path, "a") as f:
        f.write("x")
    n = os.path.getsize(path)
    if n <= times:
        raise clusterrun.UnavailableError(task="ps-0")
    return n


@clusterrun.function
def hold(name):
    """Goes on until the test makes a file of that name."""
    note("hold %s" % name)
    while not os.path.exists(os.path.join(DIR, name)):
        time.sleep(0.01)
    note("released %s" % name)
    return name


@clusterrun.function
def stubborn(name):
    """Does not end, whatever is raised in it."""
    note("stubborn %s" % name)
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass


@clusterrun.function
def leave_a_child():
    """Dies, and a child that nobody in Python knows of has all that was open."""
    note("leave_a_child 0")
    libc = ctypes.CDLL(None)
    if libc.fork() == 0:
        libc.sleep(1000)
        libc._exit(0)
    os._exit(7)


@clusterrun.function
def cut_off():
    """Ends all connections of its process, while others wait for answers there."""
    n = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as connection:
                if connection.family == socket.AF_UNIX:
                    connection.shutdown(socket.SHUT_RDWR)
                    n += 1
        except OSError:
            pass
    return n


@clusterrun.function
def die():
    note("die 0")
    os._exit(7)


@clusterrun.function
def leave(name, times, how="sys"):
    """Ends its process as if all was well, so often, whoever calls it."""
    path = os.path.join(DIR, name)
    with open(path, "a") as f:
        f.write("x")
    n = os.path.getsize(path)
    if n > times:
        return n
    if how == "sys":
        sys.exit(0)
    if how != "os":
        os.kill(int(how), signal.SIGKILL)  # that of the host worker, who cannot say what it saw
    os._exit(0)


@clusterrun.function
def counter(start):
    note("counter %d" % start)
    return {"n": start}


@clusterrun.function
def count(counter):
    counter["n"] += 1
    return [TASK, counter["n"]]


@clusterrun.function
def rows():
    """A dataset. Its iterators are files, for as long as they are held."""
    path = os.path.join(DIR, "iterator-%s-%s" % (TASK, os.urandom(8).hex()))
    os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    try:
        n = 0
        while True:
            n += 1
            yield n
    finally:
        os.remove(path)


@clusterrun.function
def row(iterator):
    return [TASK, next(iterator)]


@clusterrun.function
def broken():
    raise OSError("no such data")


@clusterrun.function
def pair():
    return (1, -1)


@clusterrun.function
def large(n):
    return "x" * n


clusterrun.serve()
