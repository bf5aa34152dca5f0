"""What stands for the values, errors and resources of functions that were scheduled."""

import enum
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence

from ._errors import CancelledError, RemoteTraceback, UnavailableError

if TYPE_CHECKING:
    from .closures import ClusterCoordinator

TEXT_CANCELLED = "The corresponding function is cancelled. Please reschedule the function."
_TEXT_ABORTED = "The corresponding function is aborted. Please reschedule the function."


class ClosureError(Exception):
    """An error of a function that was scheduled. kind is the type that it had there.
    Where Python has such a type it is one of those, too: an error of the kind
    "ValueError" can be caught as ValueError, and as ClosureError. Then it has the args
    that it had there, and an OSError its errno and filename, where these are short.
    traceback is the one from there, task who called the function, and closure the ID of
    the call. It can be pickled."""

    __module__ = "clusterrun"

    def __init__(
        self, kind: str = "", message: str = "", traceback: str = "", task: str = "", closure: int = 0,
        args: Optional[Sequence[Any]] = None,
    ) -> None:
        BaseException.__init__(self, *((message,) if args is None else args))  # that of a kind may want something else
        if isinstance(self, OSError) and args is not None and len(args) > 1:
            self.args = tuple(args[:2])
            self.errno, self.strerror = self.args
            self.filename = args[2] if len(args) > 2 else None
            self.filename2 = args[4] if len(args) > 4 else None
        self._built_from = args
        self.kind = kind
        self.message = message
        self.traceback = traceback
        self.task = task
        self.closure = closure

    def __str__(self) -> str:
        if not self.kind or type(self) is not ClosureError:
            return self.message  # the type says the kind
        return "%s: %s" % (self.kind, self.message)

    def __reduce__(self) -> Any:
        # The types of kinds are nowhere to be found by their names.
        said = {
            "kind": self.kind, "message": self.message, "traceback": self.traceback, "task": self.task,
            "closure": self.closure, "args": self._built_from,
        }
        return closure_error, (said,)


class InputError(ClosureError):
    """A per-worker resource among the arguments of a function could not be built."""

    __module__ = "clusterrun"


_error_types: Dict[str, Any] = {}


def _error_type(kind: str) -> Any:
    """The type of errors of a kind."""
    found = _error_types.get(kind)
    if found is None:
        import builtins

        own = {
            "CancelledError": CancelledError, "UnavailableError": UnavailableError, "InputError": InputError,
            "ClosureTimeoutError": TimeoutError,
        }
        base = own.get(kind) or getattr(builtins, kind, None)
        if not isinstance(base, type) or not issubclass(base, (Exception, CancelledError)):
            return ClosureError
        if issubclass(base, ClosureError):
            found = base
        else:
            found = type(kind, (ClosureError, base), {"__module__": ClosureError.__module__, "__doc__": ClosureError.__doc__})
        _error_types[kind] = found
    return found


def closure_error(said: Dict[str, Any]) -> ClosureError:
    kind, message = said.get("kind", ""), said.get("message", "")
    values = (kind, message, said.get("traceback", ""), said.get("task", ""), said.get("closure", 0), said.get("args"))
    try:
        error: ClosureError = _error_type(kind)(*values)
    except TypeError:  # a group of exceptions
        error = ClosureError(*values)
    if error.traceback:
        error.__cause__ = RemoteTraceback("\n\n%s: %s" % (error.task, error.traceback))
    return error


class RemoteValueStatus(enum.Enum):
    """Where the value of a closure is."""

    __module__ = "clusterrun"

    NOT_READY = "NOT_READY"
    ABORTED = "ABORTED"  # nobody will know it: the run has ended, or this is a forked child
    READY = "READY"  # a value, or an error


class RemoteValue:
    """What a function that was scheduled returns, once it does."""

    __module__ = "clusterrun"

    __slots__ = ("_coordinator", "_id", "_status", "_value", "_error", "__weakref__")

    def __init__(self, coordinator: "ClusterCoordinator") -> None:
        self._coordinator = coordinator
        self._id = 0
        self._status = RemoteValueStatus.NOT_READY
        self._value: Any = None
        self._error: Optional[Dict[str, Any]] = None

    @property
    def status(self) -> RemoteValueStatus:
        """Whether it is there."""
        return self._status

    @property
    def id(self) -> Optional[int]:
        """The ID of the closure, once the queue has it."""
        return self._id or None

    def fetch(self, timeout: Optional[float] = None) -> Any:
        """Wait for the value. An error of the function is raised as a ClosureError.
        CancelledError: it was cancelled, because another one failed or on request.
        With a timeout, TimeoutError."""
        return self._coordinator._session.fetch(self, timeout)

    get = fetch

    def __repr__(self) -> str:
        return "<RemoteValue of closure %s: %s>" % (self._id or "?", self._status.value)

    def _settle(self, said: Dict[str, Any]) -> None:
        self._error = said.get("error")
        if self._error is None and said.get("kind") == "cancelled":
            self._error = {"kind": "CancelledError", "message": TEXT_CANCELLED, "closure": said["id"]}
        self._value = said.get("value")
        self._status = RemoteValueStatus.READY

    def _abort(self) -> None:
        self._error = {"kind": "CancelledError", "message": _TEXT_ABORTED, "closure": self._id}
        self._status = RemoteValueStatus.ABORTED


class PerWorkerValues:
    """A per-worker resource. As an argument of a function it stands for what the task
    that calls the function has built.

    When nothing in this process refers to it any more, and the functions that were
    scheduled with it have ended, the tasks drop what they have built. One that was
    unpickled, or made from an ID, only names the resource: it does not keep it, and
    once that is gone, functions with it are refused."""

    __module__ = "clusterrun"

    __slots__ = ("_id", "_coordinator", "__weakref__")

    def __init__(self, resource: int, coordinator: Optional["ClusterCoordinator"] = None) -> None:
        self._id = resource
        self._coordinator = coordinator
        if coordinator is not None:
            coordinator._session.keep(self)

    def __copy__(self) -> "PerWorkerValues":
        return self

    def __deepcopy__(self, memo: Any) -> "PerWorkerValues":
        return self

    def __reduce__(self) -> Any:
        return type(self), (self._id,)

    def __repr__(self) -> str:
        return "<PerWorkerValues of resource %d>" % self._id


class PerWorkerDataset:
    """A dataset of each worker; see ClusterCoordinator.create_per_worker_dataset."""

    def __init__(self, coordinator: "ClusterCoordinator", fn: Any, args: Any, kwargs: Any) -> None:
        self._coordinator = coordinator
        self._what = (fn, args, kwargs)

    def __iter__(self) -> "PerWorkerIterator":
        return self._coordinator._create(PerWorkerIterator, *self._what)


class PerWorkerIterator(PerWorkerValues):
    __slots__ = ()

    def __iter__(self) -> "PerWorkerIterator":
        return self

    def __next__(self) -> Any:
        raise NotImplementedError("Iterating over an `AsyncDistributedIterator` is not supported right now.")
