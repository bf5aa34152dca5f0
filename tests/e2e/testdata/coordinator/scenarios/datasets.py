"""Resources and datasets of each worker."""

import os
import signal

import clusterrun

from . import calls, only, pid, raised, release, scenario, shared, until, worker_names


@scenario
def a_shard_of_each_worker(c):
    """Each worker has its part of the data, by its index."""
    all_of = worker_names()
    n = len(all_of)
    iterator = iter(c.create_per_worker_dataset("shard", args=(2 * n,)))
    values = [only(c, task, "rest", iterator) for task in all_of]
    c.join()
    sums = sorted(sum(v) for v in c.fetch(values))
    assert sums == [n + 2 * i for i in range(n)], sums
    return sums


@scenario
def each_iterator_begins_anew(c):
    dataset = c.create_per_worker_dataset("ones", args=(1,))
    for total in (1, 2):
        value = c.schedule("count_up", args=("cc17", iter(dataset)))
        c.join()
        assert value.fetch() == total
    assert shared("cc17") == 2
    # Each had one element.
    iterator = iter(dataset)
    task = worker_names()[0]
    only(c, task, "count_up", "cc17", iterator)
    c.join()
    e = raised(only(c, task, "count_up", "cc17", iterator).fetch, clusterrun.ClosureError)
    assert e.kind == "StopIteration", e.kind


@scenario
def a_mapped_dataset(c):
    """The numbers from 0, with 10 added to each."""
    iterator = iter(c.create_per_worker_dataset("numbers", args=(0, 10), kwargs={"more": 10}))
    task = worker_names()[0]
    assert only(c, task, "sum_of_next", iterator).fetch() == [10, task]
    assert only(c, task, "rest", iterator).fetch() == list(range(11, 20))
    c.join()


@scenario
def a_builder_that_shares(c):
    """The function of a resource may not make what is shared by all."""
    value = c.schedule("rest", args=(iter(c.create_per_worker_dataset("shares")),))
    for call in (c.join, value.fetch):
        e = raised(call, clusterrun.InputError)
        assert "ValueError('Creating a per-worker resource in the function of one is not allowed.')" in str(e), e
    c.join()


@scenario
def shuffled_differently(c):
    """The orders of two workers, and those of two iterators."""
    dataset = c.create_per_worker_dataset("shuffled", args=(100,))
    first, second = iter(dataset), iter(dataset)
    a, b = worker_names()[:2]
    orders = c.fetch([only(c, t, "rest", i) for i, t in ((first, a), (first, b), (second, a))])
    assert all(sorted(order) == list(range(100)) for order in orders)
    assert orders[0] != orders[1] and orders[0] != orders[2]
    c.join()


@scenario
def data_for_a_dataset(c):
    """What the coordinator has goes to the workers as arguments of the builder. An
    object of this process, such as an iterator, cannot."""
    iterator = iter(c.create_per_worker_dataset("elements", args=([[3, 4], [5, 6]],)))
    task = worker_names()[0]
    assert only(c, task, "rest", iterator).fetch() == [[3, 4], [5, 6]]
    c.join()
    e = raised(lambda: c.create_per_worker_dataset(iter([3])), TypeError)
    assert "only registered functions are accepted" in str(e), e
    local = iter(c.create_per_worker_dataset("elements", args=(["of", "this"],)))
    e = raised(lambda: next(local), NotImplementedError)
    raised(lambda: iter(c.create_per_worker_dataset("elements", args=(iter([3]),))), TypeError)


@scenario
def two_datasets(c):
    """Two iterators are two arguments, and each keeps where it is."""
    one, four = c.create_per_worker_dataset("numbers", args=(1,)), c.create_per_worker_dataset("numbers", args=(4,))
    first, second = iter(one), iter(four)
    value, task = c.schedule("sum_of_next", args=(first, second)).fetch()
    assert value == 5
    assert only(c, task, "sum_of_next", iter(one), second).fetch() == [6, task]
    value, other = c.schedule("sum_of_next", args=(iter(one), second)).fetch()
    assert value == 7 if other == task else value == 5
    c.join()


@scenario
def schedule_with_a_dataset(c):
    """Each closure takes an element."""
    iterator = iter(c.create_per_worker_dataset("ones"))
    c.join()
    for total in (10, 20):
        for _ in range(5):
            c.schedule("count_up", args=("cc52", 1, iterator))
        c.join()
        c.join()
        assert shared("cc52") == total
    assert c.done() is True


@scenario
def a_worker_dies_amid_building(c, name):
    """The closure that needed the resource is called elsewhere, or again."""
    victim = "worker-0"
    for batch in range(2):
        here = "%s-%d" % (name, batch)
        iterator = iter(c.create_per_worker_dataset("slowly", args=(here,)))
        process = pid(c, victim)
        n = len(worker_names())  # one for each: none of them ends before
        for _ in range(n):
            c.schedule("count_up", args=(here, iterator))
        until("worker-0 builds it", lambda: victim in calls("building " + here))
        assert c.done() is False
        os.kill(process, signal.SIGKILL)
        release(here)
        c.join()
        assert shared(here) >= n
    pid(c, victim)  # it is back
