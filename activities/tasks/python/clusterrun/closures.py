"""Coordinating: a program schedules functions on the serving tasks."""

import atexit
import contextlib
import os
import random
import sys
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Sequence, Type, TypeVar, Union

from ._arguments import arguments
from ._errors import UnavailableError, seconds
from ._json import to_json
from ._session import FLUSH_PATIENCE, Session, building, sessions
from ._transport import in_forked_children
from .functions import name_to_schedule
from .remote import PerWorkerDataset, PerWorkerValues, RemoteValue

_P = TypeVar("_P", bound=PerWorkerValues)


class ClusterCoordinator:
    """Lets the run's serving tasks call functions, like TensorFlow's ClusterCoordinator.

        @clusterrun.function
        def train(step, rate=0.1):
            ...
            return {"loss": loss}

        coordinator = clusterrun.ClusterCoordinator()
        values = [coordinator.schedule(train, args=(step,)) for step in range(1000)]
        coordinator.join()
        losses = coordinator.fetch(values)

    Any task can be the coordinator; usually it is the chief. The tasks that call the functions
    must have registered the same ones and serve; see serve. A function is called at least once:
    if its task fails during the call, another task calls it again.

    A function's first error is raised by the next schedule, join or done, even if a fetch has
    already raised it. By then everything queued has been cancelled, and nothing is executing.
    After that, functions can be scheduled again.

    The queue belongs to the run, and outlives this process and the coordinator. Scheduled
    functions are still called, and the next process's join waits for them. Only the process
    that scheduled a function gets its value. All coordinators of a program are the same object.
    Several threads may use it. If functions are unfinished but none ends for watchdog seconds,
    this process's stacks are written to stderr; see WatchDog.
    """

    __module__ = "clusterrun"

    _session: "Session"
    strategy: Any

    def __new__(cls, strategy: Any = None, *, watchdog: Optional[float] = None) -> "ClusterCoordinator":
        global _coordinator
        path = os.environ.get("CLUSTERRUN_SOCKET", "")
        if not path:
            raise ValueError(
                "a ClusterCoordinator is for tasks: CLUSTERRUN_SOCKET is not set, clusterrun did not start this process"
            )
        with _coordinator_lock:
            self = _coordinator() if _coordinator is not None else None
            if self is None or self._session.path != path or self._session.over:
                self = super().__new__(cls)
                self.strategy = strategy
                self._session = session = Session(path)
                weakref.finalize(self, session.close).atexit = False  # which sends what is unsent
                _coordinator = weakref.ref(self)
        self._session.watch(watchdog)
        return self

    def schedule(
        self,
        fn: Union[str, Callable[..., Any]],
        args: Optional[Sequence[Any]] = None,
        kwargs: Optional[Mapping[str, Any]] = None,
    ) -> RemoteValue:
        """Schedule a function for some task, and immediately return a RemoteValue for its
        value. While the queue is full, or another thread joins, it waits. StopError is raised
        when the run's tasks are to stop, since the serving tasks then exit.

        fn is a registered function or its name. Arguments are JSON values, with tuples turned
        into lists, NaN, the infinities, bytes, and PerWorkerValues.

        A function that loses its task during more than ten calls is not called again; that is
        an error. If a chief handles that error and exits before the task has been restarted,
        the run still fails because of the loss.
        """
        name = name_to_schedule(fn)
        raw, resources = arguments(name, args, kwargs)
        return self._session.schedule(self, '{"function":%s%s}' % (to_json(name), raw), resources)

    def join(self) -> None:
        """Wait until all scheduled functions have ended. Raise the first error, if any, once
        nothing is executing. Raise StopError if the run's tasks are to stop and some functions
        have not ended: they may never be called."""
        self._session.join()

    def done(self) -> bool:
        """Return whether all scheduled functions have ended. Raise the first error, if any,
        once nothing is executing."""
        return self._session.done()

    def fetch(self, val: Any, timeout: Optional[float] = None) -> Any:
        """Wait for a RemoteValue, or for all those in a structure of tuples, lists and dicts,
        and return it with the values in place. Anything else is returned unchanged. Raise
        StopError if the run's tasks are to stop and a function has not ended."""
        end = None if timeout is None else time.monotonic() + seconds("timeout", timeout)

        def one(value: Any) -> Any:
            if isinstance(value, RemoteValue):
                return value.fetch(None if end is None else max(0.0, end - time.monotonic()))
            if isinstance(value, tuple):
                values = [one(v) for v in value]
                return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
            if isinstance(value, list):
                return [one(v) for v in value]
            if isinstance(value, dict):
                return {k: one(v) for k, v in value.items()}
            return value

        return one(val)

    def create_per_worker_resource(
        self, fn: Union[str, Callable[..., Any]], args: Optional[Sequence[Any]] = None, kwargs: Optional[Mapping[str, Any]] = None
    ) -> PerWorkerValues:
        """Create a registered function's value in each task, for use as an argument of
        scheduled functions. A process builds it when it first calls one of those, and keeps it
        as long as this process refers to the PerWorkerValues."""
        return self._create(PerWorkerValues, fn, args, kwargs)

    def _create(self, what: Type[_P], fn: Any, args: Any, kwargs: Any) -> _P:
        if building():
            raise ValueError("Creating a per-worker resource in the function of one is not allowed.")
        name = name_to_schedule(fn)
        raw, resources = arguments(name, args, kwargs)
        if resources:
            raise ValueError("the arguments of %s: a per-worker resource cannot be an argument of another" % name)
        key = random.SystemRandom().randrange(1, 1 << 53)
        return what(key, ('{"id":%d,"function":%s%s}' % (key, to_json(name), raw)).encode(), self)

    def create_per_worker_dataset(
        self, dataset_fn: Union[str, Callable[..., Any]], args: Optional[Sequence[Any]] = None, kwargs: Optional[Mapping[str, Any]] = None
    ) -> PerWorkerDataset:
        """Create a dataset for each worker. dataset_fn is a registered function that returns an
        iterator, such as a generator function. iter() of the dataset is a per-worker resource
        that supplies functions with the next element. Each iter() starts over, and unreferenced
        iterators are dropped."""
        name_to_schedule(dataset_fn)
        return PerWorkerDataset(self, dataset_fn, args, kwargs)

    def metrics(self) -> Dict[str, int]:
        """Return this process's counters: closure_execution counts ended functions, and
        remote_value_fetch counts received values."""
        return self._session.metrics()


_coordinator: Optional["weakref.ref[ClusterCoordinator]"] = None
_coordinator_lock = threading.RLock()


@contextlib.contextmanager
def handle_parameter_server_failure() -> Iterator[None]:
    """A context manager for a program that cannot continue without a parameter server. It exits
    with the code in TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE, if set. The code shows the program's
    restarter that this is not a program error.

        with clusterrun.handle_parameter_server_failure():
            coordinator.join()
    """
    try:
        yield
    except UnavailableError as e:
        code = os.environ.get("TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE")
        if code is None:
            raise
        print("A parameter server does not answer, and the program ends with exit code %s: %s" % (code, e), file=sys.stderr)
        sys.exit(int(code))


@atexit.register
def _flush_sessions() -> None:
    end = time.monotonic() + FLUSH_PATIENCE
    for session in list(sessions):
        session.flush(end)


@in_forked_children
def _forget_coordinator() -> None:
    global _coordinator, _coordinator_lock
    _coordinator, _coordinator_lock = None, threading.RLock()
