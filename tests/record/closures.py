# A chief schedules closures, and workers call them.
import os

import clusterrun


@clusterrun.function
def square(x):
    if x < 0:
        raise ValueError("negative")
    return x * x


if os.environ["CLUSTERRUN_TASK"] == "chief-0":
    c = clusterrun.ClusterCoordinator()
    values = [c.schedule(square, args=(i,)) for i in range(200)]
    c.join()
    print(sum(c.fetch(values)))
    c.schedule(square, args=(-1,))
    try:
        c.join()
    except ValueError:
        pass
else:
    clusterrun.serve()
