"""Computes pi on the workers of a run: the chief coordinates, the others serve."""
import os
import random

import clusterrun

@clusterrun.function
def inside(points, seed):
    """How many random points of the square lie in the circle."""
    rng = random.Random(seed)
    return sum(rng.random() ** 2 + rng.random() ** 2 < 1 for _ in range(points))

@clusterrun.function
def load(path):                                # once in each process that needs it
    return {"path": path, "used": 0}

@clusterrun.function
def use(data):
    data["used"] += 1
    return data["path"]

def coordinate():
    coordinator = clusterrun.ClusterCoordinator()
    counts = [coordinator.schedule(inside, args=(10_000, seed)) for seed in range(200)]
    coordinator.join()                         # all have been called
    print("pi is about %.3f" % (4 * sum(coordinator.fetch(counts)) / 2_000_000))

    data = coordinator.create_per_worker_resource(load, args=("iris.csv",))
    print(coordinator.schedule(use, args=(data,)).fetch())

    coordinator.schedule(inside, args=("many", 0))
    try:
        coordinator.join()
    except TypeError as e:                     # its __cause__ has the traceback of the worker
        print("a function failed:", e)

if os.environ["CLUSTERRUN_TASK_TYPE"] == "chief":
    coordinate()                               # the run ends with the chief
else:
    clusterrun.serve()
