"""The functions that the tests of closures have called."""

import os
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
def hold(name):
    """Goes on until the test makes a file of that name."""
    note("hold %s" % name)
    while not os.path.exists(os.path.join(DIR, name)):
        time.sleep(0.01)
    note("released %s" % name)
    return name


@clusterrun.function
def die():
    note("die 0")
    os._exit(7)


@clusterrun.function
def counter(start):
    note("counter %d" % start)
    return {"n": start}


@clusterrun.function
def count(counter):
    counter["n"] += 1
    return [TASK, counter["n"]]


@clusterrun.function
def broken():
    raise OSError("no such data")


@clusterrun.function
def pair():
    return (1, -1)


clusterrun.serve()
