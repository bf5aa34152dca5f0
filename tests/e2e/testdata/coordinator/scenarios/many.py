"""Thousands of closures."""

import collections
import json
import os

from . import DIR, scenario, until


@scenario
def many(c, name, first, n, seconds):
    """Schedules the squares of n numbers, each of them once, however often this is begun,
    and fetches them all."""
    path = os.path.join(DIR, "ids-" + name)
    if os.path.exists(path):  # an earlier process has scheduled them
        with open(path) as f:
            values = [c.remote_value(i) for i in json.load(f)]
    else:
        values = [c.schedule("square", args=(i, seconds)) for i in range(first, first + n)]
        until("the queue has them", lambda: all(v.id for v in values))
        with open(path + ".new", "w") as f:
            json.dump([v.id for v in values], f)
        os.rename(path + ".new", path)
    c.join()
    assert c.fetch(values) == [i * i for i in range(first, first + n)]
    assert c.done() is True
    called = collections.Counter()
    with open(DIR + "/calls") as f:
        for line in f:
            function, i, _ = (line + " x").split()[:3]
            if function == "square" and first <= int(i) < first + n:
                called[i] += 1
    assert len(called) == n, "%d of %d were called" % (len(called), n)
    print("success: %d closures, %d executions" % (n, sum(called.values())), flush=True)
    return sum(called.values())
