"""Thousands of closures."""

import collections

from . import DIR, scenario


@scenario
def many(c, name, first, n, seconds):
    """Schedules the squares of n numbers, each of them once, however often this is begun,
    and fetches them all."""
    values = [c.schedule("square", args=(i, seconds), key="%s-%d" % (name, i)) for i in range(first, first + n)]
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
