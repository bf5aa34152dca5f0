"""A pool's requests to its tasks, and their outcomes."""

from typing import Any, Dict, List, Mapping, Optional

from ._arguments import arguments
from ._json import to_json
from .remote import TEXT_CANCELLED


def tasks_of(cluster: Any) -> List[Dict[str, Any]]:
    """Return a cluster's groups of tasks."""
    if isinstance(cluster, int) and not isinstance(cluster, bool):
        cluster = {"worker": cluster}
    if not isinstance(cluster, Mapping) or not cluster:
        raise TypeError("cluster is %r; use a number of workers, or a dict such as {'worker': 2}" % (cluster,))
    groups: List[Dict[str, Any]] = []
    for kind, members in cluster.items():
        if isinstance(members, int) and not isinstance(members, bool):
            groups.append({"type": kind, "count": members})
        elif isinstance(members, (list, tuple)):
            groups.append({"type": kind, "addresses": [str(a) for a in members]})
        else:
            raise TypeError("cluster[%r] is %r; use a number, or a list of addresses" % (kind, members))
    if sum(size_of(g) for g in groups) == 0:
        raise ValueError("cluster has no tasks")
    if sum(size_of(g) for g in groups if g["type"] == "chief") > 1:
        raise ValueError("cluster has %d chiefs; at most one is allowed" % sum(size_of(g) for g in groups if g["type"] == "chief"))
    return groups


def size_of(group: Dict[str, Any]) -> int:
    size: int = group["count"] if "count" in group else len(group["addresses"])
    return size


def closures_of(groups: List[Dict[str, Any]], name: str, args: Any, kwargs: Any) -> List[bytes]:
    """Return closures that call the function once in each task. A call for a specific task is
    never repeated."""
    raw, _ = arguments(name, args, kwargs)
    return [
        ('{"function":%s%s,"task":"%s-%d"}' % (to_json(name), raw, group["type"], i)).encode()
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
