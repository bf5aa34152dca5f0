"""The API of clusterrun for the programs that it runs.

A task's Python program can be inspected from outside, with or without this package: with
`clusterrun stacks RUN`, or when the run's timeout expires. The capture contains the Python
stacks of all its threads, even while it is stuck in native code or waits for a lock, and of its
children. Outside a task the import does nothing, and a program that is started by hand, like
`python3 train.py`, is the only task. Its rank is 0 of 1, barriers do not wait, and reports are
dropped.

Programs find the package with

    PYTHONPATH=$(clusterrun task python --dir) clusterrun run -n 4 -- python3 train.py

unless pip has installed it, with or without the programs. Other programs can use it to start
runs:

    clusterrun.run(["-n", "4", "--", "python3", "train.py"], check=True)

A program meets the other tasks at a barrier, and can report about itself:

    import clusterrun

    @clusterrun.record                      # an exception is the task's error
    def train():
        clusterrun.barrier("data is loaded")
        for epoch in range(10):
            clusterrun.progress(epoch, 10, loss=0.3)
        clusterrun.result({"loss": 0.3})    # what the task returns

All tasks stop together when one requests it, and each exits on its own:

    try:
        while not clusterrun.should_stop():  # cheap enough for every step
            train_step()
    except Exception as e:
        clusterrun.request_stop(e)           # the first error is the error of the run
        raise

A program can offer functions that a coordinator schedules:

    @clusterrun.function
    def step(rate):
        ...

    clusterrun.serve()

and another task, such as the chief, can be that coordinator:

    coordinator = clusterrun.ClusterCoordinator()
    losses = [coordinator.schedule("step", args=(0.1,)) for _ in range(1000)]
    coordinator.join()
    print(coordinator.fetch(losses))

The package requires only Python 3.8 or later. Its setup never fails. A program that cannot
answer runs as if this package were missing.

How it works, for other languages: the environment names a signal and a file,

    CLUSTERRUN_STACK_SIGNAL   the number of the signal
    CLUSTERRUN_STACK_FILE     the file, to which a dot and the process ID are added

A process that has this file open for appending and handles the signal gets the signal, and must
then promptly append text to the file.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

from ._errors import BarrierTimeoutError, BrokenBarrierError, CancelledError, TaskError, UnavailableError
from ._json import loads
from .barrier import Barrier, barrier, get_barrier
from .coordinator import Coordinator
from .functions import function
from .looper import Looper, LooperThread
from .stacks import disable_stacks, enable_stacks
from .stop import StopError, preempted, request_stop, should_stop, wait_for_stop
from .task import cluster, error, info, main, progress, record, restart_count, result

__all__ = [
    "Barrier", "BarrierTimeoutError", "BrokenBarrierError", "CancelledError", "ClosureError", "ClusterCoordinator",
    "Coordinator", "InputError", "Looper", "LooperThread", "PerWorkerValues", "Pool", "RemoteValue",
    "RemoteValueStatus", "StopError", "TaskError", "UnavailableError", "WatchDog", "barrier", "cancelled",
    "cluster", "disable_stacks", "enable_stacks", "error", "function", "get_barrier", "handle_parameter_server_failure",
    "info", "loads", "main", "preempted", "progress", "record", "request_stop", "restart_count", "result", "run", "serve",
    "should_stop", "wait_for_stop",
]

# Most tasks do not use these. Their modules are the larger half of the package, so they are
# imported at first use.
_LATER = {
    "ClosureError": "remote", "ClusterCoordinator": "closures", "InputError": "remote", "PerWorkerValues": "remote",
    "Pool": "pool", "RemoteValue": "remote", "RemoteValueStatus": "remote", "WatchDog": "watchdog",
    "cancelled": "serving", "handle_parameter_server_failure": "closures", "run": "_run", "serve": "serving",
}

if TYPE_CHECKING:
    from ._run import run
    from .closures import ClusterCoordinator, handle_parameter_server_failure
    from .pool import Pool
    from .remote import ClosureError, InputError, PerWorkerValues, RemoteValue, RemoteValueStatus
    from .serving import cancelled, serve
    from .watchdog import WatchDog
else:

    def __getattr__(name: str) -> Any:
        if name not in _LATER:
            raise AttributeError("module %r has no attribute %r" % (__name__, name))
        value = globals()[name] = getattr(import_module("." + _LATER[name], __name__), name)
        return value

    def __dir__() -> List[str]:
        return sorted(set(globals()) | set(__all__))


enable_stacks()
