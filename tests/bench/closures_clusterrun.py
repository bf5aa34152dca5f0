"""The same with a run's chief as the coordinator, for four workers."""
import os
import sys
import time

import clusterrun

@clusterrun.function
def f(n):
    return n

if os.environ["CLUSTERRUN_TASK_TYPE"] != "chief":
    clusterrun.serve()
else:
    coordinator = clusterrun.ClusterCoordinator()
    for i in range(100):
        coordinator.schedule(f, args=(i,)).fetch()
    took = []
    for i in range(200):
        started = time.perf_counter()
        coordinator.schedule(f, args=(i,)).fetch()
        took.append(time.perf_counter() - started)
    count = 5000
    started = time.perf_counter()
    values = [coordinator.schedule(f, args=(i,)) for i in range(count)]
    assert coordinator.fetch(values) == list(range(count))
    with open(sys.argv[1], "w") as figures:
        print(count / (time.perf_counter() - started), sorted(took)[100], file=figures)
