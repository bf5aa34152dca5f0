"""A pool's requests to its tasks, and their outcomes."""

import json
import re
from typing import Any, Dict, List, Mapping, Optional

from ._errors import RemoteTraceback
from ._json import encode_arguments
from .remote import TEXT_CANCELLED

_TASK_TYPE = r"[a-z][a-z0-9_]*(-[a-z][a-z0-9_]*)*"


def tasks_of(cluster: Any) -> List[Dict[str, Any]]:
    """Return a cluster's groups of tasks."""
    if isinstance(cluster, int) and not isinstance(cluster, bool):
        cluster = {"worker": cluster}
    if not isinstance(cluster, Mapping) or not cluster:
        raise TypeError("cluster is %r; want a number of workers, or a dict such as {'worker': 2}" % (cluster,))
    groups: List[Dict[str, Any]] = []
    for kind, members in cluster.items():
        if not isinstance(kind, str) or not re.fullmatch(_TASK_TYPE, kind):
            raise ValueError("%r is not a task type; use lower-case letters, digits and _, and words joined by -" % (kind,))
        if isinstance(members, int) and not isinstance(members, bool):
            if members < 0:
                raise ValueError("cluster[%r] is %d; want how many there are" % (kind, members))
            groups.append({"type": kind, "count": members})
        elif isinstance(members, (list, tuple)):
            groups.append({"type": kind, "addresses": [str(a) for a in members]})
        else:
            raise TypeError("cluster[%r] is %r; want a number, or a list of addresses" % (kind, members))
    if sum(size_of(g) for g in groups) == 0:
        raise ValueError("cluster has no tasks")
    if sum(size_of(g) for g in groups if g["type"] == "chief") > 1:
        raise ValueError("cluster has %d chiefs; there can be one" % sum(size_of(g) for g in groups if g["type"] == "chief"))
    return groups


def size_of(group: Dict[str, Any]) -> int:
    size: int = group["count"] if "count" in group else len(group["addresses"])
    return size


def closures_of(groups: List[Dict[str, Any]], name: str, args: Any, kwargs: Any) -> List[Dict[str, Any]]:
    """Return closures that call the function once in each task. A call for a specific task is
    never repeated."""
    if not isinstance(args, (tuple, list)):
        raise TypeError("args is %r; want a tuple of arguments, such as (%r,)" % (args, args))
    if not isinstance(kwargs, Mapping):
        raise TypeError("kwargs is %r; want a dict of arguments by name" % (kwargs,))

    def refuse(value: Any) -> Any:
        raise TypeError("%r is not JSON" % (value,))

    try:
        args, kwargs = json.loads(encode_arguments([list(args), dict(kwargs)], refuse))
    except (TypeError, ValueError, RecursionError) as e:
        raise TypeError("the arguments of %s are not JSON: %s" % (name, e)) from None
    return [
        {"function": name, "args": args, "kwargs": kwargs, "task": "%s-%d" % (group["type"], i)}
        for group in groups for i in range(size_of(group))
    ]


def failure_of(outcome: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """Return an outcome's error, if any."""
    if outcome.get("kind", "value") == "value":
        return None
    error: Dict[str, Any] = outcome.get("error") or {"kind": "CancelledError", "message": TEXT_CANCELLED}
    return error


def is_lost(error: Optional[Dict[str, Any]]) -> bool:
    """Return whether an error means that the call's effect is unknown: its process or the run
    has ended."""
    if error is None or error.get("traceback"):
        return False
    kind = error.get("kind")
    return kind in ("QuarantinedError", "WorkerLostError", "NotFoundError") or (kind == "CancelledError" and not error.get("task"))


class PoolError(RuntimeError):
    """An error of a function in a pool's process with a type that is not built into Python;
    kind is its name. Built-in error types are raised as such. task is the failed task, and the
    remote traceback is the cause."""

    __module__ = "clusterrun"

    def __init__(self, message: str, kind: str = "", task: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.task = task


def error_of(said: Dict[str, Any]) -> BaseException:
    """Return the exception for a function's error."""
    import builtins

    kind, message = said.get("kind", ""), said.get("message", "")
    known = ValueError if kind == "UnknownFunctionError" else getattr(builtins, kind, None)
    error: BaseException
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            error = known(*said.get("args", (message,)))
        except TypeError:  # a type with special arguments, such as UnicodeDecodeError
            error = PoolError(message, kind, said.get("task", ""))
    else:
        error = PoolError(message, kind, said.get("task", ""))
    if said.get("traceback"):
        error.__cause__ = RemoteTraceback("\n\n%s: %s" % (said.get("task", ""), said["traceback"]))
    return error
