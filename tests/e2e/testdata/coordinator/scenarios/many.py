"""Thousands of closures."""

import collections
import os

from . import DIR, scenario, until


@scenario
def many(c, name, first, n, seconds):
    """Schedules the squares of n numbers, each of them once, even if this begins again,
    and fetches them all, unless another process has scheduled them."""
    path = os.path.join(DIR, "scheduled-" + name)
    if os.path.exists(path):
        c.join()
    else:
        values = [c.schedule("square", args=(i, seconds)) for i in range(first, first + n)]
        until("the queue has them", lambda: all(v._id for v in values))
        open(path, "w").close()
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
