"""What a task reports to its host, and asks about the run."""

import functools
import json
import math
import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional, TypeVar, Union

from ._errors import TaskError, describe, message_of, number
from ._json import encode
from ._transport import PATIENCE, Away, ask, find_host

_MAX_RESULT = 256 << 10
_PROGRESS_EVERY = 0.1
_PROGRESS_PATIENCE = 1.0


def result(value: Any) -> None:
    """Set the task's return value, replacing any earlier one. It counts if the process exits
    with 0. Any value is stored as JSON: NaN and the infinities as {"$clusterrun.number":
    "NaN"}, bytes as {"$clusterrun.bytes": BASE64}, which loads restores; sets and arrays as
    lists, dataclasses as objects; and anything else as text, with a warning that names the
    field. A value larger than 256 KiB stays in a file on the host, and the run's result
    contains its path. It does nothing outside a task."""
    body = encode(value, "the result")
    if find_host() is None:
        return
    path = os.environ.get("CLUSTERRUN_RESULT_FILE")
    if len(body) > _MAX_RESULT and path:
        _keep(path, body)
        return
    try:
        ask("PUT", "/v1/result", body.decode())
    except TaskError as e:
        if e.code != "away" or not path:
            raise
        _keep(path, body)  # as the host would have


def _keep(path: str, body: bytes) -> None:
    """Write a file that users who may read its directory may read."""
    new = "%s.%d.new" % (path, os.getpid())
    mode = 0o600 | os.stat(os.path.dirname(path)).st_mode & 0o044
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as f:
        f.write(body)
    os.replace(new, path)


def error(what: Union[BaseException, str], kind: str = "") -> None:
    """Report why the program is about to fail: an exception, with its traceback, or a string.
    It replaces any earlier report, and counts if the process does not exit with 0. It does
    nothing outside a task."""
    if find_host() is not None:
        _report(what, kind)


def _report(what: Union[BaseException, str], kind: str, patience: float = PATIENCE) -> None:
    own, message, stack = describe(what if isinstance(what, BaseException) else message_of(what))
    kind = kind or own
    now = time.time()
    try:
        body = {"kind": kind, "message": message, "traceback": stack, "timestamp": now}
        ask("PUT", "/v1/error", json.dumps(body), patience)
    except (TaskError, ValueError, OSError) as e:
        path = os.environ.get("CLUSTERRUN_ERROR_FILE") or os.environ.get("TORCHELASTIC_ERROR_FILE")
        if not path or getattr(e, "code", "away") != "away":
            raise
        _write_error_file(path, "%s: %s" % (kind, message) if kind else message, stack, now)


def _write_error_file(path: str, message: str, stack: str, now: float) -> None:
    """Write what the host would have written, if the host cannot be asked."""
    extra = {"py_callstack": stack, "timestamp": str(int(now))}
    new = "%s.%d.new" % (path, os.getpid())
    with open(new, "w") as f:
        json.dump({"message": {"message": message, "extraInfo": extra}}, f)
    os.replace(new, path)


def progress(current: float, total: Optional[float] = None, message: str = "", **metrics: float) -> None:
    """Report the task's progress, which people see while the task runs. Up to eight more numbers,
    such as loss=0.3, are recorded over time and can sort a sweep's trials. NaN and infinities are
    omitted. It is cheap to call often. At most ten updates a second are sent, and always the
    update that reaches the total. If the host is away for longer than a second, the update is
    dropped. NaN and the infinities count as 0, which for a total means unknown. It does nothing
    outside a task."""
    host = find_host()
    if host is None:
        return
    current = number("current", current)
    total = number("total", total or 0)
    now = time.monotonic()
    if now - host.progress_sent < _PROGRESS_EVERY and not (total and current >= total):
        return
    host.progress_sent = now
    body = {"current": _finite(current), "total": _finite(total), "message": message_of(message)[:1000]}
    numbers = {name: number(name, value) for name, value in metrics.items()}
    if numbers:
        body["metrics"] = {name: value for name, value in numbers.items() if math.isfinite(value)}
    try:
        host.call("PUT", "/v1/progress", json.dumps(body).encode(), _PROGRESS_PATIENCE)
    except Away:
        pass  # a later update will arrive


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def cluster() -> List[Dict[str, Any]]:
    """Return all tasks of the cluster, in rank order: task, type, index, rank, local_rank, host
    and address. Outside a task, the process is the only task of its cluster."""
    if find_host() is None:
        alone = info()
        return [{k: alone[k] for k in ("task", "type", "index", "rank", "local_rank", "host", "address")}]
    members: List[Dict[str, Any]] = ask("GET", "/v1/cluster")["members"]
    return members


def info() -> Dict[str, Any]:
    """Return which task of which run this is, and where: run, execution, task, type, index,
    rank, local_rank, world_size, local_world_size, restart_count, generation, host and address.
    Outside a task, the process is the only one of an unnamed run."""
    if find_host() is None:
        return {
            "run": "", "execution": "", "task": "worker-0", "type": "worker", "index": 0, "rank": 0, "local_rank": 0,
            "world_size": 1, "local_world_size": 1, "restart_count": 0, "generation": 0, "host": os.uname().nodename,
            "address": "localhost:0",
        }
    return ask("GET", "/v1/task")


def restart_count() -> int:
    """Return the number of the task's earlier processes; 0 outside a task."""
    return int(os.environ.get("CLUSTERRUN_RESTART_COUNT") or 0)


_F = TypeVar("_F", bound=Callable[..., Any])

_REPORT_PATIENCE = 2.0  # seconds before the error is written directly to its file


def record(fn: _F) -> _F:
    """A decorator for a program's main function. An exception that leaves it is reported as the
    task's error before it propagates. It does nothing outside a task."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except Exception as e:
            try:
                _report(e, "", _REPORT_PATIENCE)
            except Exception:  # the exception itself matters more
                pass
            raise

    return wrapper  # type: ignore[return-value]


def main(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run a program's main function. Its value is the task's result, unless it is None, and an
    exception that leaves it is the task's error. A result that cannot be stored is only
    reported on stderr, because the function has done its work. Outside a task it only runs the
    function and returns its value."""
    value = record(fn)(*args, **kwargs)
    if value is not None and find_host() is not None:
        try:
            result(value)
        except Exception as e:
            sys.stderr.write("clusterrun: the result is lost: %s\n" % e)
    return value
