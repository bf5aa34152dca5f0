"""Per-worker datasets, and functions that take elements of them."""

import itertools
import os
import random
import time

import clusterrun
from notes import DIR, TASK, add, note


@clusterrun.function
def numbers(first, count=None, more=0):
    """The numbers from first, with something added to each."""
    for n in range(first, first + count) if count else itertools.count(first):
        yield n + more


@clusterrun.function
def elements(of):
    return iter(of)


@clusterrun.function
def ones(count=None):
    return itertools.repeat(1) if count is None else itertools.repeat(1, count)


@clusterrun.function
def shuffled(n):
    return iter(random.sample(range(n), n))


@clusterrun.function
def shard(n):
    """Each worker has its own part of the numbers."""
    index = int(os.environ["CLUSTERRUN_TASK_INDEX"])
    workers = sum(t["type"] == "worker" for t in clusterrun.cluster())
    return iter(range(index, n, workers))


@clusterrun.function
def shares():
    return clusterrun.ClusterCoordinator().create_per_worker_resource("ones")


@clusterrun.function
def slowly(name):
    """Ones, which are there once the test has made a file of that name."""
    note("building %s" % name)
    while not os.path.exists(os.path.join(DIR, name)):
        time.sleep(0.01)
    return itertools.repeat(1)


@clusterrun.function
def rest(iterator):
    return list(iterator)


@clusterrun.function
def count_up(name, *by):
    """Add to a shared number what is given, and the next element of each iterator."""
    total = 0
    for b in by:
        total += b if isinstance(b, (int, float)) else next(b)
    return add(name, total)


@clusterrun.function
def sum_of_next(*iterators):
    return [sum(map(next, iterators)), TASK]
