"""A coordinator that makes one iterator after another."""

import os
import time

import clusterrun

DIR = os.environ["DIR"]


def say(name):
    with open(os.path.join(DIR, name), "w") as f:
        f.write(name)


def wait(name):
    while not os.path.exists(os.path.join(DIR, name)):
        time.sleep(0.01)


coordinator = clusterrun.ClusterCoordinator()
dataset = coordinator.create_per_worker_dataset("rows")
for _ in range(200):
    iterator = iter(dataset)
    taken = coordinator.fetch([coordinator.schedule("row", (iterator,)) for _ in range(3)])
    by_task = {}
    for task, n in taken:
        by_task.setdefault(task, []).append(n)
    for task, numbers in by_task.items():  # each begins anew, and keeps its position
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), (task, numbers)
say("one-left")
wait("go-on")
del iterator
say("none-left")
wait("end")
