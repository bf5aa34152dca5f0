"""Represents the values, errors and resources of scheduled functions."""

import enum
from typing import TYPE_CHECKING, Any, Dict, Optional, Sequence

from ._errors import CancelledError, RemoteTraceback, UnavailableError

if TYPE_CHECKING:
    from .closures import ClusterCoordinator

TEXT_CANCELLED = "The corresponding function is cancelled. Please reschedule the function."
_TEXT_ABORTED = "The corresponding function is aborted. Please reschedule the function."


class ClosureError(Exception):
    """An error of a scheduled function, or of one in a pool. kind is the name of its type on the
    task. If Python has that type, the error is also an instance of it, so an error of kind
    "ValueError" can be caught as ValueError and as ClosureError. traceback is the original
    traceback, task the task that called the function, and closure the closure's ID. The error can
    be pickled."""

    __module__ = "clusterrun"

    def __init__(self, kind: str = "", message: str = "", traceback: str = "", task: str = "", closure: int = 0) -> None:
        BaseException.__init__(self, message)  # a built-in type may require other arguments
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
        return closure_error, (dict(vars(self)),)  # the types of kinds cannot be looked up by name


class InputError(ClosureError):
    """A per-worker resource in a function's arguments could not be built."""

    __module__ = "clusterrun"


_error_types: Dict[str, Any] = {}


def _error_type(kind: str) -> Any:
    """Return the type for a kind of error."""
    found = _error_types.get(kind)
    if found is None:
        import builtins

        own = {
            "CancelledError": CancelledError, "UnavailableError": UnavailableError, "InputError": InputError,
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
    values = (kind, message, said.get("traceback", ""), said.get("task", ""), said.get("closure", 0))
    try:
        error: ClosureError = _error_type(kind)(*values)
    except TypeError:  # an exception group
        error = ClosureError(*values)
    if error.traceback:
        error.__cause__ = RemoteTraceback("\n\n%s: %s" % (error.task, error.traceback))
    return error


class RemoteValueStatus(enum.Enum):
    """The status of a closure's value."""

    __module__ = "clusterrun"

    NOT_READY = "NOT_READY"
    ABORTED = "ABORTED"  # it will never arrive: the run has ended, or this is a forked child
    READY = "READY"  # a value, or an error


class RemoteValue:
    """The value of a scheduled function, once it has returned."""

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
        """Whether the value is known."""
        return self._status

    def fetch(self, timeout: Optional[float] = None) -> Any:
        """Wait for the value. A function's error is raised as a ClosureError, or as
        CancelledError if it was cancelled, on request or because another function failed. On
        timeout, TimeoutError is raised."""
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
    """A per-worker resource. As a function's argument, it stands for what the task that calls
    the function has built.

    When this process no longer refers to it, and the functions scheduled with it have ended,
    the tasks drop what they built, with the next functions that they receive. An unpickled copy
    does not keep it; a task that has dropped it rebuilds it."""

    __module__ = "clusterrun"

    __slots__ = ("_id", "_definition", "_coordinator", "__weakref__")

    def __init__(self, resource: int, definition: bytes, coordinator: Optional["ClusterCoordinator"] = None) -> None:
        self._id = resource
        self._definition = definition
        self._coordinator = coordinator
        if coordinator is not None:
            coordinator._session.keep(self)

    def __copy__(self) -> "PerWorkerValues":
        return self

    def __deepcopy__(self, memo: Any) -> "PerWorkerValues":
        return self

    def __reduce__(self) -> Any:
        return type(self), (self._id, self._definition)

    def __repr__(self) -> str:
        return "<PerWorkerValues of resource %d>" % self._id


class PerWorkerDataset:
    """A dataset for each worker; see ClusterCoordinator.create_per_worker_dataset."""

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
