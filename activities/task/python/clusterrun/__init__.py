"""What a program that clusterrun runs can ask of it.

Importing this module inside a task makes the program answer when somebody asks
what it is doing: with `clusterrun stacks RUN`, or when the timeout of the run has
passed. The capture then has the Python stacks of all its threads, also while it is
stuck in native code or waits for a lock. Forked children answer for themselves.
Outside of a task the import does nothing.

Programs find the module with

    PYTHONPATH=$(clusterrun task python --dir) clusterrun run -n 4 -- python3 train.py

With the other tasks a program meets at a barrier, and it has something to say of
itself:

    import clusterrun

    @clusterrun.record                      # an exception is the task's error
    def train():
        clusterrun.barrier("data is loaded")
        for epoch in range(10):
            clusterrun.progress(epoch, 10, "loss 0.3")
        clusterrun.result({"loss": 0.3})    # what the task returns

All tasks stop together when one of them asks for it, and each ends by itself:

    try:
        while not clusterrun.should_stop():  # cheap enough for every step
            train_step()
    except Exception as e:
        clusterrun.request_stop(e)           # the first error is that of the run
        raise

It can offer functions that a coordinator schedules:

    @clusterrun.function
    def step(rate):
        ...

    clusterrun.serve()

and another task, such as the chief, can be that coordinator:

    coordinator = clusterrun.ClusterCoordinator()
    losses = [coordinator.schedule("step", args=(0.1,)) for _ in range(1000)]
    coordinator.join()
    print(coordinator.fetch(losses))

It needs Python 3.8 or later, and nothing else. No set-up in here ever fails: a
program that cannot answer runs as it would without this module.

How it works, for other languages: the environment names a signal and a file,

    CLUSTERRUN_STACK_SIGNAL   the number of the signal
    CLUSTERRUN_STACK_FILE     the file, to which a dot and the process ID are added

A process that has this file open for appending and handles the signal is sent
it, and is to append text to the file, promptly.
"""

import atexit
import collections
import contextlib
import enum
import functools
import itertools
import json
import math
import os
import select
import signal
import socket
import sys
import threading
import time
import weakref
from types import TracebackType
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Type, TypeVar, Union,
)
from urllib.parse import quote

from . import _binary

__all__ = ["Coordinator", "Looper", "LooperThread", "disable_stacks", "enable_stacks"]

# ----------------------------------------------------------------------------
# Asking the host: barriers, the result, errors, progress, the cluster

__all__ += [
    "Barrier", "BarrierTimeoutError", "BrokenBarrierError", "TaskError",
    "barrier", "cluster", "error", "get_barrier", "info", "main", "progress", "record",
    "restart_count", "result",
]

_NOT_A_TASK = (
    "barrier is not defined. It is likely because you are calling get_barrier() in the "
    "main process. get_barrier() can only be called in the subprocesses. "
    "(CLUSTERRUN_SOCKET is not set: clusterrun did not start this process.)"
)
_PATIENCE = 60.0  # seconds for a host that is away for a moment
_ANSWER_SLACK = 5.0  # how much later than a timeout the host may say that it passed
_FIRST_RETRY, _LAST_RETRY = 0.005, 0.5
_MAX_MESSAGE, _MAX_TRACEBACK = 64 << 10, 256 << 10
_MAX_NAME = 200  # bytes
_PROGRESS_EVERY = 0.1
_PROGRESS_PATIENCE = 1.0


class TaskError(RuntimeError):
    """The host refuses a request, or does not answer. code is for programs, such as
    "too_large"; field is the field of the request that is wrong, if it is one."""

    def __init__(self, message: str, code: str = "", field: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.field = field


class BrokenBarrierError(threading.BrokenBarrierError):
    """A barrier broke: all who waited at it are told. missing are the participants
    that had not arrived, and arrived those that had."""

    def __init__(self, message: str, arrived: Sequence[str] = (), missing: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.arrived = list(arrived)
        self.missing = list(missing)


class BarrierTimeoutError(BrokenBarrierError, TimeoutError):
    """A barrier broke because the timeout of somebody who waited had passed."""


class _Away(Exception):
    """The host did not answer in the time there was."""


class _Host:
    """The host, as its task reaches it. Each request has a connection for itself,
    which is kept for the next one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.idle: List[socket.socket] = []
        self.key = "%x.%s." % (os.getpid(), os.urandom(8).hex())
        # No lock: the handler of a signal may ask while its thread would hold it.
        self.keys = itertools.count(1)
        self.progress_sent = -1.0
        self.watch = _Watch(self)

    def new_key(self) -> str:
        return self.key + str(next(self.keys))

    def call(self, method: str, path: str, raw: bytes, patience: float) -> Dict[str, Any]:
        head = _head(method, path)
        return self.exchange(head, lambda: raw, time.monotonic() + patience)

    def exchange(self, head: bytes, body: Callable[[], bytes], deadline: Optional[float]) -> Dict[str, Any]:
        """Send a request until there is an answer; _Away when the time has passed."""
        delay = _FIRST_RETRY
        while True:
            reused = False
            raw = body()
            try:
                try:
                    connection, reused = self.idle.pop(), True
                except IndexError:
                    connection = self.connect(deadline)
                try:
                    status, answer, keep = _exchange(connection, b"%s%d\r\n\r\n%s" % (head, len(raw), raw), deadline)
                except BaseException:  # KeyboardInterrupt, too: it withdraws an arrival
                    _close(connection)
                    raise
            except socket.timeout:
                raise _Away("it did not answer in time") from None
            except (ConnectionError, FileNotFoundError, BlockingIOError) as e:
                # Its half that answers is being started again, or is busy.
                if reused:
                    continue
                if deadline is not None and time.monotonic() + delay >= deadline:
                    raise _Away(str(e)) from None
                time.sleep(delay)
                delay = min(2 * delay, _LAST_RETRY)
                continue
            except OSError:
                if reused:  # the program has closed all its descriptors, ours too
                    continue
                raise
            if keep and len(self.idle) < 4:
                self.idle.append(connection)
            else:
                _close(connection)
            if status == 200:
                return answer
            raise _problem(status, answer.get("error", {}))

    def connect(self, deadline: Optional[float]) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _set_timeout(connection, deadline)
            connection.connect(self.path)
        except BaseException:
            _close(connection)
            raise
        return connection


def _close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # somebody has closed its descriptor
        connection.close()


def _head(method: str, path: str) -> bytes:
    return ("%s %s HTTP/1.1\r\nHost: task\r\nContent-Length: " % (method, path)).encode()


def _set_timeout(connection: socket.socket, deadline: Optional[float]) -> None:
    # Setting it is a system call, so is waiting with one.
    if deadline is not None:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
    elif connection.gettimeout() is not None:
        connection.settimeout(None)


def _exchange(
    connection: socket.socket, request: bytes, deadline: Optional[float]
) -> Tuple[int, Dict[str, Any], bool]:
    """Send a request and read its answer: status, JSON, and whether the connection
    can be used again."""
    status, raw, keep = _exchange_raw(connection, request, deadline)
    return status, json.loads(raw.decode()), keep


def _exchange_raw(
    connection: socket.socket, request: bytes, deadline: Optional[float]
) -> Tuple[int, bytes, bool]:
    _set_timeout(connection, deadline)
    sent = True
    try:
        connection.sendall(request)
    except (BrokenPipeError, ConnectionResetError):
        sent = False  # it may have answered all the same, to refuse the request
    data = b""
    while True:
        head, found, rest = data.partition(b"\r\n\r\n")
        if found:
            break
        data += _receive(connection, deadline)
    lines = head.split(b"\r\n")
    status = int(lines[0].split(b" ", 2)[1])
    length, keep = -1, sent
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        name = name.lower()
        if name == b"content-length":
            length = int(value)
        elif name == b"connection" and value.strip().lower() == b"close":
            keep = False
    if length < 0:
        raise ConnectionResetError("the request is none the host understands (status %d)" % status)
    if len(rest) < length:
        body = bytearray(rest)
        while len(body) < length:
            body += _receive(connection, deadline)
        rest = bytes(body)
    return status, rest, keep


def _receive(connection: socket.socket, deadline: Optional[float]) -> bytes:
    if deadline is not None:
        _set_timeout(connection, deadline)
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError("the host closed the connection")
    return data


def _problem(status: int, problem: Dict[str, Any]) -> Exception:
    message = problem.get("message") or "the host answers with status %d" % status
    code = problem.get("code", "")
    standing = problem.get("barrier") or {}
    arrived, missing = standing.get("arrived", ()), standing.get("missing", ())
    if code == "barrier_timeout":
        return BarrierTimeoutError(message, arrived, missing)
    if code in ("barrier_broken", "barrier_withdrawn"):
        return BrokenBarrierError(message, arrived, missing)
    return TaskError(message, code, problem.get("field", ""))


_host: Optional[_Host] = None


def _get_host() -> _Host:
    global _host
    path = os.environ.get("CLUSTERRUN_SOCKET", "")
    if not path:
        raise ValueError(_NOT_A_TASK)
    if _host is None or _host.path != path:
        _host = _Host(path)
    return _host


def _forget_host() -> None:
    """A forked child has connections of its own, locks that nobody holds, and no
    thread that keeps up with the run."""
    global _host, _watch, _tied_lock
    _host = _watch = None
    _tied_lock = threading.RLock()
    for coord in list(_tied):
        coord._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_host)


def _ask(method: str, path: str, body: str = "", patience: float = _PATIENCE) -> Dict[str, Any]:
    host = _get_host()
    try:
        return host.call(method, path, body.encode(), patience)
    except _Away as e:
        raise TaskError("the host does not answer: %s" % e, "away") from None


class Barrier:
    """A barrier among tasks, which can be used again and again; see get_barrier."""

    def __init__(
        self,
        name: str = "default",
        timeout: Optional[float] = None,
        participants: Optional[Sequence[str]] = None,
        local: bool = False,
    ) -> None:
        _get_host()
        size = len(name.encode())
        if not 0 < size <= _MAX_NAME:
            raise ValueError("the name of a barrier has 1 to %d bytes; this one has %d" % (_MAX_NAME, size))
        if isinstance(participants, str):
            raise TypeError("participants is a list of names, not one name")
        self.name = name
        self.timeout = timeout
        self._path = "/v1/barriers/" + quote(name, safe="")
        self._head = _head("POST", self._path)
        self._more = ""
        if local:
            self._more += ',"local":true'
        if participants:
            self._more += ',"participants":' + json.dumps(list(participants))

    def wait(self, timeout: Optional[float] = None) -> int:
        """Wait until all participants have arrived. Returns the place of this task
        among them, from 0; BrokenBarrierError when the barrier breaks."""
        if timeout is None:
            timeout = self.timeout
        host = _get_host()
        key = host.new_key()
        if timeout is None:
            raw = ('{"key":"%s"%s}' % (key, self._more)).encode()
            index = _arrive(host, b"%s%d\r\n\r\n%s" % (self._head, len(raw), raw))
            # Sent again, it is the same arrival.
            return host.exchange(self._head, lambda: raw, None)["index"] if index is None else index
        end = time.monotonic() + max(0.0, timeout)

        def body() -> bytes:  # an arrival that is sent again has less time left
            left = max(0.0, end - time.monotonic())
            return ('{"key":"%s","timeout":"%.6fs"%s}' % (key, left, self._more)).encode()

        try:
            return host.exchange(self._head, body, end + _ANSWER_SLACK)["index"]
        except _Away as e:
            raise BarrierTimeoutError(
                "barrier %r: the host did not answer within %gs: %s" % (self.name, timeout, e)
            ) from None


def _arrive(host: _Host, request: bytes) -> Optional[int]:
    """The short way of an arrival: one send and one receive on a connection that is
    there. None where it is not, or the answer is not the usual one."""
    try:
        connection = host.idle.pop()
    except IndexError:
        return None
    try:
        if connection.gettimeout() is not None:
            connection.settimeout(None)
        connection.sendall(request)
        answer = connection.recv(4096)
    except OSError:
        _close(connection)
        return None
    except BaseException:  # KeyboardInterrupt withdraws
        _close(connection)
        raise
    start = answer.find(b'"index":') + 8
    end = answer.find(b",", start)
    if not answer.startswith(b"HTTP/1.1 200 ") or not answer.endswith(b"}\n") or start < 8 or end < 0:
        _close(connection)
        return None
    host.idle.append(connection)
    return int(answer[start:end])


def get_barrier(
    name: str = "default",
    timeout: Optional[float] = None,
    participants: Optional[Sequence[str]] = None,
    local: bool = False,
) -> Barrier:
    """A barrier among all tasks of the run, or among the participants: names of
    tasks such as "worker-0", and types such as "worker" for all their tasks. All who
    take part have to name the same. timeout is in seconds; None waits without limit.
    local has the host release it alone, in microseconds: all have to be on it.

    ValueError in a process that is no task.
    """
    return Barrier(name, timeout, participants, local)


def barrier(
    name: str = "default",
    timeout: Optional[float] = None,
    participants: Optional[Sequence[str]] = None,
    local: bool = False,
) -> int:
    """Wait at a barrier; see get_barrier and Barrier.wait."""
    return Barrier(name, timeout, participants, local).wait()


def result(value: Any) -> None:
    """Set what the task returns, in place of what it was: anything that JSON has, of
    up to 256 KiB. It counts if the process exits with 0."""
    _get_host()
    try:
        body = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as e:
        raise TypeError("the result is no JSON value: %s" % e) from None
    _ask("PUT", "/v1/result", body)


def error(what: Union[BaseException, str], kind: str = "") -> None:
    """Report why the program is about to fail: an exception, with its traceback, or a
    text. It takes the place of what was reported before, and counts if the process
    does not exit with 0."""
    _get_host()
    _report(what, kind)


def _describe(what: Union[BaseException, str]) -> Tuple[str, str, str]:
    """Kind, message and traceback of an error."""
    if not isinstance(what, BaseException):
        return "", _text(what[:_MAX_MESSAGE]), ""
    return type(what).__name__, _text(_message(what)[:_MAX_MESSAGE]), _text(_stack(what, what.__traceback__, _MAX_TRACEBACK))


def _message(e: BaseException) -> str:
    try:
        return str(e)
    except BaseException:  # of whatever: it is not what the program raised
        return "the error cannot be written"


def _stack(e: BaseException, frames: Optional[TracebackType], most: int) -> str:
    """The traceback of an error. Long words do not take the place of its frames."""
    import traceback

    return _shorten("".join(_shorten(part, most // 8) for part in traceback.format_exception(type(e), e, frames)), most)


def _shorten(text: str, most: int) -> str:
    """A text without its middle, if it is too long."""
    if len(text) <= most:
        return text
    return "%s\n… %d characters are left out …\n%s" % (text[:most // 2 - 32], len(text) - most + 64, text[32 - most // 2:])


def _text(text: str) -> str:
    # A surrogate, of a file's name perhaps, is no reason to lose a report.
    return text.encode("utf-8", "replace").decode()


def _report(what: Union[BaseException, str], kind: str, patience: float = _PATIENCE) -> None:
    own, message, stack = _describe(what if isinstance(what, BaseException) else str(what))
    kind = kind or own
    now = time.time()
    try:
        body = {"kind": kind, "message": message, "traceback": stack, "timestamp": now}
        _ask("PUT", "/v1/error", json.dumps(body), patience)
    except (TaskError, ValueError, OSError) as e:
        path = os.environ.get("CLUSTERRUN_ERROR_FILE") or os.environ.get("TORCHELASTIC_ERROR_FILE")
        if not path or getattr(e, "code", "away") != "away":
            raise
        _write_error_file(path, "%s: %s" % (kind, message) if kind else message, stack, now)


def _write_error_file(path: str, message: str, stack: str, now: float) -> None:
    """What the host would have written, where it cannot be asked."""
    extra = {"py_callstack": stack, "timestamp": str(int(now))}
    new = "%s.%d.new" % (path, os.getpid())
    with open(new, "w") as f:
        json.dump({"message": {"message": message, "extraInfo": extra}}, f)
    os.replace(new, path)


def progress(current: float, total: Optional[float] = None, message: str = "") -> None:
    """Say how far the task has got; people see it while it runs. It is cheap to call
    often: at most ten a second are sent, and the one that reaches the total. A host
    that is away for longer than a second does not get it."""
    host = _get_host()
    now = time.monotonic()
    if now - host.progress_sent < _PROGRESS_EVERY and not (total and current >= total):
        return
    host.progress_sent = now
    body = {"current": float(current), "total": float(total or 0), "message": str(message)[:1000]}
    try:
        host.call("PUT", "/v1/progress", json.dumps(body, allow_nan=False).encode(), _PROGRESS_PATIENCE)
    except _Away:
        pass  # the next one gets there


def cluster() -> List[Dict[str, Any]]:
    """All tasks of the cluster, in rank order: task, type, index, rank, local_rank,
    host and address."""
    return _ask("GET", "/v1/cluster")["members"]


def info() -> Dict[str, Any]:
    """Which task of which run this is, and where."""
    return _ask("GET", "/v1/task")


def restart_count() -> int:
    """How many processes of the task there were before this one; 0 outside a task."""
    return int(os.environ.get("CLUSTERRUN_RESTART_COUNT") or 0)


_F = TypeVar("_F", bound=Callable[..., Any])

_REPORT_PATIENCE = 2.0  # seconds; then the error goes straight into its file


def record(fn: _F) -> _F:
    """A decorator for the main function of a program: an exception that leaves it is
    reported as the task's error before it goes on. Outside a task it does nothing."""

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
    """Run the main function of a program: its value is the task's result, unless it
    is None, and an exception that leaves it is the task's error."""
    value = record(fn)(*args, **kwargs)
    if value is not None and os.environ.get("CLUSTERRUN_SOCKET"):
        record(result)(value)
    return value


# End of: asking the host

# ----------------------------------------------------------------------------
# Stopping together: one for all tasks of the run

__all__ += ["StopError", "clear_stop", "request_stop", "should_stop", "wait_for_stop"]

_STOP = "/v1/stop"
_STOP_WAIT = 60  # seconds that one request waits at the host
_FIRST_PATIENCE = 1.0  # for the first answer of a host that is away

_ExcInfo = Tuple[Type[BaseException], BaseException, Optional[TracebackType]]


def request_stop(ex: Union[None, BaseException, "_ExcInfo"] = None, reason: Optional[str] = None) -> None:
    """Ask for all tasks of the run to stop: because of the exception ex, which may be
    a tuple of sys.exc_info(), or for a reason that is no error, or for none.

    The first exception is the verdict of the run, unless it is of a kind that is none:
    by default StopIteration, EOFError and OutOfRangeError. It returns when the run
    knows of it; TaskError if it takes no such wish, or is away for long.
    """
    _get_host()
    _request_stop(None if ex is None else _exc_info(ex)[1], reason)


def should_stop() -> bool:
    """Whether the tasks of the run are to stop. It is cheap enough for every step: the
    first call starts a thread by which the host tells of every change, and the others
    only look. TaskError where the host cannot tell."""
    watch = _watch or _watching()
    if watch.error is not None:
        watch.raise_error()
    return watch.stop.is_set()


def wait_for_stop(timeout: Optional[float] = None) -> bool:
    """Wait until the tasks of the run are to stop, for at most so many seconds; whether
    they are."""
    end = None if timeout is None else time.monotonic() + timeout
    watch = _watch or _watching()
    if watch.thread is None:  # the interpreter starts none any more
        watch.keep_up_until(end)
    told = watch.stop.wait(None if end is None else _bounded(max(0.0, end - time.monotonic())))
    if watch.error is not None:
        watch.raise_error()
    return told


def clear_stop() -> None:
    """Take the stop back, whoever asked for it: should_stop says False afterwards, in
    all tasks that still run."""
    host = _get_host()
    host.watch.learn(_ask("DELETE", _STOP))


class StopError(RuntimeError):
    """What stopped a Coordinator that is tied to the run, an error of another process, or
    what ended the wait of a ClusterCoordinator. by is its task, empty for an operator;
    kind, message and traceback are the error, if it was one."""

    def __init__(self, text: str, by: str = "", kind: str = "", message: str = "", traceback: str = "") -> None:
        super().__init__(text)
        self.by = by
        self.kind = kind
        self.message = message
        self.traceback = traceback


class _RemoteTraceback(Exception):
    """Where it happened, for who prints the error."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


def _stop_error(said: Dict[str, Any]) -> Optional[StopError]:
    """The error of a stop, if there is one and it counts."""
    error = said.get("error")
    if not error or said.get("clean"):
        return None
    by, kind, message = said.get("by", ""), error.get("kind", ""), error.get("message", "")
    what = "%s: %s" % (kind, message) if kind else message
    ex = StopError("%s stopped the run: %s" % (by or "an operator", what), by, kind, message, error.get("traceback", ""))
    if ex.traceback:
        ex.__cause__ = _RemoteTraceback(ex.traceback)
    return ex


def _wait_ended(said: Dict[str, Any]) -> StopError:
    """The error of a wait that a stop has ended, whatever it is because of."""
    by, reason = said.get("by", ""), said.get("reason") or "the tasks of the run are to stop together"
    return _stop_error(said) or StopError("%s stopped the run: %s" % (by or "an operator", reason), by)


def _request_stop(ex: Optional[BaseException], reason: Optional[str]) -> None:
    host = _get_host()
    body: Dict[str, Any] = {"key": host.new_key()}
    if reason:
        body["reason"] = _text(str(reason)[:_MAX_MESSAGE])
    if ex is not None:
        kind, message, stack = _describe(ex)
        body["error"] = {"kind": kind, "message": message, "traceback": stack}
    host.watch.learn(_ask("POST", _STOP, json.dumps(body)))


class _Watch:
    """Keeps up with whether the tasks of the run are to stop, with one request to the
    host that waits, on a thread, for all who ask in this process."""

    def __init__(self, host: _Host) -> None:
        self.host = host
        self.stop = threading.Event()
        self.said: Dict[str, Any] = {"seq": 0, "stop": False}
        self.error: Optional[Exception] = None  # why the host does not tell
        self.heard = threading.Event()  # it has answered for the first time
        self.thread: Optional[threading.Thread] = None
        self.lock = threading.RLock()

    def start(self) -> None:
        with self.lock:
            if self.thread is not None:
                return
            thread = threading.Thread(target=self.run, name="clusterrun-stop", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # while the interpreter ends it starts no thread
                self.keep_up(time.monotonic() + _FIRST_PATIENCE)
                return
            self.thread = thread
        self.heard.wait(_FIRST_PATIENCE)

    def run(self) -> None:
        while self.error is None:
            self.keep_up(None)

    def keep_up_until(self, deadline: Optional[float]) -> None:
        while self.error is None and not self.stop.is_set() and (deadline is None or time.monotonic() < deadline):
            self.keep_up(deadline)

    def keep_up(self, deadline: Optional[float]) -> None:
        """Ask how it stands: at first at once, and then when that changes."""
        path = _STOP
        if self.heard.is_set():
            path += "?wait=%ds&after=%d" % (_STOP_WAIT, self.said["seq"])
        try:
            self.learn(self.host.exchange(_head("GET", path), bytes, deadline))
        except _Away:
            return
        except Exception as e:
            if not self.stop.is_set():
                self.error = e
                self.stop.set()  # for who waits
        self.heard.set()

    def learn(self, said: Dict[str, Any]) -> None:
        """Take in what the host says, unless something later is known: a host worker
        that was started again may need a moment."""
        with self.lock:
            if said["seq"] <= self.said["seq"]:
                return
            self.said = said
            if said["stop"]:
                self.stop.set()
            else:
                self.stop.clear()
        with _tied_lock:
            tied = list(_tied)
        for coord in tied:
            coord._hear(said)
        for session in list(_sessions):
            session.hear_stop()

    def raise_error(self) -> None:
        e = self.error
        if isinstance(e, TaskError):
            raise TaskError(str(e), e.code, e.field)
        raise TaskError("the host cannot be asked whether to stop: %s" % e)


_watch: Optional[_Watch] = None  # once it has been started
_tied: "weakref.WeakSet[Coordinator]" = weakref.WeakSet()
_tied_lock = threading.RLock()


def _watching() -> _Watch:
    global _watch
    watch = _get_host().watch
    watch.start()
    _watch = watch
    return watch

# ----------------------------------------------------------------------------
# Answering with stacks


class _Registration:
    """The handler of this process. Its descriptor has to stay open as long as it
    is there, because it writes without asking the interpreter for anything."""

    def __init__(self, number: int, base: str) -> None:
        import faulthandler  # not in every interpreter

        self.number = number
        self.base = base
        self.path = "%s.%d" % (base, os.getpid())
        self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self.file = self._identity()
            faulthandler.register(number, file=self.fd, all_threads=True, chain=False)
        except BaseException:
            os.close(self.fd)
            raise

    def _identity(self) -> Tuple[int, int]:
        info = os.fstat(self.fd)
        return info.st_dev, info.st_ino

    def unregister(self) -> None:
        import faulthandler

        faulthandler.unregister(self.number)

    def close(self) -> None:
        """Close the descriptor, unless somebody else has and uses its number."""
        try:
            if self._identity() == self.file:
                os.close(self.fd)
        except OSError:
            pass

    def remove_empty(self) -> None:
        try:
            if os.stat(self.path).st_size == 0:
                os.unlink(self.path)
        except OSError:
            pass


_current: Optional[_Registration] = None
_hooked: bool = False


def enable_stacks(signal: Optional[int] = None, file: Optional[str] = None) -> bool:
    """Answer the signal with the stacks of all threads; False where that cannot be.

    Both are by default what the environment says. The import has done this
    already; it is needed again only after a process has closed all its descriptors.
    """
    global _current, _hooked
    try:
        number = int(os.environ.get("CLUSTERRUN_STACK_SIGNAL", "")) if signal is None else signal
        base = os.environ.get("CLUSTERRUN_STACK_FILE", "") if file is None else file
        if number <= 0 or not base:
            return False
        _remove_abandoned(base)
        old, _current = _current, _Registration(number, base)
        if old is not None:
            if old.number != number:
                old.unregister()
            old.close()
        if not _hooked:
            _hooked = True
            atexit.register(_at_exit)
            os.register_at_fork(after_in_child=_after_fork)
        return True
    except Exception:  # no such environment, no faulthandler, a full disk, ...
        return False


def disable_stacks() -> None:
    """Undo enable_stacks: the process is not asked any more."""
    global _current
    old, _current = _current, None
    if old is not None:
        try:
            old.unregister()
            old.close()
            old.remove_empty()
        except Exception:
            pass


def _after_fork() -> None:
    """A child has the handler with its parent's file, and gets one of its own."""
    global _current
    if _current is None or enable_stacks(_current.number, _current.base):
        return
    old, _current = _current, None
    try:
        old.unregister()
        old.close()
    except Exception:
        pass


def _at_exit() -> None:
    if _current is not None:
        _current.remove_empty()


def _remove_abandoned(base: str) -> None:
    """Remove the files of processes that have ended and were never asked."""
    directory, name = os.path.split(base)
    try:
        for entry in os.scandir(directory or "."):
            head, _, pid = entry.name.rpartition(".")
            ours = head == name and pid.isdigit() and not os.path.exists("/proc/" + pid)
            if ours and entry.stat().st_size == 0:
                os.unlink(entry.path)
    except OSError:
        pass


enable_stacks()


# ---- Coordinator and Looper: the threads of a program stop together ----------------

class Coordinator:
    """Stops the threads of a program together; works without clusterrun, too.

        coord = clusterrun.Coordinator()
        threads = [threading.Thread(target=work, args=(coord,)) for _ in range(4)]
        for t in threads:
            t.start()
        coord.join(threads)  # raises the exception that stopped them

        def work(coord):
            with coord.stop_on_exception():
                while not coord.should_stop():
                    ...

    The first thread that fails, or finds the end of its input, stops the others, and
    whoever waits for them is told the reason. Threads may take a grace of two
    minutes to end after that; join names those that take longer.

    With run=True it is one for all tasks of the run whose processes have such a
    coordinator, or ask clusterrun.should_stop: what stops the threads here stops the
    run, and a stop of the run, whoever asked, stops the threads. join raises the first
    exception anywhere, a StopError if that is another process's, and clear_stop is for
    all. request_stop returns, and join does, when the run knows of the stop.

    It is tf.train.Coordinator, with the same arguments and texts. What differs:
    join returns as soon as the last thread has ended, where the original looks once
    a second; it names threads in the order in which they were registered; and
    request_stop takes any exception, not only the one that is being handled.
    """

    def __init__(
        self,
        clean_stop_exception_types: Optional[Iterable[Type[BaseException]]] = None,
        *,
        run: bool = False,
    ) -> None:
        """Make a coordinator that nobody has told to stop; with run it is tied to the
        run, and a ValueError in a process that is no task.

        An exception of one of the given types stops the threads as
        request_stop(None) does, and is not raised. Without types these are EOFError,
        StopIteration, and every class with the name OutOfRangeError, by which
        TensorFlow says that an input has ended. Types that are given replace them.
        The run is told of such a stop as of one without an exception; of others it
        decides by their kind.
        """
        self._clean_names: Tuple[str, ...] = ()
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (EOFError, StopIteration)
            self._clean_names = ("OutOfRangeError",)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        # A handler of a signal may come here while its thread holds the lock.
        self._lock = threading.RLock()
        self._stop_event = threading.Event()
        self._wakers: List[threading.Event] = []  # of joins that wait
        self._exc_info_to_raise: Optional[_ExcInfo] = None
        self._joined = False
        self._registered_threads: Dict[threading.Thread, None] = {}  # in their order
        self._run = run
        self._said: Dict[str, Any] = {"seq": 0, "stop": False}  # by the run, last
        self._asking = 0  # requests under way: the run speaks without having heard of them
        self._told: Optional[threading.Event] = None  # the stop has been passed on
        if run:
            watch = _watching()
            with _tied_lock:
                _tied.add(self)
            self._hear(watch.said)

    def _is_clean(self, exception: BaseException) -> bool:
        if isinstance(exception, self._clean_stop_exception_types):
            return True
        return any(kind.__name__ in self._clean_names for kind in type(exception).__mro__)

    def request_stop(self, ex: Union[None, BaseException, _ExcInfo] = None) -> None:
        """Ask all threads to stop, because of ex if it is given.

        ex is an exception, or a tuple of sys.exc_info(). The first request since the
        coordinator was made, or cleared, decides what join raises: an exception that
        comes with a later one is only logged. After join, where nobody would hear of
        it, an exception is raised here, unless it is a clean stop.
        """
        reported = info = None if ex is None else _exc_info(ex)
        if info is not None and self._is_clean(info[1]):
            info = None
        told = None
        with self._lock:
            if self._joined and info is not None:
                raise info[1].with_traceback(info[2])
            first = not self._stop_event.is_set()
            if first:
                self._set_stop(info)
            # Once, though the run may have stopped it: that may be cleared there already.
            if self._run and self._told is None:
                told = self._told = threading.Event()
        try:
            self._log_stop(ex, info, first)
        finally:
            if told is not None:
                self._tell(told, reported, info, first)

    def _set_stop(self, info: Optional[_ExcInfo]) -> None:
        self._exc_info_to_raise = info
        self._stop_event.set()
        for waker in self._wakers:
            waker.set()

    def _log_stop(self, ex: Union[None, BaseException, _ExcInfo], info: Optional[_ExcInfo], first: bool) -> None:
        if info is None:
            return
        if not first:
            _log("Error reported to Coordinator after the stop; join does not raise it: %s", info[1], exc_info=info)
        elif isinstance(ex, tuple):
            _log("Error reported to Coordinator: %s", info[1], exc_info=info)
        else:
            _log("Error reported to Coordinator: %s, %s", info[0], info[1])

    def clear_stop(self) -> None:
        """Forget the stop, its exception, and that join was called."""
        with self._lock:
            stopped = self._stop_event.is_set()
            self._clear()
        if self._run and stopped:
            try:
                self._ask(clear_stop)
            except Exception as e:
                _log("The end of a stop of the Coordinator could not be passed on: %s", e)

    def _clear(self) -> None:
        self._joined = False
        self._exc_info_to_raise = None
        self._told = None
        self._stop_event.clear()

    def _tell(self, told: threading.Event, reported: Optional[_ExcInfo], info: Optional[_ExcInfo], first: bool) -> None:
        """Pass a stop on to the run. One that it does not hear of is no good end."""
        ex = None if info is None else info[1]
        reason = None if reported is None or ex is not None else "%s: %s" % (type(reported[1]).__name__, reported[1])
        try:
            self._ask(lambda: _request_stop(ex, reason))
        except Exception as e:
            _log("A stop of the Coordinator could not be passed on: %s", e)
            with self._lock:
                if first and self._exc_info_to_raise is None:
                    self._exc_info_to_raise = _exc_info(e)
        finally:
            told.set()

    def _ask(self, call: Callable[[], None]) -> None:
        """Have the run hear of something, and agree with what it says then."""
        with self._lock:
            self._asking += 1
        try:
            call()
        except BaseException:
            with self._lock:
                self._asking -= 1
            raise
        with self._lock:
            self._asking -= 1
            self._agree()

    def _hear(self, said: Dict[str, Any]) -> None:
        """Take in what the run says."""
        with self._lock:
            if said["seq"] > self._said["seq"]:
                self._said = said
                self._agree()

    def _agree(self) -> None:
        if self._asking:
            return
        stopped = self._stop_event.is_set()
        if stopped and not self._said["stop"]:
            self._clear()
        elif self._said["stop"] and not stopped:
            ex = _stop_error(self._said)
            self._set_stop(None if ex is None else (StopError, ex, None))

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        if self._run and _watch is None:  # a forked child
            _watching()
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Turn every exception of the body into a stop request, SystemExit and
        KeyboardInterrupt too. It does not leave the body, except after join."""
        try:
            yield
        except BaseException as ex:
            self.request_stop((type(ex), ex, ex.__traceback__))

    def wait_for_stop(self, timeout: Optional[float] = None) -> bool:
        """Wait until a stop is requested, for at most so many seconds; whether it was."""
        if self._run and _watch is None:
            _watching()
        return self._stop_event.wait(_bounded(timeout))

    def register_thread(self, thread: threading.Thread) -> None:
        """Have join wait for the thread."""
        with self._lock:
            self._registered_threads[thread] = None

    def join(
        self,
        threads: Optional[Iterable[threading.Thread]] = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until the registered threads and those given have ended.

        Without a stop it waits without limit. Once a stop is requested they have the
        grace, counted from the stop, or from this call where that is later: 0 is a
        millisecond, and less is nothing.

        Then the exception of the stop is raised, if there is one, and by each later
        join again; otherwise, if threads are still running, a RuntimeError that
        names them, registered ones first. With ignore_live_threads it is logged only.

        No thread is registered afterwards; those that were registered while join
        was waiting are not waited for.
        """
        if self._run and _watch is None:
            _watching()
        wake = threading.Event()
        with self._lock:
            together = dict(self._registered_threads)
            together.update(dict.fromkeys(threads or ()))
            self._wakers.append(wake)
            if self._stop_event.is_set():
                wake.set()
        waiting = list(together)
        try:
            if not wake.is_set():
                _await_end(waiting, wake)
        finally:
            with self._lock:
                self._wakers.remove(wake)
        if stop_grace_period_secs >= 0:
            _join_all(waiting, max(stop_grace_period_secs, 0.001))
        stragglers = [t.name for t in waiting if t.is_alive()]
        told = self._told
        if told is not None:
            told.wait()  # who returns from here may end the process
        with self._lock:
            self._joined = True
            self._registered_threads = {}
        self.raise_requested_exception()
        if stragglers:
            text = "Coordinator stopped with threads still running: %s" % " ".join(stragglers)
            if not ignore_live_threads:
                raise RuntimeError(text)
            _log("%s", text)

    @property
    def joined(self) -> bool:
        """Whether join has been called since the coordinator was made, or cleared."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raise the exception that stopped the threads, if there is one."""
        with self._lock:
            info = self._exc_info_to_raise
        if info is not None:
            raise info[1].with_traceback(info[2])


class Looper(threading.Thread):
    """A thread that does something again and again until its coordinator stops.

    It calls target, or a subclass has a method run_loop. What it raises stops the
    coordinator. It is a daemon, registers itself, and still has to be started.
    LooperThread is another name for it.

    Calls come at fixed times counted from the first, however long one takes; those
    that were missed meanwhile are made up, back to back. Setting the clock of the
    machine changes nothing. Without an interval all calls are back to back.
    """

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: Optional[float],
        target: Optional[Callable[..., Any]] = None,
        args: Optional[Iterable[Any]] = None,
        kwargs: Optional[Mapping[str, Any]] = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError("'coord' argument must be a Coordinator: %s" % (coord,))
        if not target and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        super().__init__(daemon=True)
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._call = (target, tuple(args or ()), dict(kwargs or {}))
        coord.register_thread(self)

    @classmethod
    def loop(
        cls,
        coord: Coordinator,
        timer_interval_secs: Optional[float],
        target: Callable[..., Any],
        args: Optional[Iterable[Any]] = None,
        kwargs: Optional[Mapping[str, Any]] = None,
    ) -> "Looper":
        """Make a looper and start it."""
        looper = cls(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.monotonic()
                while not self._coord.wait_for_stop(due - time.monotonic()):
                    due += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once, before the first call."""

    def stop_loop(self) -> None:
        """Called once, after the last call, unless one has failed."""

    def run_loop(self) -> None:
        """The call."""
        target, args, kwargs = self._call
        if target:
            target(*args, **kwargs)


LooperThread = Looper


def _exc_info(ex: Any) -> _ExcInfo:
    """What is known of an exception; that it is none is an exception, too."""
    if isinstance(ex, BaseException):
        return type(ex), ex, ex.__traceback__
    if isinstance(ex, tuple) and len(ex) == 3 and isinstance(ex[1], BaseException):
        return ex
    wrong = ValueError("ex must be a tuple or sys.exc_info must return the current exception: %s" % (ex,))
    return ValueError, wrong, None


def _await_end(threads: List[threading.Thread], wake: threading.Event) -> None:
    """Wait until all threads have ended, or somebody sets wake.

    Python can wait for one thread or for one event at a time; so another thread
    waits for the threads.
    """

    def watch() -> None:
        while _any_alive(threads):
            for t in threads:
                if t.is_alive():  # one that was not started yet cannot be joined
                    t.join()
        wake.set()

    if not _any_alive(threads):
        return
    try:
        threading.Thread(target=watch, name="clusterrun-join", daemon=True).start()
    except RuntimeError:  # while the interpreter ends it starts no thread
        while _any_alive(threads) and not wake.wait(0.05):
            pass
    else:
        wake.wait()


def _join_all(threads: List[threading.Thread], timeout: float) -> None:
    """Wait until all threads have ended, for at most so many seconds."""
    deadline = time.monotonic() + timeout
    for t in threads:
        if t is not threading.current_thread() and t.is_alive():
            t.join(_bounded(max(deadline - time.monotonic(), 0)))


def _any_alive(threads: List[threading.Thread]) -> bool:
    return any(t.is_alive() for t in threads)


def _bounded(timeout: Optional[float]) -> Optional[float]:
    return None if timeout is None else min(timeout, threading.TIMEOUT_MAX)


def _log(text: str, *args: Any, exc_info: Optional[_ExcInfo] = None) -> None:
    import logging  # most programs never get here, and all of them import this module

    logging.getLogger("clusterrun").info(text, *args, exc_info=exc_info)


# ---- Serving closures: functions that a coordinator schedules ---------------------

__all__ += ["CancelledError", "UnavailableError", "cancelled", "function", "serve"]

_MAX_VALUE = 256 << 10  # bytes of JSON
_MAX_DONE = 512 << 10  # bytes of outcomes in one request
_MAX_CLOSURE_ERROR, _MAX_CLOSURE_TRACEBACK, _MAX_ERROR_ARGS = 8 << 10, 16 << 10, 512
_MAX_WAIT = 20  # seconds for which a request may wait
_OUTCOMES_WAIT = 0.020  # for others, while calls go on
_SLOT_WAITS = 0.0005  # for the other slots, which may be as quick
_HAND_BACK_AFTER = 0.100  # what waits behind calls for so long is for others
_LEAVE_PATIENCE = 2.0
_WAKE_AGAIN = (0.1, 0.5, 2.0)  # after a thread was woken up
_RESOURCE = "$clusterrun.resource"


class CancelledError(BaseException):
    """Raised in a function whose call was cancelled, or has run out of time, at the
    next line of Python that it comes to. In the main thread it also ends a wait, such
    as time.sleep. It is no Exception, so that it passes handlers of those."""


class UnavailableError(RuntimeError):
    """What a function raises that cannot do its work because another task, such as a
    parameter server, does not answer. It is called again then, and only when that
    happens too often is it an error of the coordinator. task is who does not answer."""

    def __init__(self, message: str = "", task: str = "") -> None:
        super().__init__(message or (task + " does not answer" if task else "a task does not answer"))
        self.task = task


_functions: Dict[str, Callable[..., Any]] = {}


def function(fn: Any = None, *, name: Optional[str] = None) -> Any:
    """A decorator that offers a function to call; see serve. Its name is that of the
    function, or the one given: @clusterrun.function(name="train")."""
    if fn is None:
        return functools.partial(function, name=name)
    if isinstance(fn, str):
        raise TypeError("write @clusterrun.function(name=%r)" % fn)
    if not callable(fn):
        raise TypeError("only a function can be registered, not %r" % (fn,))
    known = name or getattr(fn, "__name__", "")
    size = len(known.encode("utf-8", "replace"))
    if not 0 < size <= _MAX_NAME or not known.isprintable():
        raise ValueError("%r is no name for a function: want 1 to %d bytes that can be printed" % (known, _MAX_NAME))
    code = getattr(fn, "__code__", None)
    if code is not None and code.co_flags & 0x80:  # inspect.CO_COROUTINE
        raise TypeError("%s is a coroutine function: register one that calls asyncio.run" % known)
    old = _functions.get(known)
    if old is not None and _origin(old) != _origin(fn):
        raise ValueError("a function %r is registered already" % known)
    _functions[known] = fn
    return fn


def _origin(fn: Any) -> Tuple[Any, Any]:
    """Where a function is from: a module that is loaded again brings the same ones."""
    return getattr(fn, "__module__", None), getattr(fn, "__qualname__", id(fn))


def serve(slots: int = 1) -> None:
    """Call the functions that coordinators schedule. It returns when the tasks of the
    run are to stop together: at once where no function is being called, and else when
    those that are have returned; they may ask should_stop().

        @clusterrun.function
        def train(step, rate=0.1):
            ...
            return {"loss": loss}

        clusterrun.serve()

    Arguments and values are what JSON has; a value has at most 256 KiB. An exception
    is the error of the call. SystemExit ends the process, and the call is lost; it is
    made again elsewhere. A process that ends within a call has failed, whatever its exit
    code, so that its task is started again where tasks are.

    With one slot functions are called in the thread that calls serve, one after the
    other; with more, that many are called at the same time in threads of their own.
    While they are called another thread asks the host for more, so a function that
    holds the interpreter in native code for long is not heard of, and cannot be
    cancelled, until it lets go. A call that is cancelled has CancelledError raised in
    it; functions may ask cancelled(), too. One that does not end then costs its
    process: the host has the task restarted.

    A program that a function has started, such as with subprocess.Popen, goes on when the
    call is cancelled: it may be meant to stay for the calls that follow, and nobody else
    can tell. End it in a finally, as subprocess.run does. It ends with the process at the
    latest.
    """
    if not os.environ.get("CLUSTERRUN_SOCKET"):
        raise ValueError("serve is for tasks: CLUSTERRUN_SOCKET is not set, clusterrun did not start this process")
    if not isinstance(slots, int) or not 1 <= slots <= 1024:
        raise ValueError("slots is %r; want 1 to 1024" % (slots,))
    if not _functions:
        raise ValueError("no function is registered: decorate those to be called with @clusterrun.function")
    if not _stagger(_start_delay(os.environ)):
        _Server(os.environ["CLUSTERRUN_SOCKET"], slots).serve()


def cancelled() -> bool:
    """Whether the function that is being called is to end: its call was cancelled, or
    has run out of time. False outside of one. Threads that a function has started
    are answered, too, where there is one slot."""
    server = _server
    if server is None or server.pid != os.getpid():
        return False
    call = server.running.get(threading.get_ident())
    if call is None and server.slots == 1:
        call = next(iter(list(server.running.values())), None)
    return call is not None and call.told


def _stagger(seconds: float) -> bool:
    """Wait before the first closure; whether the tasks are to stop meanwhile."""
    end = time.monotonic() + seconds
    try:
        return seconds > 0 and wait_for_stop(seconds)
    except TaskError:  # the host cannot say
        time.sleep(max(0.0, end - time.monotonic()))
        return False


def _start_delay(environ: Mapping[str, str]) -> float:
    """Seconds before the first closure, so that the tasks of a large run do not all
    begin at once: the index of the task times the delay, and at most the maximum."""
    values = []
    for name in ("TF_COORDINATOR_SCHEDULE_START_DELAY", "TF_COORDINATOR_SCHEDULE_START_DELAY_MAX"):
        text = environ.get(name) or "0"
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise ValueError("%s is %r; want a number of seconds, such as 5" % (name, text))
        values.append(value)
    delay = values[0] * int(environ.get("CLUSTERRUN_TASK_INDEX") or 0)
    return min(delay, values[1]) if values[1] else delay


class _Call:
    """A closure that this process has."""

    __slots__ = (
        "id", "number", "function", "args", "kwargs", "resources", "began", "thread", "told", "inside", "interrupted", "wakes",
    )

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.id: int = raw["id"]
        self.number: int = raw["call"]
        self.function: str = raw["function"]
        self.args: List[Any] = raw.get("args") or []
        self.kwargs: Dict[str, Any] = raw.get("kwargs") or {}
        self.resources: bool = bool(raw.get("resources"))
        self.began = 0.0  # once it has
        self.thread = 0
        self.told = False  # to end
        self.inside = False  # of what catches CancelledError
        self.interrupted = False  # CancelledError was sent
        self.wakes: List[float] = []  # when its thread is to be woken up again for that


class _Resource:
    """What is built once in this process, when it is first needed."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.raw = raw
        self.lock = threading.Lock()
        self.built = False
        self.value: Any = None
        self.error: Optional[BaseException] = None


class _InputError(Exception):
    """A resource could not be built."""

    def __init__(self, original: BaseException) -> None:
        super().__init__("Input has an error, the original exception is %r, error message is %s." % (original, original))


class _OwnError(Exception):
    """An error of one of our kinds."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _Request:
    """A request on its way, and what it takes along: outcomes by the IDs of their
    closures, and closures that are handed back."""

    def __init__(self, free: int, done: List[Tuple[int, bytes]], returned: List[int], names: Optional[List[str]]) -> None:
        self.free = free
        self.done = done
        self.returned = returned
        self.names = names
        self.body = b""
        self.socket: Optional[socket.socket] = None
        self.reused = False
        self.data = bytearray()


_server: Optional["_Server"] = None

_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


class _Server:
    """A process that serves. One thread does all that has to do with the host; the
    others call functions.

    The process says with each request how it stands. What an answer brings has a
    number, so that nothing is taken twice; an outcome that was sent and not answered
    is sent again."""

    def __init__(self, path: str, slots: int) -> None:
        self.path = path
        self.slots = slots
        self.name = os.urandom(16).hex()
        self.pid = os.getpid()
        self.lock = threading.Lock()
        self.change = threading.Condition(self.lock)  # of queue, stopping and over, for who calls
        self.finished = threading.Condition(self.lock)  # of workers and over, for the others
        self.workers = 0  # threads that call, where those are others
        self.calls: Dict[int, _Call] = {}  # all that are here
        self.queue: "collections.deque[_Call]" = collections.deque()  # those that have not begun
        self.running: Dict[int, _Call] = {}  # by thread
        self.progress = 0.0  # when a call was begun, or closures came
        self.done: List[Tuple[int, bytes]] = []  # outcomes that no request has,
        self.since = 0.0  # and since when
        self.returned: List[int] = []
        self.unanswered: Dict[int, int] = {}  # requests with the outcome of a closure
        self.seq = 0
        self.got = 0
        self.open: List[_Request] = []
        self.idle: List[socket.socket] = []
        self.introduced: Optional[List[str]] = None
        self.delay = 0.0  # before the next try
        self.retry = 0.0  # when that is
        self.stopping = False  # together: no call begins any more
        self.over = False
        self.failure: Optional[BaseException] = None
        self.resources: Dict[int, _Resource] = {}
        self.dropped: List[_Resource] = []  # nobody needs them any more
        self.awake, self.waker = os.pipe()
        os.set_blocking(self.waker, False)

    # -- calling functions

    def serve(self) -> None:
        global _server
        _server = self
        previous = _wake_main_thread()
        host = threading.Thread(target=self.ask, name="clusterrun-closures", daemon=True)
        host.start()
        try:
            if self.slots == 1:
                self.work()
            else:
                self.workers = self.slots
                for i in range(self.slots):
                    threading.Thread(target=self.guard, name="clusterrun-call-%d" % i, daemon=True).start()
                with self.lock:
                    while self.workers and not self.over:
                        self.finished.wait()
        finally:
            if self.pid == os.getpid():
                self.end(None)
                host.join(2 * _LEAVE_PATIENCE)
                _leave_main_thread(previous)
                _server = None
        if self.failure is not None:
            raise self.failure

    def end(self, failure: Optional[BaseException]) -> None:
        with self.lock:
            self.over = True
            self.failure = self.failure or failure
            self.change.notify_all()
            self.finished.notify_all()
        self.wake()

    def guard(self) -> None:
        """work, in a thread of its own: its end is the end of all."""
        try:
            self.work()
        except BaseException as e:
            if self.pid != os.getpid():  # nothing of this is there any more
                sys.stderr.write("%s\n" % e)
                sys.stderr.flush()
                os._exit(1)
            self.end(e)
        with self.lock:
            self.workers -= 1
            self.finished.notify_all()

    def work(self) -> None:
        while True:
            with self.lock:
                while not self.queue and not self.dropped and not self.stopping and not self.over:
                    self.change.wait()
                if self.stopping or self.over:
                    return
                dropped, self.dropped = self.dropped, []
                if not dropped:
                    call = self.queue.popleft()
                    call.began = self.progress = time.monotonic()
                    call.thread = threading.get_ident()
                    self.running[call.thread] = call
            if dropped:
                # What ends with them, such as a generator's finally, is the program's: it
                # runs where functions do, and without the lock.
                del dropped
                continue
            self.run(call)

    def run(self, call: _Call) -> None:
        """Call a function, and keep its outcome. CancelledError may come until the
        lock is held and the interpreter has forgotten it."""
        outcome: Optional[bytes] = None
        while True:
            try:
                call.inside = True
                if outcome is None:
                    outcome = self.call(call)
                with self.lock:
                    if call.interrupted:
                        _forget_interrupt(call.thread)
                    self.ended(call, outcome)
                    idle = not self.queue
                break
            except CancelledError as e:  # late, when the function had returned
                if outcome is None:
                    outcome = _error(call, "cancelled", "CancelledError", str(e), "")
        if idle:
            self.wake()

    def ended(self, call: _Call, outcome: bytes) -> None:
        self.running.pop(call.thread, None)
        self.calls.pop(call.id, None)
        if not self.done:
            self.since = time.monotonic()
        self.done.append((call.id, b'{"id":%d,"call":%d%s}' % (call.id, call.number, outcome)))

    def call(self, call: _Call) -> bytes:
        try:
            if call.told:
                raise CancelledError
            value = self.value(call)
            self.check_fork(call)
            return _value(call, value)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as e:
            self.check_fork(call)
            return _failure(call, e)

    def check_fork(self, call: _Call) -> None:
        if self.pid != os.getpid():
            # Its parent has a closure that returns here, too, and only its thread asks
            # the host. The copy has nothing to do any more.
            raise SystemExit(
                "clusterrun: the function %s has forked, and the child has returned from it; end it with os._exit" % call.function
            )

    def value(self, call: _Call) -> Any:
        fn = _functions.get(call.function)
        if fn is None:
            raise _unknown(call.function)
        args, kwargs = call.args, call.kwargs
        if call.resources:
            args, kwargs = self.fill(args), self.fill(kwargs)
        return fn(*args, **kwargs)

    def fill(self, value: Any) -> Any:
        """Put what was built of resources in the place of their references."""
        if isinstance(value, list):
            return [self.fill(v) for v in value]
        if isinstance(value, dict):
            if len(value) == 1 and _RESOURCE in value:
                return self.resource(value[_RESOURCE])
            return {k: self.fill(v) for k, v in value.items()}
        return value

    def resource(self, key: int) -> Any:
        """Build a resource, or have it. One that could not be built stays so as long as
        this process lives, unless that was because a task did not answer."""
        resource = self.resources.get(key)
        if resource is None:
            raise _InputError(ValueError("the host has not said what the resource %r is, or nobody needs it any more" % (key,)))
        with resource.lock:
            if not resource.built:
                try:
                    fn = _functions.get(resource.raw["function"])
                    if fn is None:
                        raise _unknown(resource.raw["function"])
                    resource.value = fn(*(resource.raw.get("args") or []), **(resource.raw.get("kwargs") or {}))
                except UnavailableError:
                    raise
                except Exception as e:
                    resource.error = e
                resource.built = True
        if resource.error is not None:
            raise _InputError(resource.error) from resource.error
        return resource.value

    # -- asking the host

    def ask(self) -> None:
        try:
            self.ask_until_over()
        except BaseException as e:
            self.end(e)
        finally:
            try:
                self.leave()
            except Exception:
                pass  # the host hears of the end of the process
            for request in self.open:
                self.hang_up(request)

    def wake(self) -> None:
        try:
            os.write(self.waker, b"\0")
        except BlockingIOError:
            pass  # it is about to wake up

    def ask_until_over(self) -> None:
        poll = select.poll()
        poll.register(self.awake, select.POLLIN)
        while not self.over:
            with self.lock:
                request, wait = self.next(time.monotonic())
                again = self.wake_again(time.monotonic())
            if request is not None:
                connection = self.send(request)
                if connection is not None:
                    poll.register(connection, select.POLLIN)
                continue
            if again is not None:
                wait = again if wait is None else min(wait, again)
            for fd, _ in poll.poll(None if wait is None else max(0, math.ceil(wait * 1000))):
                if fd == self.awake:
                    os.read(fd, 4096)
                    continue
                for request in list(self.open):
                    if request.socket is not None and request.socket.fileno() == fd:
                        if self.receive(request):
                            poll.unregister(fd)

    def wake_again(self, now: float) -> Optional[float]:
        """For how long nobody is to be woken up again. A signal may come just before the
        wait that it is to end, and then it ends nothing."""
        waits = []
        for call in self.running.values():
            if call.wakes and call.wakes[0] <= now:
                call.wakes.pop(0)
                _wake_thread(call.thread)
            if call.wakes:
                waits.append(max(0.0, call.wakes[0] - now))
        return min(waits, default=None)

    def next(self, now: float) -> Tuple[Optional[_Request], Optional[float]]:
        """The request that is due, or for how long none is."""
        if len(self.open) > 1:
            return None, None  # the older one is answered because of the newer one
        if self.retry > now:
            return None, self.retry - now
        free = 0 if self.queue or self.stopping else self.slots - len(self.running)
        due = [_FOREVER]
        if self.queue:
            if now - self.progress >= _HAND_BACK_AFTER:
                self.hand_back()
            else:
                due.append(_OUTCOMES_WAIT)  # to see what has come of them
        if self.returned:
            due.append(0.0)
        if self.done:
            wait = 0.0 if free == self.slots else _SLOT_WAITS if free else _OUTCOMES_WAIT
            due.append(self.since + wait - now)
        if not self.open:
            wait = 0.0 if free == self.slots else _SLOT_WAITS if free else _OUTCOMES_WAIT
            due.append(self.progress + wait - now)
        elif free > self.open[0].free:
            due.append(self.progress + _SLOT_WAITS - now)
        wait = min(due)
        if wait > 0:
            return None, None if wait == _FOREVER else wait
        return self.compose(free, _MAX_WAIT), None

    def hand_back(self) -> None:
        while self.queue:
            call = self.queue.popleft()
            self.calls.pop(call.id, None)
            self.returned.append(call.id)

    def compose(self, free: int, wait: int) -> _Request:
        """Say how the process stands."""
        names: Optional[List[str]] = sorted(_functions)
        if names == self.introduced:
            names = None
        n, size = 0, 0
        while n < len(self.done) and n < 1000 and size < _MAX_DONE:
            size += len(self.done[n][1])
            n += 1
        request = _Request(free, self.done[:n], self.returned, names)
        del self.done[:n]
        self.returned = []
        held = set(self.calls)
        held.update(self.unanswered)
        held.update(key for key, _ in self.done)
        self.seq += 1
        says = {
            "process": self.name, "seq": self.seq, "got": self.got, "slots": 0 if self.stopping or self.over else self.slots,
            "held": list(held), "begun": [c.id for c in self.running.values()], "returned": request.returned,
            "free": free, "wait": wait,
        }
        if names is not None:
            says["functions"] = names
        request.body = b"%s,\"done\":[%s]}" % (json.dumps(says)[:-1].encode(), b",".join(o for _, o in request.done))
        for key in self.taken(request):
            self.unanswered[key] = self.unanswered.get(key, 0) + 1
        self.open.append(request)
        return request

    @staticmethod
    def taken(request: _Request) -> List[int]:
        return [key for key, _ in request.done] + request.returned

    def send(self, request: _Request) -> Optional[socket.socket]:
        """Send a request. None: that did not work, and it is composed anew."""
        try:
            if self.idle:
                connection, request.reused = self.idle.pop(), True
                request.socket = connection
            else:
                request.socket = connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                connection.settimeout(30)
                connection.connect(self.path)
            connection.sendall(b"%s%d\r\n\r\n%s" % (_CLOSURES_HEAD, len(request.body), request.body))
            return connection
        except OSError as e:
            self.failed(request, e)
            return None

    def receive(self, request: _Request) -> bool:
        """Read what there is of an answer. True: it has come to an end."""
        assert request.socket is not None
        try:
            data = request.socket.recv(1 << 18)
            if not data:
                raise ConnectionResetError("the host closed the connection")
        except OSError as e:
            self.failed(request, e)
            return True
        request.data += data
        parsed = _parse_answer(request.data)
        if parsed is None:
            return False
        status, answer, keep = parsed
        if keep and len(self.idle) < 4:
            self.idle.append(request.socket)
            request.socket = None
        self.hang_up(request)
        if status == 200:
            self.delay = 0.0
            with self.lock:
                self.answered(request, answer)
            return True
        problem = _problem(status, answer.get("error", {}))
        if getattr(problem, "code", "") != "closures_away":
            raise problem
        self.failed(request, ConnectionResetError(str(problem)))
        return True

    @staticmethod
    def hang_up(request: _Request) -> None:
        if request.socket is not None:
            request.socket.close()
            request.socket = None

    def failed(self, request: _Request, error: OSError) -> None:
        """A request that was not answered: another one says the same, and more."""
        self.hang_up(request)
        if not isinstance(error, (ConnectionError, FileNotFoundError, BlockingIOError, socket.timeout)):
            raise TaskError("the host cannot be asked: %s" % error, "away")
        with self.lock:
            self.settle(request)
            self.done = request.done + self.done
            self.returned = request.returned + self.returned
            if not request.reused:
                self.delay = min(max(2 * self.delay, _FIRST_RETRY), _LAST_RETRY)
                self.retry = time.monotonic() + self.delay

    def settle(self, request: _Request) -> None:
        """A request is on its way no more."""
        self.open.remove(request)
        for key in self.taken(request):
            left = self.unanswered[key] - 1
            if left:
                self.unanswered[key] = left
            else:
                del self.unanswered[key]

    def answered(self, request: _Request, answer: Dict[str, Any]) -> None:
        self.settle(request)
        if request.names is not None:
            self.introduced = request.names
        if answer.get("introduce"):
            self.introduced = None
        news = answer.get("news", 0)
        if news > self.got:
            self.got = news
            for raw in answer.get("resources") or ():
                self.resources.setdefault(raw["id"], _Resource(raw))
            for raw in answer.get("closures") or ():
                self.take(raw)
            self.progress = time.monotonic()
            self.change.notify(len(self.queue))
        for raw in answer.get("cancel") or ():
            self.cancel(raw["id"])
        for span in answer.get("released") or ():
            for key in [k for k in self.resources if span["first"] <= k <= span["last"]]:
                self.dropped.append(self.resources.pop(key))
            self.change.notify()
        if answer.get("stop"):
            self.stopping = True
            self.change.notify_all()
        if self.stopping or self.over:
            self.hand_back()

    def take(self, raw: Dict[str, Any]) -> None:
        key = raw["id"]
        if key in self.returned:
            self.returned.remove(key)
        call = self.calls.get(key)
        if call is not None:  # a host that was started again may not know that it is here
            call.number = raw["call"]
            return
        call = self.calls[key] = _Call(raw)
        self.queue.append(call)

    def cancel(self, key: int) -> None:
        call = self.calls.get(key)
        if call is None or call.told:
            return
        call.told = True
        if call.began:
            # Where it is not inside yet it looks at told first.
            call.interrupted = call.inside and _interrupt(call.thread)
            if call.interrupted:
                call.wakes = [time.monotonic() + after for after in _WAKE_AGAIN]
            return
        self.queue.remove(call)
        self.ended(call, _error(call, "cancelled", "CancelledError", "", ""))

    def leave(self) -> None:
        """Say that this process serves no more, and what came of its last calls."""
        deadline = time.monotonic() + _LEAVE_PATIENCE
        for request in list(self.open):
            self.hang_up(request)
            with self.lock:
                self.settle(request)
                self.done = request.done + self.done
                self.returned = request.returned + self.returned
        while True:
            with self.lock:
                self.hand_back()
                request = self.compose(0, 0)
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                _set_timeout(connection, deadline)
                connection.connect(self.path)
                raw = b"%s%d\r\n\r\n%s" % (_CLOSURES_HEAD, len(request.body), request.body)
                status, answer, _ = _exchange(connection, raw, deadline)
            except OSError as e:
                self.failed(request, e)
                if self.retry >= deadline:
                    return
                time.sleep(max(0.0, self.retry - time.monotonic()))
                continue
            finally:
                connection.close()
            if status != 200:
                return
            with self.lock:
                self.answered(request, answer)
                if not self.done and not self.returned:
                    return


_FOREVER = float("inf")
_CLOSURES_HEAD = _head("POST", "/v1/closures/next")


def _parse_answer(data: bytearray) -> Optional[Tuple[int, Dict[str, Any], bool]]:
    """Status, JSON, and whether the connection can be used again. None: there is more
    to come."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = bytes(data[:end]).lower().split(b"\r\n")
    length, keep = -1, True
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        if name == b"content-length":
            length = int(value)
        elif name == b"connection" and value.strip() == b"close":
            keep = False
    if length < 0:
        raise TaskError("the request is none the host understands (%r)" % lines[0].decode())
    if len(data) < end + 4 + length:
        return None
    return int(lines[0].split(b" ", 2)[1]), json.loads(data[end + 4:end + 4 + length].decode()), keep


def _unknown(name: str) -> _OwnError:
    return _OwnError("UnknownFunctionError", "no function %r is registered here; there are %s" % (name, ", ".join(sorted(_functions))))


def _value(call: _Call, value: Any) -> bytes:
    """The outcome of a call that returned something."""
    try:
        text = _encode(value)
        marked = _mark_tuples(value)
        if marked is not value:
            value, text = marked, _encode(marked)
        try:
            raw = text.encode()
        except UnicodeEncodeError:  # a surrogate, of a file's name perhaps
            raw = json.dumps(value, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise _OwnError("NotJSONError", "the value of %s is no JSON: %s" % (call.function, e)) from None
    if len(raw) > _MAX_VALUE:
        raise _OwnError(
            "ValueTooLargeError",
            "the value of %s has %d bytes of JSON; the limit is %d: write it to a file and return the file's path"
            % (call.function, len(raw), _MAX_VALUE),
        )
    return b',"seconds":%.6f,"value":%s' % (time.monotonic() - call.began, raw)


_TUPLE = "$clusterrun.tuple"
_ATOMS = frozenset((str, int, float, bool, type(None)))


def _mark_tuples(value: Any) -> Any:
    """The value with objects in the place of tuples, which coordinators in Python make
    tuples again, and others lists. One without tuples is returned as it is."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, tuple):
        return {_TUPLE: [_mark_tuples(v) for v in value]}
    if isinstance(value, list):
        if _ATOMS.issuperset(map(type, value)):
            return value
        elements = [_mark_tuples(v) for v in value]
        return value if all(a is b for a, b in zip(elements, value)) else elements
    if isinstance(value, dict):
        if _ATOMS.issuperset(map(type, value.values())):
            return value
        members = {k: _mark_tuples(v) for k, v in value.items()}
        return value if all(a is b for a, b in zip(members.values(), value.values())) else members
    return value


def _failure(call: _Call, e: BaseException) -> bytes:
    """The outcome of a call that raised something."""
    kind, stack = "error", ""
    name = type(e).__name__
    message = _message(e)
    if isinstance(e, _OwnError):
        name = e.kind
    elif isinstance(e, _InputError):
        kind, name = "input", "InputError"
        e = e.__cause__ or e
    elif isinstance(e, CancelledError):
        kind = "cancelled"
    elif isinstance(e, UnavailableError):
        kind = "unavailable"
    if not isinstance(e, _OwnError):
        # Without the lines of this module.
        frames = e.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename == __file__ and frames.tb_next is not None:
            frames = frames.tb_next
        stack = _stack(e, frames, _MAX_CLOSURE_TRACEBACK)
    task = getattr(e, "task", "") if kind == "unavailable" else ""
    return _error(call, kind, name, message, stack, task, _built_from(e) if kind == "error" else None)


def _built_from(e: BaseException) -> Optional[List[Any]]:
    """What an exception that Python has built in was made of, so that it can be made
    again elsewhere; None where that is too much, or no JSON."""
    if type(e).__module__ != "builtins":
        return None
    args = list(e.args)
    if isinstance(e, OSError) and e.filename is not None:
        args += [e.filename] if e.filename2 is None else [e.filename, None, e.filename2]
    if not _ATOMS.issuperset(map(type, args)):
        return None
    try:
        return args if len(_encode(args)) <= _MAX_ERROR_ARGS else None
    except ValueError:  # NaN
        return None


def _error(
    call: _Call, kind: str, name: str, message: str, stack: str, task: str = "", args: Optional[List[Any]] = None
) -> bytes:
    # All of it is bounded: a request that is too large would never be answered.
    said: Dict[str, Any] = {
        "kind": name[:_MAX_NAME], "message": message[:_MAX_CLOSURE_ERROR], "traceback": stack, "task": str(task)[:_MAX_NAME],
    }
    if args is not None:
        said["args"] = args
    seconds = time.monotonic() - call.began if call.began else 0.0
    return b',"kind":"%s","seconds":%.6f,"error":%s' % (kind.encode(), seconds, json.dumps(said).encode())


def _interrupt(thread: int) -> bool:
    """Have CancelledError raised in a thread, at the next line of Python it comes to.
    The main thread is woken up from a wait for that, by a signal that does nothing."""
    try:
        import ctypes

        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(CancelledError))
    except Exception:  # another interpreter: the function can only ask cancelled()
        return False
    _wake_thread(thread)
    return True


def _wake_thread(thread: int) -> None:
    if thread == threading.main_thread().ident and _woken:
        try:
            signal.pthread_kill(thread, signal.SIGURG)
        except Exception:
            pass


def _forget_interrupt(thread: int) -> None:
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)


_woken = False


def _wake_main_thread() -> Any:
    """Make SIGURG, which nobody minds, interrupt what the main thread waits for."""
    global _woken
    try:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGURG) == signal.SIG_DFL:
            previous = signal.signal(signal.SIGURG, lambda *_: None)
            _woken = True
            return previous
    except (ValueError, OSError, AttributeError):
        pass
    return None


def _leave_main_thread(previous: Any) -> None:
    global _woken
    if _woken and previous is not None:
        _woken = False
        signal.signal(signal.SIGURG, previous)


def _leave_server() -> None:
    """A forked child serves nothing: the connections are its parent's."""
    global _server
    server, _server = _server, None
    if server is None:
        return
    for connection in [r.socket for r in server.open] + server.idle:
        if connection is not None:
            connection.close()
    os.close(server.awake)
    os.close(server.waker)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_server)


# ---- A pool of processes: functions that a program has all of them call -----------

__all__ += ["Pool", "PoolError"]

# What tasks do not get of our environment, and their own pools need.
_POOL_ENVIRON = ("CLUSTERRUN_STATE_DIR", "CLUSTERRUN_DEVSERVER")
_POOL_MAIN = "__mp_main__"  # what the main program is called there, as with multiprocessing
_POOL_GRACE = 3.0  # seconds for a process to end by itself, and
_POOL_JOIN = 60.0  # for all of it
_UNEXPECTED_EOF = "Unexpected EOF. Worker process may have died. Please report a bug"
_pool_logger_name = "clusterrun"


class PoolError(RuntimeError):
    """An error of a function in a process of a pool, of a type that Python has not
    built in: kind is its name. Those built in are raised as what they are. task is
    where it was, and the traceback from there is the cause."""

    def __init__(self, message: str, kind: str = "", task: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.task = task


class Pool:
    """Processes of a cluster, on this machine, that stay for many calls; TensorFlow's
    MultiProcessPoolRunner.

        @clusterrun.function
        def train(steps):
            ...
            return loss

        if __name__ == "__main__":
            with clusterrun.Pool({"chief": 1, "worker": 2}) as pool:
                losses = pool.run(train, args=(10,))

    cluster is a cluster spec such as {"worker": ["localhost:2222"]}, in which a number
    may stand for the addresses, or the number of workers. The processes are started
    at the first run, and stay the same for all others. They are tasks of a run of
    clusterrun, which is there for them alone, and have all that such tasks have:
    TF_CONFIG, barriers, and so on.

    Functions have to be registered, with @clusterrun.function, in the main program or
    in a module, before the first run: the processes import both. As with
    multiprocessing they import the main program under another name, and what only the
    main program is to do has to stand under if __name__ == "__main__". A main program
    that is no file, such as one from stdin, from -c or in a notebook, cannot be imported,
    and only functions of modules can be called then. Arguments and
    values are what JSON has, of up to 256 KiB each.

    initializer is a registered function without arguments; each process calls it
    once, before anything else.

    The pool ends with shutdown, with the program, however that ends, or as a context
    manager; the next run starts another one. One thread at a time can use it.
    """

    def __init__(self, cluster: Union[int, Mapping[str, Union[int, Sequence[str]]]], initializer: Any = None) -> None:
        self._socket: Optional[socket.socket] = None
        self._tasks = _pool_tasks(cluster)
        self._initializer = None if initializer is None else _pool_function(initializer)
        self._lock = threading.Lock()
        self._process: Any = None
        self._buffer = bytearray()
        self._requests = 0
        self._over = ""
        _pools.add(self)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: Any) -> None:
        self.shutdown()

    def __del__(self) -> None:
        try:
            self.shutdown()
        except Exception:
            pass  # the interpreter is about to end

    def run(
        self, fn: Any, args: Optional[Sequence[Any]] = None, kwargs: Optional[Mapping[str, Any]] = None
    ) -> List[Any]:
        """Have all processes call a function, and return the values in the order of
        the cluster. As in TensorFlow, None is left out of them.

        It waits for all. If some fail, the first in the order of the cluster is raised,
        and the pool goes on; ValueError says that the processes do not have the
        function. If a process has died RuntimeError is raised, and the
        pool is shut down; the next run has new processes.
        """
        name = _pool_function(fn)
        request = _pool_request(self._tasks, name, list(args or ()), dict(kwargs or {}))
        with self._lock:
            if self._socket is None:
                self._start()
            answer = self._ask(request)
            outcomes = answer.get("outcomes") if answer else None
            if answer is None or outcomes is not None and any(o.get("lost") for o in outcomes):
                why = self._why(outcomes or ())
                process = self._let_go()
                self._shutdown(process, died=True)
                if not why and process.returncode:
                    why = "clusterrun has ended with exit code %d, and says why on stderr" % process.returncode
                died = RuntimeError(_UNEXPECTED_EOF)
                if why and hasattr(died, "add_note"):  # Python 3.11
                    died.add_note(why)  # the last thing that is read
                raise died from (RuntimeError(why) if why else None)
        if outcomes is None:
            problem = answer["error"]
            raise (ValueError if problem.get("kind") == "RefusedError" else RuntimeError)(problem.get("message", ""))
        for outcome in outcomes:
            if outcome.get("error"):
                raise _pool_error(outcome["error"])
        return [o["value"] for o in outcomes if o.get("value") is not None]

    def shutdown(self) -> None:
        """End the processes, if there are some, and wait for that. What goes wrong with
        it is only logged."""
        with self._lock:
            self._shutdown(self._let_go())

    # -- the run that the processes belong to

    def _start(self) -> None:
        import logging  # noqa: F401  Imported at the end, it would hide a KeyboardInterrupt.
        import subprocess

        if _importing_main:
            raise RuntimeError(_POOL_TOO_EARLY)
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                spec = json.dumps(_pool_spec(self._tasks, self._initializer))
                command = [_pool_binary(), "run", "--coordinator-fd", str(theirs.fileno()), "-"]
                # A session of its own: Ctrl-C is for the program, and the pool ends with it.
                self._process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, pass_fds=[theirs.fileno()], start_new_session=True
                )
                with contextlib.suppress(BrokenPipeError):  # it says why
                    self._process.stdin.write(spec.encode())
                    self._process.stdin.close()
            except BaseException:
                ours.close()
                self._process = None
                raise
        self._socket, self._buffer, self._over = ours, bytearray(), ""

    def _ask(self, request: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """The answer to a request; None: there will be none."""
        assert self._socket is not None
        self._requests += 1
        number = self._requests
        try:
            self._socket.sendall(json.dumps(dict(request, id=number)).encode() + b"\n")
        except OSError:
            return None  # nobody is there any more
        except BaseException:  # KeyboardInterrupt, in the middle of a line
            self._shutdown(self._let_go())
            raise
        while True:
            line = self._line()
            if not line:
                return None
            said = json.loads(line.decode())
            if said.get("event") == "over":
                self._over = said.get("message", "")
                return None
            if said.get("id") == number:  # another one is that of a run that was interrupted
                return said

    def _line(self) -> bytes:
        """A line without its end; nothing at the end of all."""
        assert self._socket is not None
        searched = 0
        while True:
            end = self._buffer.find(b"\n", searched)
            if end >= 0:
                line = bytes(self._buffer[:end])
                del self._buffer[:end + 1]
                return line
            searched = len(self._buffer)
            try:
                data = self._socket.recv(1 << 18)
            except ConnectionResetError:
                data = b""
            if not data:
                return b""
            self._buffer += data

    def _why(self, outcomes: Iterable[Dict[str, Any]]) -> str:
        """What is known of the death of a process. The run may be about to say it."""
        assert self._socket is not None
        try:
            self._socket.settimeout(2 * _POOL_GRACE)
            while not self._over:
                line = self._line()
                if not line:
                    break
                said = json.loads(line.decode())
                if said.get("event") == "over":
                    self._over = said.get("message", "")
        except OSError:
            pass
        lost = [o["error"].get("message", "") for o in outcomes if o.get("lost") and o.get("error")]
        return self._over or (lost[0] if lost else "")

    def _let_go(self) -> Any:
        """Hang up, by which the run ends. Its process is returned."""
        process, self._process = self._process, None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        return process

    @staticmethod
    def _shutdown(process: Any, died: bool = False) -> None:
        if process is None:
            return
        import logging
        import subprocess

        try:
            code = process.wait(_POOL_JOIN)
            if code != 0 and not died:
                raise RuntimeError("the run of the pool has ended with exit code %d" % code)
        except subprocess.TimeoutExpired as e:
            process.kill()  # its processes end with it
            process.wait()
            logging.getLogger(_pool_logger_name).error("Ignoring exception when shutting down the pool: %s", e)
        except Exception as e:
            logging.getLogger(_pool_logger_name).error("Ignoring exception when shutting down the pool: %s", e)

    def _forget(self) -> None:
        """In a forked child: the processes are those of its parent."""
        self._lock = threading.Lock()
        process = self._let_go()
        if process is not None:
            process.returncode = 0  # nothing to wait for


_pools: "weakref.WeakSet[Pool]" = weakref.WeakSet()
_importing_main = False

_POOL_TOO_EARLY = """a pool was used while a process of a pool imports the main program.

The processes of a pool import the main program, and must not do there what only the
main program is to do. Put that under

    if __name__ == "__main__":
        ...
"""


def _shutdown_pools() -> None:
    pools = [(pool, pool._let_go()) for pool in list(_pools)]  # all end at the same time
    for pool, process in pools:
        pool._shutdown(process)


def _forget_pools() -> None:
    for pool in list(_pools):
        pool._forget()


atexit.register(_shutdown_pools)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)


def _registered(fn: Any) -> str:
    """The name under which a function is registered."""
    if isinstance(fn, str) and fn in _functions:
        return fn
    for name, known in _functions.items():
        if known is fn:
            return name
    raise TypeError("only registered functions are accepted: decorate %r with @clusterrun.function" % (fn,))


def _pool_function(fn: Any) -> str:
    """The name of a function that the processes of a pool can have."""
    name = _registered(fn)
    if getattr(_functions[name], "__module__", None) in ("__main__", _POOL_MAIN):
        why = _main_program()[2]
        if why and not _importing_main:  # which is refused with other words
            raise ValueError(
                "the function %r is of the main program, which the processes of a pool cannot import: %s. "
                "The main program must be a file, or the function in a module" % (name, why)
            )
    return name


def _main_program() -> Tuple[Optional[str], Optional[str], str]:
    """The main program for who imports it: the name of a module, or a file, or why it is
    neither."""
    main = sys.modules.get("__main__")
    name = getattr(getattr(main, "__spec__", None), "name", None)
    path = getattr(main, "__file__", None)
    if name is not None:
        if name == "__main__" or name.endswith(".__main__"):
            return None, None, "the __main__ of a package, a directory or an archive does what it does at once"
        return name, None, ""
    if path is None:
        return None, None, "it was typed in, or given with -c"
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        return None, None, "there is no file %s" % path
    if os.path.splitext(os.path.basename(path))[0] == "ipython":
        return None, None, "it is that of ipython"
    return None, path, ""


_TASK_TYPE = r"[a-z][a-z0-9_]*(-[a-z][a-z0-9_]*)*"


def _pool_tasks(cluster: Any) -> List[Dict[str, Any]]:
    """The groups of tasks of a cluster."""
    import re

    if isinstance(cluster, int) and not isinstance(cluster, bool):
        cluster = {"worker": cluster}
    if not isinstance(cluster, Mapping) or not cluster:
        raise TypeError("cluster is %r; want a number of workers, or a dict such as {'worker': 2}" % (cluster,))
    groups: List[Dict[str, Any]] = []
    for kind, members in cluster.items():
        if not isinstance(kind, str) or not re.fullmatch(_TASK_TYPE, kind):
            raise ValueError("%r is no task type; use lower-case letters, digits and _, and words joined by -" % (kind,))
        if isinstance(members, int) and not isinstance(members, bool):
            if members < 0:
                raise ValueError("cluster[%r] is %d; want how many there are" % (kind, members))
            groups.append({"type": kind, "count": members})
        elif isinstance(members, (list, tuple)):
            groups.append({"type": kind, "addresses": [str(a) for a in members]})
        else:
            raise TypeError("cluster[%r] is %r; want a number, or a list of addresses" % (kind, members))
    if sum(_pool_size(g) for g in groups) == 0:
        raise ValueError("cluster has no tasks")
    if sum(_pool_size(g) for g in groups if g["type"] == "chief") > 1:
        raise ValueError("cluster has %d chiefs; there can be one" % sum(_pool_size(g) for g in groups if g["type"] == "chief"))
    return groups


def _pool_size(group: Dict[str, Any]) -> int:
    return group["count"] if "count" in group else len(group["addresses"])


def _pool_request(groups: List[Dict[str, Any]], name: str, args: List[Any], kwargs: Dict[str, Any]) -> Dict[str, Any]:
    """The function, for each task once. A call is never made twice."""
    try:
        json.dumps([args, kwargs], allow_nan=False)
    except (TypeError, ValueError) as e:
        raise TypeError("the arguments of %s are no JSON: %s" % (name, e)) from None
    return {"op": "call", "closures": [
        {"function": name, "args": args, "kwargs": kwargs,
         "options": {"task": "%s-%d" % (group["type"], i), "detached": True, "max_losses": 0}}
        for group in groups for i in range(_pool_size(group))
    ]}


def _pool_binary() -> str:
    import shutil

    for path in (os.environ.get("CLUSTERRUN_BIN"), _binary.PATH, shutil.which("clusterrun")):
        if path and os.access(path, os.X_OK):
            return path
    raise RuntimeError("the program clusterrun is not found; put it into PATH, or name it with CLUSTERRUN_BIN")


def _pool_spec(groups: List[Dict[str, Any]], initializer: Optional[str]) -> Dict[str, Any]:
    """The run of a pool: a task that ends badly ends all."""
    import subprocess

    name, path, _ = _main_program()
    knows = {
        "main_name": name, "main_path": path, "path": [p or os.getcwd() for p in sys.path],
        "argv": sys.argv, "initializer": initializer, "environ": dict(
            {name: os.environ[name] for name in _POOL_ENVIRON if name in os.environ}, CLUSTERRUN_BIN=_pool_binary()
        ),
        "modules": sorted({fn.__module__ for fn in _functions.values() if getattr(fn, "__module__", None)} - {"__main__", _POOL_MAIN}),
    }
    flags = getattr(subprocess, "_args_from_interpreter_flags", list)()
    code = "import sys, json; k = json.loads(sys.argv[1]); sys.path[:] = k['path']; import %s; sys.modules[%r]._pool_main(k)"
    return {
        "name": "pool", "tasks": groups,
        "command": [sys.executable] + flags + ["-c", code % (__name__, __name__), json.dumps(knows)],
        "on_failure": "stop", "stop": {"grace": "%gs" % _POOL_GRACE}, "chief_grace": "%gs" % _POOL_GRACE,
    }


def _pool_main(knows: Dict[str, Any]) -> None:
    """What a process of a pool does."""
    signal.signal(signal.SIGTERM, _end_pool_process)
    os.environ.update(knows["environ"])
    sys.argv[:] = knows["argv"]
    _import_main(knows["main_name"], knows["main_path"])
    import importlib

    for module in knows["modules"]:
        importlib.import_module(module)
    initializer = knows["initializer"]
    if initializer is not None:
        if initializer not in _functions:
            raise RuntimeError("the initializer %r is not registered where the main program is only imported" % initializer)
        _functions[initializer]()
    serve()


def _end_pool_process(*_: Any) -> None:
    raise SystemExit(0)


def _import_main(name: Optional[str], path: Optional[str]) -> None:
    """Import the main program as multiprocessing does: under another name, and as
    __main__ for who looks there."""
    global _importing_main
    import runpy
    import types

    if name is None and path is None:
        return
    main = types.ModuleType(_POOL_MAIN)
    _importing_main = True
    try:
        if name is not None:
            content = runpy.run_module(name, run_name=_POOL_MAIN, alter_sys=True)
        else:
            content = runpy.run_path(str(path), run_name=_POOL_MAIN)
    finally:
        _importing_main = False
    main.__dict__.update(content)
    sys.modules["__main__"] = sys.modules[_POOL_MAIN] = main


def _pool_error(said: Dict[str, Any]) -> BaseException:
    """The error of a function, or that there is none, as the program sees it."""
    import builtins

    kind, message = said.get("kind", ""), said.get("message", "")
    known = ValueError if kind == "RefusedError" else getattr(builtins, kind, None)
    error: BaseException
    if isinstance(known, type) and issubclass(known, Exception):
        try:
            error = known(*said.get("args", (message,)))
        except TypeError:  # one with arguments of its own, such as UnicodeDecodeError
            error = PoolError(message, kind, said.get("task", ""))
    else:
        error = PoolError(message, kind, said.get("task", ""))
    if said.get("traceback"):
        error.__cause__ = _RemoteTraceback("\n\n%s: %s" % (said.get("task", ""), said["traceback"]))
    return error


# ---- Coordinating closures: functions that a program schedules on tasks that serve ---

__all__ += [
    "ClosureError", "ClusterCoordinator", "InputError", "PerWorkerValues", "RemoteValue", "RemoteValueStatus", "WatchDog",
]

_MAX_ARGUMENTS = 256 << 10  # bytes of JSON
_MAX_BATCH, _MAX_BATCH_BYTES = 1000, 512 << 10  # closures in a request
_MAX_UNSENT, _MAX_UNSENT_BYTES = 2 * _MAX_BATCH, 2 * _MAX_BATCH_BYTES
_MAX_EARLY = 8 * _MAX_BATCH
_MAX_FIND = 4096
_ASK_DONE = 1.0  # how often the queue is asked while the answer is known here
_FLUSH_PATIENCE = 2.0  # at the end of the program
_GATHER_RELEASES = 0.05  # how long resources that are released wait for others
_COORDINATOR = "/v1/coordinator/"
_TEXT_CANCELLED = "The corresponding function is cancelled. Please reschedule the function."
_TEXT_ABORTED = "The corresponding function is aborted. Please reschedule the function."


class ClosureError(Exception):
    """An error of a function that was scheduled. kind is the type that it had there.
    Where Python has such a type it is one of those, too: an error of the kind
    "ValueError" can be caught as ValueError, and as ClosureError. Then it has the args
    that it had there, and an OSError its errno and filename, where these are short.
    traceback is the one from there, task who called the function, and closure the ID of
    the call. It can be pickled."""

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
        return _closure_error, (said,)


class InputError(ClosureError):
    """A per-worker resource among the arguments of a function could not be built."""


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
            found = type(kind, (ClosureError, base), {"__module__": __name__, "__doc__": ClosureError.__doc__})
        _error_types[kind] = found
    return found


def _closure_error(said: Dict[str, Any]) -> ClosureError:
    kind, message = said.get("kind", ""), said.get("message", "")
    values = (kind, message, said.get("traceback", ""), said.get("task", ""), said.get("closure", 0), said.get("args"))
    try:
        error = _error_type(kind)(*values)
    except TypeError:  # a group of exceptions
        error = ClosureError(*values)
    if error.traceback:
        error.__cause__ = _RemoteTraceback("\n\n%s: %s" % (error.task, error.traceback))
    return error


class RemoteValueStatus(enum.Enum):
    """Where the value of a closure is."""

    NOT_READY = "NOT_READY"
    ABORTED = "ABORTED"  # nobody will know it: the run has ended, or this is a forked child
    READY = "READY"  # a value, or an error


class RemoteValue:
    """What a function that was scheduled returns, once it does."""

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
            self._error = {"kind": "CancelledError", "message": _TEXT_CANCELLED, "closure": said["id"]}
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


class _PerWorkerDataset:
    """A dataset of each worker; see ClusterCoordinator.create_per_worker_dataset."""

    def __init__(self, coordinator: "ClusterCoordinator", fn: Any, args: Any, kwargs: Any) -> None:
        self._coordinator = coordinator
        self._what = (fn, args, kwargs)

    def __iter__(self) -> "_PerWorkerIterator":
        return self._coordinator._create(_PerWorkerIterator, *self._what)


class _PerWorkerIterator(PerWorkerValues):
    __slots__ = ()

    def __iter__(self) -> "_PerWorkerIterator":
        return self

    def __next__(self) -> Any:
        raise NotImplementedError("Iterating over an `AsyncDistributedIterator` is not supported right now.")


class ClusterCoordinator:
    """Has the tasks of the run that serve call functions; TensorFlow's ClusterCoordinator.

        @clusterrun.function
        def train(step, rate=0.1):
            ...
            return {"loss": loss}

        coordinator = clusterrun.ClusterCoordinator()
        values = [coordinator.schedule(train, args=(step,)) for step in range(1000)]
        coordinator.join()
        losses = coordinator.fetch(values)

    Any task can be the coordinator; usually the chief is. The tasks that call the
    functions have registered the same ones and serve; see serve. A function is called
    at least once: where its task dies in the middle another one calls it again.

    The first error of a function is raised by the next schedule, join or done, also where
    a fetch has raised it before. By then everything that was queued is cancelled, and
    nothing is executing. Then all begins anew, with other functions or the same. That a
    function is refused, such as one that no task has registered, is an error of that
    kind, too, but cancels nothing.

    The queue is that of the run, and outlives this process and the coordinator; however
    often a program makes one, it is the same. It is used by several threads safely.
    watchdog is for how many seconds no function may end, while some have not, before
    the stacks of this process are written to stderr; see WatchDog.
    """

    _session: "_Session"
    strategy: Any

    def __new__(cls, strategy: Any = None, *, watchdog: Optional[float] = None) -> "ClusterCoordinator":
        global _coordinator
        path = os.environ.get("CLUSTERRUN_SOCKET", "")
        if not path:
            raise ValueError(
                "a ClusterCoordinator is for tasks: CLUSTERRUN_SOCKET is not set, clusterrun did not start this process"
            )
        with _coordinator_lock:
            self = _coordinator and _coordinator()
            if self is None or self._session.path != path or self._session.over:
                self = super().__new__(cls)
                self.strategy = strategy
                self._session = session = _Session(path)
                weakref.finalize(self, session.close).atexit = False  # what is unsent is sent then
                _coordinator = weakref.ref(self)
        self._session.watch(watchdog)
        return self

    def schedule(
        self,
        fn: Union[str, Callable[..., Any]],
        args: Optional[Sequence[Any]] = None,
        kwargs: Optional[Mapping[str, Any]] = None,
        *,
        key: Optional[str] = None,
        task: Optional[str] = None,
        priority: int = 0,
        timeout: Optional[float] = None,
        retries: int = 0,
        max_losses: Optional[int] = None,
        detached: bool = False,
        retry: bool = False
    ) -> RemoteValue:
        """Have some task call a function, and return what stands for its value at once.
        While the queue is full it waits, and while another thread joins; StopError when
        the tasks of the run are to stop, since those that serve end then.

        fn is a registered function, or the name of one. Arguments are what JSON has, a
        tuple being a list there, and PerWorkerValues.

        key: a closure with the same key is the same closure for as long as the run lives,
        unless that was cancelled. One that has failed raises its error again, and with
        retry it is called again. The keys of a run have 1 MiB at most, 8 bytes for each
        included, and what finds no room is refused. task: only this task may call it, and
        one that the run does not have is an error. priority: higher ones go first. timeout
        bounds one call, in seconds.
        retries: how often it is called again after an error. max_losses: how often its
        task may die under it before that is an error; 10, and less than 0 is any number.
        A chief that handles that error, and ends before the task is back, has not undone
        the death: the run fails by it.
        detached: join and done do not wait for it, and its error is only its own.
        """
        name = _registered_name(fn)
        raw = _arguments(name, args, kwargs)
        options = _closure_options(key, task, priority, timeout, retries, max_losses, detached, retry)
        return self._session.schedule(self, '{"function":%s%s%s}' % (_encode(name), raw, options), bool(detached))

    def join(self) -> None:
        """Wait until all functions that were scheduled have ended. Raises the first
        error, if there is one, once nothing is executing any more. StopError when the
        tasks of the run are to stop and some have not ended: nobody might call them."""
        self._session.join()

    def done(self) -> bool:
        """Whether all functions that were scheduled have ended. Raises the first error,
        if there is one, once nothing is executing any more."""
        return self._session.done()

    def fetch(self, val: Any, timeout: Optional[float] = None) -> Any:
        """Wait for a RemoteValue, or for all in a structure of tuples, lists and dicts,
        which is returned with values in their places. Anything else stays as it is.
        StopError when the tasks of the run are to stop and a function has not ended."""
        end = None if timeout is None else time.monotonic() + timeout

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
        """What a registered function returns in each task, for functions that are
        scheduled. A process builds it when it first calls one of those, and keeps it as
        long as somebody here refers to the PerWorkerValues."""
        return self._create(PerWorkerValues, fn, args, kwargs)

    def _create(self, what: Any, fn: Any, args: Any, kwargs: Any) -> Any:
        name = _registered_name(fn)
        return what(self._session.create_resource('"function":%s%s' % (_encode(name), _arguments(name, args, kwargs))), self)

    _create_per_worker_resources = create_per_worker_resource

    def create_per_worker_dataset(
        self, dataset_fn: Union[str, Callable[..., Any]], args: Optional[Sequence[Any]] = None, kwargs: Optional[Mapping[str, Any]] = None
    ) -> _PerWorkerDataset:
        """A dataset of each worker. dataset_fn is a registered function that returns an
        iterator, such as a generator function. iter() of the dataset is a per-worker
        resource, which functions take the next element of; each iter() begins anew, and
        the iterators of one that nobody refers to any more are dropped."""
        _registered_name(dataset_fn)
        return _PerWorkerDataset(self, dataset_fn, args, kwargs)

    def remote_value(self, closure: int) -> RemoteValue:
        """The value of a closure by its ID, also one that another process, or an earlier
        one of this task, has scheduled."""
        return self._session.find(self, closure)

    def cancel(self, values: Union[None, RemoteValue, Iterable[RemoteValue]] = None) -> None:
        """Cancel functions that have not ended; without values all, whoever scheduled
        them. Those being called have CancelledError raised in them."""
        if isinstance(values, RemoteValue):
            values = [values]
        self._session.cancel(None if values is None else list(values))

    def metrics(self) -> Dict[str, int]:
        """Counts, of this process: closure_execution of the functions that have ended,
        remote_value_fetch of the values that came here."""
        return self._session.metrics()


_coordinator: Optional["weakref.ref[ClusterCoordinator]"] = None
_coordinator_lock = threading.RLock()
_sessions: "weakref.WeakSet[_Session]" = weakref.WeakSet()


def _registered_name(fn: Any) -> str:
    """The name of a function. One that is named may be registered only elsewhere."""
    if isinstance(fn, str):
        return fn
    name = getattr(fn, "__name__", None)
    if isinstance(name, str) and _functions.get(name) is fn:
        return name
    return _registered(fn)


def _arguments(name: str, args: Any, kwargs: Any) -> str:
    """The arguments of a function as members of an object."""
    if args is None:
        args = ()
    elif not isinstance(args, (tuple, list)):
        raise TypeError("args is %r; want a tuple of arguments, such as (%r,)" % (args, args))
    if kwargs is None:
        kwargs = {}
    elif not isinstance(kwargs, Mapping) or not all(isinstance(k, str) for k in kwargs):
        raise TypeError("kwargs is %r; want a dict of arguments by name" % (kwargs,))
    resources: List[int] = []

    def special(value: Any) -> Any:
        if isinstance(value, PerWorkerValues):
            if value._id not in resources:
                resources.append(value._id)
            return {_RESOURCE: value._id}
        if isinstance(value, RemoteValue):
            raise ValueError("a RemoteValue is not supported as an argument of a scheduled function; fetch it first")
        if isinstance(value, _PerWorkerDataset):
            raise TypeError("a dataset of each worker is no argument; its iterator is: iter(dataset)")
        raise TypeError("%r is no JSON" % (value,))

    def members(encode: Callable[[Any], str]) -> str:
        raw = ',"args":' + encode(args) if args else ""
        return raw + ',"kwargs":' + encode(dict(kwargs)) if kwargs else raw

    try:
        try:
            raw = members(_encode)
        except TypeError:  # something special is among them
            raw = members(json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=special).encode)
    except RecursionError as e:
        raise ValueError("the arguments of %s are no JSON: %s" % (name, e)) from None
    except (TypeError, ValueError) as e:
        raise type(e)("the arguments of %s: %s" % (name, e)) from None
    if len(raw) > _MAX_ARGUMENTS:
        raise ValueError("the arguments of %s have %d bytes of JSON; the limit is %d: pass large data in files" % (name, len(raw), _MAX_ARGUMENTS))
    if resources:
        raw += ',"resources":' + _encode(resources)
    return raw


def _closure_options(
    key: Optional[str], task: Optional[str], priority: int, timeout: Optional[float], retries: int, max_losses: Optional[int], detached: bool,
    retry: bool
) -> str:
    """The options of a closure as a member of an object, if there are some."""
    options: Dict[str, Any] = {}
    if key is not None:
        if not isinstance(key, str) or not 0 < len(key.encode("utf-8", "replace")) <= _MAX_NAME or not key.isprintable():
            raise ValueError("key is %r; want 1 to %d bytes that can be printed" % (key, _MAX_NAME))
        options["key"] = key
    if retry:
        if key is None:
            raise ValueError("retry is set without a key; want the key of the closure that has failed")
        options["retry"] = True
    if task is not None:
        if not isinstance(task, str) or not task:
            raise ValueError("task is %r; want the name of one, such as 'worker-1'" % (task,))
        options["task"] = task
    if priority:
        if not isinstance(priority, int) or not -1000 <= priority <= 1000:
            raise ValueError("priority is %r; want a whole number from -1000 to 1000" % (priority,))
        options["priority"] = priority
    if timeout is not None:
        if not timeout > 0 or timeout > 3e8:
            raise ValueError("timeout is %r; want a number of seconds greater than 0" % (timeout,))
        options["timeout"] = "%dns" % max(1, round(timeout * 1e9))
    if retries:
        if not isinstance(retries, int) or retries < 0:
            raise ValueError("retries is %r; want a whole number from 0" % (retries,))
        options["retries"] = retries
    if max_losses is not None:
        if not isinstance(max_losses, int):
            raise ValueError("max_losses is %r; want a whole number" % (max_losses,))
        options["max_losses"] = max_losses
    if detached:
        options["detached"] = True
    return ',"options":' + _encode(options) if options else ""


class _Line:
    """A connection to the host for one thread, made anew as long as somebody wants it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection: Optional[socket.socket] = None
        self.over = False
        self.patience = _FOREVER  # until when it is tried

    def ask(self, name: str, raw: bytes) -> bytes:
        """Send a request until there is an answer. _Away: nobody wants it any more."""
        request = b"%s%d\r\n\r\n%s" % (_head("POST", _COORDINATOR + name), len(raw), raw)
        delay = _FIRST_RETRY
        while not self.over:
            reused = self.connection is not None
            try:
                if self.connection is None:
                    self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                    self.connection.connect(self.path)
                    if self.over:  # it was cut while there was nothing to cut
                        continue
                status, answer, keep = _exchange_raw(self.connection, request, None)
            except OSError as e:  # its half that answers is being started again
                self.hang_up()
                if reused:
                    continue
                if not isinstance(e, (ConnectionError, FileNotFoundError, BlockingIOError)):
                    raise TaskError("the host cannot be asked: %s" % e, "away") from None
                if time.monotonic() > self.patience:
                    break
                time.sleep(delay)
                delay = min(2 * delay, _LAST_RETRY)
                continue
            if not keep:
                self.hang_up()
            if status == 200:
                return answer
            raise _problem(status, json.loads(answer.decode()).get("error", {}))
        raise _Away

    def hang_up(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            _close(connection)

    def cut(self) -> None:
        """End it, from another thread."""
        self.over = True
        connection = self.connection
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Unsent:
    """A closure that is to be sent, or is on its way."""

    __slots__ = ("number", "value", "raw", "epoch", "detached", "cancelled")

    def __init__(self, number: int, value: RemoteValue, raw: bytes, epoch: int, detached: bool) -> None:
        self.number = number  # of those that were scheduled, from 1
        self.value = value
        self.raw = raw
        self.epoch = epoch
        self.detached = detached
        self.cancelled = False  # to be, once it has an ID


class _Open:
    """A closure in the queue that has not ended, as far as this process knows, and who
    waits for its value here. Nobody may want it any more. known: it was in the queue
    before it was scheduled here, by its key."""

    __slots__ = ("values", "detached", "known")

    def __init__(self, detached: bool, known: bool = False) -> None:
        self.values: List["weakref.ref[RemoteValue]"] = []
        self.detached = detached
        self.known = known


class _Session:
    """A client of the queue of the run. One thread sends what is scheduled, in batches;
    another follows what has come of it. What is sent has a number, so that it can be
    sent again when the answer gets lost, and the queue answers it the same. Where the
    history of the queue was read to is known here, and the host need not remember it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.urandom(16).hex()
        self.over = ""  # why nothing can be asked any more
        self.closing = False
        # A finalizer may want it in a thread that holds it.
        self.lock = threading.RLock()
        self.work = threading.Condition(self.lock)  # something is to be sent
        self.wanted = threading.Condition(self.lock)  # somebody waits for outcomes
        self.room = threading.Condition(self.lock)  # more can be scheduled
        self.ended = threading.Condition(self.lock)  # of closures
        self.unsent: "collections.deque[_Unsent]" = collections.deque()
        self.bytes = 0  # of those
        self.sent_now: List[_Unsent] = []  # on their way, so many of which
        self.sending = 0  # have no answer yet
        self.batch = 0
        self.scheduled = 0  # so many closures were,
        self.passed = 0  # and so many of them the queue has answered for
        self.open: Dict[int, _Open] = {}
        self.attached = 0  # of those: not detached
        self.early: Dict[int, Dict[str, Any]] = {}  # outcomes that came before the ID
        self.early_ranges: List[Dict[str, Any]] = []
        self.early_full = False  # and some are not there
        self.epoch = 0
        self.raised: Optional[BaseException] = None  # an error that has to be told
        self.failed = False  # a function has, and nobody was told
        self.joining = 0
        self.stop: Optional[Dict[str, Any]] = None  # why the tasks of the run are to stop
        self.joins: Set[_Line] = set()  # on which somebody waits
        self.calls = itertools.count(1)
        self.abandoned: List[int] = []  # calls of joins that were interrupted
        self.resources = itertools.count(1)
        # Held by who creates one: the queue remembers the numbers of the latest requests.
        self.creating = threading.Lock()
        self.kept: Set[int] = set()  # resources that somebody here refers to
        # Those that nobody does, and how many closures had been scheduled until then.
        self.released: "collections.deque[Tuple[int, int]]" = collections.deque()
        self.releasing = 0  # on their way
        self.release_at = 0.0  # others may come until then
        self.asked = 0.0  # when the queue was last asked whether all is done
        self.counts = {"closure_execution": 0, "remote_value_fetch": 0}
        self.dog: Optional[WatchDog] = None
        self.started = False
        self.lines = [_Line(path), _Line(path)]
        opened = self.ask("open", {})
        self.at = opened["at"]
        # How many closures the queue has room for, as far as it has said. What it has not
        # answered for takes some of that.
        self.free = opened.get("room", _MAX_UNSENT)
        _sessions.add(self)
        _watching()
        self.hear_stop()

    def ask(self, name: str, what: Dict[str, Any], line: Optional[_Line] = None) -> Dict[str, Any]:
        raw = json.dumps(what).encode()
        try:
            if line is not None:
                answer: Dict[str, Any] = json.loads(line.ask(name, raw).decode())
                return answer
            return _get_host().exchange(_head("POST", _COORDINATOR + name), lambda: raw, None)
        except TaskError as e:
            if e.code == "over":
                self.end(str(e))
            raise

    def check(self) -> None:
        """For holders of the lock, as are all below that do not take it."""
        if self.over:
            raise TaskError(self.over, "over")

    def hear_stop(self) -> None:
        """The tasks of the run are to stop, or that is taken back."""
        with self.lock:
            said = _get_host().watch.said
            self.stop = said if said["stop"] else None
            if self.stop is not None:
                for line in self.joins:
                    line.cut()
                self.room.notify_all()
                self.ended.notify_all()

    def wait(self, condition: threading.Condition, seconds: Optional[float] = None) -> None:
        """Wait for what others do. Where the tasks are to stop it may never come: those
        that serve end, and what is queued stays there."""
        if self.stop is not None:
            raise _wait_ended(self.stop)
        condition.wait(seconds)

    def start(self) -> None:
        if not self.started:
            self.started = True
            threading.Thread(target=self.send, name="clusterrun-schedule", daemon=True).start()
            threading.Thread(target=self.receive, name="clusterrun-outcomes", daemon=True).start()

    def close(self) -> None:
        """End the threads. No closure is unsent then, and nobody waits for anything."""
        with self.lock:
            self.closing = True
            releases = (self.released or self.releasing) and not self.over
            self.lines[0].patience = time.monotonic() + _FLUSH_PATIENCE
            self.work.notify_all()
            self.wanted.notify_all()
        if not releases:  # else the thread that sends them hangs up
            self.lines[0].cut()
        self.lines[1].cut()
        if self.dog is not None:
            self.dog.stop()

    def end(self, why: str) -> None:
        """Nothing can be asked any more."""
        with self.lock:
            self.over = self.over or why
            for unsent in self.unsent:
                unsent.value._abort()
            self.unsent.clear()
            self.released.clear()
            for opened in self.open.values():
                for ref in opened.values:
                    value = ref()
                    if value is not None:
                        value._abort()
            self.open.clear()
            self.attached = 0
            for condition in (self.work, self.wanted, self.room, self.ended):
                condition.notify_all()

    def forked(self) -> None:
        """In a forked child: nobody there asks for anything."""
        self.lock, self.creating = threading.RLock(), threading.Lock()
        self.work, self.wanted, self.room, self.ended = (threading.Condition(self.lock) for _ in range(4))
        for line in self.lines:
            line.hang_up()
        self.joining = 0
        self.dog = None
        self.end("this coordinator is that of the parent process; make another one here")

    # -- scheduling

    def schedule(self, coordinator: ClusterCoordinator, closure: str, detached: bool) -> RemoteValue:
        try:
            raw = closure.encode()
        except UnicodeEncodeError:  # a surrogate, of a file's name perhaps
            raw = json.dumps(json.loads(closure)).encode()
        with self.lock:
            while True:
                self.check()
                if not detached:
                    self.tell()
                if (detached or not self.joining) and self.unanswered() < max(1, self.free) and self.bytes < _MAX_UNSENT_BYTES:
                    break
                self.wait(self.room)
            value = RemoteValue(coordinator)
            self.scheduled += 1
            one = _Unsent(self.scheduled, value, raw, self.epoch, detached)
            self.unsent.append(one)
            self.bytes += len(raw)
            self.start()
            if len(self.unsent) == 1:
                self.work.notify()
            try:
                # One that the queue has no room for waits there.
                while self.unanswered() > self.free and not value._id and value._status is RemoteValueStatus.NOT_READY and not self.over:
                    self.wait(self.room)
            except BaseException:  # such as KeyboardInterrupt: nobody has the value
                self.take_back(one)
                raise
            return value

    def unanswered(self) -> int:
        return self.scheduled - self.passed

    def take_back(self, one: _Unsent) -> None:
        one.cancelled = True
        if one in self.unsent:
            self.unsent.remove(one)
            self.unsent_cancelled(one)
            self.room.notify_all()
            self.ended.notify_all()

    def unsent_cancelled(self, one: _Unsent) -> None:
        one.value._settle({"id": 0, "kind": "cancelled"})
        self.passed += 1
        self.bytes -= len(one.raw)

    def tell(self) -> None:
        """Raise the error that has to be told, once."""
        error, self.raised = self.raised, None
        if error is not None:
            raise error

    def send(self) -> None:
        try:
            while True:
                with self.lock:
                    resources = self.due()
                    while not self.unsent and not resources and not self.closing and not self.over:
                        self.work.wait(self.release_at - time.monotonic() if self.released else None)
                        resources = self.due()
                    if not self.unsent and not resources:
                        return
                    batch = self.sent_now = self.next_batch() if self.unsent and not resources else []
                    self.sending = len(batch)
                    if batch:
                        self.wanted.notify()
                        self.room.notify_all()
                if resources:
                    self.release(resources)
                    continue
                self.deliver(batch)
                del batch  # which keeps the coordinator
        except _Away:
            pass
        except BaseException as e:
            over = isinstance(e, TaskError) and e.code == "over"
            self.end(str(e) if over else "closures cannot be scheduled: %s" % e)
        finally:
            if self.closing:
                self.lines[0].hang_up()

    def due(self) -> List[int]:
        """The resources that can be released: the queue has answered for what uses them.
        They are sent together with others of the next moment."""
        found: List[int] = []
        if self.over or time.monotonic() < self.release_at and not self.closing:
            return found
        while self.released and len(found) < _MAX_BATCH:
            if self.unsent and self.unsent[0].number <= self.released[0][0]:
                break
            found.append(self.released.popleft()[1])
        self.releasing = len(found)
        return found

    def release(self, resources: List[int]) -> None:
        """Say that nobody needs resources any more. A host that does not take that is one
        of an earlier version, which keeps them."""
        try:
            self.lines[0].ask("release", json.dumps({"session": self.name, "resources": resources}).encode())
        except TaskError as e:
            if e.code == "over":
                raise
        with self.lock:
            self.releasing = 0
            self.ended.notify_all()

    def next_batch(self) -> List[_Unsent]:
        """What fits into a request: closures that were scheduled when the same errors
        had been told, for those are cancelled together, and no detached ones among
        others."""
        batch = [self.unsent.popleft()]
        size = len(batch[0].raw)
        while self.unsent and len(batch) < _MAX_BATCH:
            one = self.unsent[0]
            size += len(one.raw)
            if size > _MAX_BATCH_BYTES or one.epoch != batch[0].epoch or one.detached != batch[0].detached:
                break
            batch.append(self.unsent.popleft())
        self.bytes -= sum(len(one.raw) for one in batch)
        return batch

    def deliver(self, batch: List[_Unsent]) -> None:
        """Send closures. Where the queue refuses some of them, the others are sent all
        the same."""
        self.batch += 1
        raw = b'{"session":"%s","batch":%d,"epoch":%d,"closures":[%s]}' % (
            self.name.encode(), self.batch, batch[0].epoch, b",".join(one.raw for one in batch)
        )
        try:
            answer = json.loads(self.lines[0].ask("schedule", raw).decode())
        except TaskError as e:
            if e.code == "over":
                self.end(str(e))
                answer = None
            elif len(batch) > 1:
                half = len(batch) // 2
                self.deliver(batch[:half])
                self.deliver(batch[half:])
                return
            else:
                answer = {"refused": e}
        unseen, cancelled = self.sent(batch, answer)
        if cancelled:
            self.lines[0].ask("cancel", json.dumps({"closures": cancelled}).encode())
        if unseen:
            self.look(unseen)

    def sent(self, batch: List[_Unsent], answer: Optional[Dict[str, Any]]) -> Tuple[List[int], List[int]]:
        """Take in the answer to a request. Returns which closures may have ended before,
        and which are to be cancelled."""
        unseen, cancelled = [], []
        with self.lock:
            self.sending -= len(batch)
            self.passed += len(batch)
            if answer is None:
                for one in batch:
                    one.value._abort()
            elif "refused" in answer:
                said = _refused(answer["refused"])
                batch[0].value._settle({"error": said})
                if not batch[0].detached and self.raised is None:
                    self.raised = _closure_error(said)
            else:
                known = set(answer.get("known") or ())
                self.free = min(answer.get("room", _MAX_UNSENT), _MAX_UNSENT)
                for i, (one, key) in enumerate(zip(batch, answer["ids"])):
                    one.value._id = key
                    if one.cancelled:
                        cancelled.append(key)
                    outcome = self.early.get(key) or self.early_range(key)
                    if outcome is not None:
                        self.count(outcome, one.detached)
                        one.value._settle(outcome)
                        continue
                    if self.over:
                        one.value._abort()
                        continue
                    # Join may not wait for one that another has scheduled under its key.
                    self.expect(one.value, one.detached or i in known, i in known)
                    if i in known or self.early_full:
                        unseen.append(key)
                self.hear(answer)
                if answer.get("raised") and self.raised is None:
                    self.raised = _closure_error(answer["raised"])
            if not self.sending:
                self.early, self.early_ranges, self.early_full = {}, [], False
                self.sent_now = []
            self.room.notify_all()
            self.ended.notify_all()
        return unseen, cancelled

    def expect(self, value: RemoteValue, detached: bool, known: bool = False) -> None:
        if not self.open and self.dog is not None:
            self.dog.report_closure_done()
        opened = self.open.get(value._id)
        if opened is None:
            opened = self.open[value._id] = _Open(detached, known)
            self.attached += not detached
        opened.values.append(weakref.ref(value))
        self.wanted.notify()

    def hear(self, answer: Dict[str, Any]) -> None:
        self.epoch = max(self.epoch, answer.get("epoch", 0))
        if answer.get("raised"):
            self.failed = False

    # -- what has come of it

    def receive(self) -> None:
        try:
            while True:
                with self.lock:
                    while not self.open and not self.sending and not self.closing and not self.over:
                        self.wanted.wait()
                    if self.closing or self.over:
                        return
                    what = {"session": self.name, "after": self.at, "wait": _MAX_WAIT, "tuples": True}
                raw = self.lines[1].ask("outcomes", json.dumps(what).encode())
                answer = json.loads(raw.decode())
                if _TUPLE.encode() in raw:
                    for outcome in answer.get("outcomes") or ():
                        outcome["value"] = _unmark_tuples(outcome.get("value"))
                with self.lock:
                    self.take(answer)
                del answer
        except _Away:
            pass
        except BaseException as e:
            over = isinstance(e, TaskError) and e.code == "over"
            self.end(str(e) if over else "what has come of closures is not known any more: %s" % e)

    def take(self, answer: Dict[str, Any]) -> None:
        self.at = answer["at"]
        for outcome in answer.get("outcomes") or ():
            self.settle(outcome)
        for span in answer.get("cancelled") or ():
            first, last = span["first"], span["last"]
            if last - first < len(self.open):
                keys = [key for key in range(first, last + 1) if key in self.open]
            else:
                keys = [key for key in self.open if first <= key <= last]
            for key in keys:
                self.settle(_cancelled(key, span))
            if self.sending and self.early_room():
                self.early_ranges.append(span)
        self.ended.notify_all()

    def settle(self, outcome: Dict[str, Any]) -> None:
        key = outcome["id"]
        opened = self.open.pop(key, None)
        if opened is None:
            # It may be of one whose ID is on its way. The first one counts.
            if self.sending and key not in self.early and self.early_range(key) is None and self.early_room():
                self.early[key] = outcome
            return
        self.attached -= not opened.detached
        self.count(outcome, opened.detached)
        for ref in opened.values:
            value = ref()
            if value is not None:
                value._settle(outcome)

    def early_room(self) -> bool:
        """Others may have closures called, too: there is a bound to what is kept."""
        if len(self.early) + len(self.early_ranges) >= _MAX_EARLY:
            self.early, self.early_ranges, self.early_full = {}, [], True
        return not self.early_full

    def early_range(self, key: int) -> Optional[Dict[str, Any]]:
        for span in self.early_ranges:
            if span["first"] <= key <= span["last"]:
                return _cancelled(key, span)
        return None

    def count(self, outcome: Dict[str, Any], detached: bool) -> None:
        kind = outcome.get("kind")
        if kind != "cancelled":
            self.counts["closure_execution"] += 1
        if kind in ("error", "input"):
            self.failed = self.failed or not detached
        elif kind != "cancelled":
            self.counts["remote_value_fetch"] += 1
        if self.dog is not None:
            self.dog.report_closure_done()

    def look(self, keys: List[int]) -> None:
        """Look for what has come of closures that may have ended before anybody waited
        for them here. What ends later is told to all who do."""
        raw = json.dumps({"closures": keys, "tuples": True}).encode()
        self.found(json.loads(self.lines[0].ask("find", raw).decode()))

    def found(self, answer: Dict[str, Any]) -> None:
        with self.lock:
            for outcome in answer["outcomes"]:
                outcome["value"] = _unmark_tuples(outcome.get("value"))
                self.settle(outcome)
            self.ended.notify_all()

    def fetch(self, value: RemoteValue, timeout: Optional[float]) -> Any:
        end = None if timeout is None else time.monotonic() + timeout
        with self.lock:
            while value._status is RemoteValueStatus.NOT_READY:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("closure %s has not ended within %gs" % (value._id or "", timeout))
                self.wait(self.ended, left)
        if value._error is not None:
            raise _closure_error(value._error)
        return value._value

    def find(self, coordinator: ClusterCoordinator, key: int) -> RemoteValue:
        value = RemoteValue(coordinator)
        value._id = key
        with self.lock:
            self.check()
            self.expect(value, True)
            self.start()
        try:
            answer = self.ask("find", {"closures": [key], "tuples": True})
        except BaseException as e:
            with self.lock:
                opened = self.open.get(key)
                if opened is not None:
                    opened.values = [ref for ref in opened.values if ref() is not value]
                    if not opened.values and opened.detached:
                        del self.open[key]
            if isinstance(e, TaskError) and e.code in _REFUSALS:
                raise ValueError(str(e)) from None
            raise
        self.found(answer)
        return value

    # -- waiting

    def join(self) -> None:
        line = _Line(self.path)
        with self.lock:
            self.joining += 1
        try:
            with self.lock:
                until = self.scheduled
                while self.passed < until and self.raised is None and not self.over:
                    self.wait(self.ended)
                self.check()
                self.tell()
                stop = self.stop
                if stop is None:
                    self.joins.add(line)
                    call = self.abandoned.pop() if self.abandoned else next(self.calls)
            if stop is None:
                try:
                    answer = self.ask("join", {"session": self.name, "call": call}, line)
                except BaseException as e:  # such as KeyboardInterrupt: the next join is this one
                    with self.lock:
                        self.abandoned.append(call)
                        stop = self.stop or {}
                    if not isinstance(e, _Away):
                        raise
                else:
                    self.conclude(answer)
                    return
            if not self.done():
                raise _wait_ended(stop)
        finally:
            line.hang_up()
            with self.lock:
                self.joins.discard(line)
                self.joining -= 1
                self.room.notify_all()

    def done(self) -> bool:
        with self.lock:
            self.check()
            self.tell()
            now = time.monotonic()
            if self.passed < self.scheduled or self.attached and not self.failed and now - self.asked < _ASK_DONE:
                return False
            self.asked, self.failed = now, False
            call = next(self.calls)
        return self.conclude(self.ask("done", {"session": self.name, "call": call}))

    def conclude(self, answer: Dict[str, Any]) -> bool:
        """Take in that all is done, or the error that has come out of it. The queue knows
        of the end of functions a little earlier than this process."""
        with self.lock:
            self.hear(answer)
            raised = answer.get("raised")
            known = [key for key, opened in self.open.items() if opened.known] if raised or answer["done"] else []
        for i in range(0, len(known), _MAX_FIND):
            # Those that were in the queue before may have ended there, or be detached.
            with contextlib.suppress(TaskError):  # else they come a little later
                self.found(self.ask("find", {"closures": known[i:i + _MAX_FIND], "tuples": True}))
        with self.lock:
            if raised or answer["done"]:
                until = self.passed
                while self.attached and self.passed == until and not self.over:
                    self.ended.wait()
        if raised:
            raise _closure_error(raised)
        with self.lock:
            if answer["done"]:
                self.tell()
        return answer["done"]

    # -- the rest

    def create_resource(self, what: str) -> int:
        if _building():
            raise ValueError("Creating a per-worker resource in the function of one is not allowed.")
        try:
            with self.creating:
                raw = ('{"session":"%s","number":%d,%s}' % (self.name, next(self.resources), what)).encode()
                return _get_host().exchange(_head("POST", _COORDINATOR + "resources"), lambda: raw, None)["id"]
        except TaskError as e:
            if e.code in _REFUSALS:
                raise _closure_error(_refused(e)) from None
            raise

    def keep(self, values: PerWorkerValues) -> None:
        """Have the resource released when nobody refers to it any more."""
        with self.lock:
            self.start()  # a finalizer may be no place for that
            self.kept.add(values._id)
        weakref.finalize(values, self.drop, values._id).atexit = False  # see _flush_sessions

    def drop(self, resource: int) -> None:
        with self.lock:
            if self.over or resource not in self.kept:
                return
            self.kept.remove(resource)
            if not self.released:
                self.release_at = time.monotonic() + _GATHER_RELEASES
            self.released.append((self.scheduled, resource))
            self.work.notify()

    def cancel(self, values: Optional[List[RemoteValue]]) -> None:
        with self.lock:
            self.check()
            wanted = None if values is None else {id(v) for v in values}
            kept: "collections.deque[_Unsent]" = collections.deque()
            for one in self.unsent:
                if wanted is not None and id(one.value) not in wanted:
                    kept.append(one)
                    continue
                self.unsent_cancelled(one)
            self.unsent = kept
            for one in self.sent_now:
                one.cancelled = one.cancelled or wanted is None or id(one.value) in wanted
            keys = sorted({v._id for v in values or () if v._id and v._status is RemoteValueStatus.NOT_READY})
            self.room.notify_all()
            self.ended.notify_all()
        if values is None:
            self.ask("cancel", {})
        for i in range(0, len(keys), _MAX_FIND):
            self.ask("cancel", {"closures": keys[i:i + _MAX_FIND]})

    def metrics(self) -> Dict[str, int]:
        with self.lock:
            return dict(self.counts)

    def watch(self, seconds: Optional[float]) -> None:
        with self.lock:
            if self.dog is None and not self.over:
                dog = WatchDog(-1 if seconds is None else seconds, sys.stderr, waits=lambda: bool(self.open))
                self.dog = dog if dog.timeout > 0 else None

    def flush(self, end: float) -> None:
        """At the end of the program: what is unsent is sent, and resources are nobody's."""
        with self.lock:
            for resource in sorted(self.kept):
                self.drop(resource)
            self.release_at = 0.0
            self.work.notify()
            while (self.passed < self.scheduled or self.released or self.releasing) and not self.over and time.monotonic() < end:
                self.ended.wait(end - time.monotonic())


def _building() -> bool:
    """Whether this is called by the function of a per-worker resource. What builds those
    may be interrupted at any line, so it keeps no note of it."""
    frame = sys._getframe()
    while frame is not None and frame.f_code is not _Server.resource.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


_REFUSALS = ("queue_refused", "invalid")


def _refused(e: TaskError) -> Dict[str, Any]:
    """The error of a closure that the queue does not take."""
    message = str(e)
    for prefix in ("invalid request: ", "field ", "closures[0].", "options.", "function: "):
        if message.startswith(prefix):
            message = message[len(prefix):]
    kind = "UnknownFunctionError" if message.startswith("no task has registered a function") else "RefusedError"
    return {"kind": kind if e.code in _REFUSALS else "TaskError", "message": message}


def _cancelled(key: int, span: Dict[str, Any]) -> Dict[str, Any]:
    return {"id": key, "kind": "cancelled", "error": {
        "kind": "CancelledError", "message": span.get("text") or _TEXT_CANCELLED, "closure": key,
    }}


def _unmark_tuples(value: Any) -> Any:
    """Make tuples again what stands for them."""
    if isinstance(value, list):
        return [_unmark_tuples(v) for v in value]
    if isinstance(value, dict):
        if len(value) == 1 and isinstance(value.get(_TUPLE), list):
            return tuple(_unmark_tuples(v) for v in value[_TUPLE])
        return {k: _unmark_tuples(v) for k, v in value.items()}
    return value


__all__ += ["handle_parameter_server_failure"]


@contextlib.contextmanager
def handle_parameter_server_failure() -> Iterator[None]:
    """With this around it, a program that cannot go on without a parameter server ends
    with the exit code that TF_CLIENT_NON_FATAL_RESTART_EXIT_CODE says, where it is set: a
    sign for who starts programs again that this is no error of its own.

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


class WatchDog:
    """Writes the stacks of all threads of this process to a file when no function has
    ended for so many seconds, and calls on_triggered. TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT
    is in the place of timeout; without either, or with 0, there is none. waits says
    whether there is something to wait for."""

    def __init__(
        self,
        timeout: float = -1,
        traceback_file: Any = None,
        on_triggered: Optional[Callable[[], Any]] = None,
        waits: Callable[[], bool] = lambda: True,
    ) -> None:
        said = os.environ.get("TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT", "")
        self.timeout = float(said) if said.isdigit() else timeout
        self._file = traceback_file
        self._on_triggered = on_triggered
        self._waits = waits
        self._change = threading.Condition()
        self._reported = time.monotonic()
        self._stopped = self.timeout <= 0
        if not self._stopped:
            threading.Thread(target=self._watch, name="clusterrun-watchdog", daemon=True).start()

    def report_closure_done(self) -> None:
        """Begin to count anew."""
        self._reported = time.monotonic()

    def stop(self) -> None:
        """It does nothing any more."""
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def _watch(self) -> None:
        while True:
            with self._change:
                left = self._reported + self.timeout - time.monotonic()
                if not self._stopped:
                    self._change.wait(max(left, 0.001))
                if self._stopped:
                    return
            if time.monotonic() - self._reported < self.timeout:
                continue
            self._reported = time.monotonic()
            if self._waits():
                self._trigger()

    def _trigger(self) -> None:
        import faulthandler

        file = self._file or sys.stdout
        with contextlib.suppress(Exception):
            file.write("WatchDog: no function has ended for %g seconds. The stacks of this process:\n" % self.timeout)
            file.flush()
            faulthandler.dump_traceback(file)
        if self._on_triggered is not None:
            self._on_triggered()


def _flush_sessions() -> None:
    end = time.monotonic() + _FLUSH_PATIENCE
    for session in list(_sessions):
        session.flush(end)


def _forget_sessions() -> None:
    global _coordinator, _coordinator_lock
    _coordinator, _coordinator_lock = None, threading.RLock()
    for session in list(_sessions):
        session.forked()


atexit.register(_flush_sessions)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_sessions)
