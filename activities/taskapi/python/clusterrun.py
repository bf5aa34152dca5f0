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

It needs Python 3.8 or later, and nothing else. No set-up in here ever fails: a
program that cannot answer runs as it would without this module.

How it works, for other languages: the environment names a signal and a file,

    CLUSTERRUN_STACK_SIGNAL   the number of the signal
    CLUSTERRUN_STACK_FILE     the file, to which a dot and the process ID are added

A process that has this file open for appending and handles the signal is sent
it, and is to append text to the file, promptly.
"""

import atexit
import contextlib
import functools
import json
import os
import socket
import threading
import time
from types import TracebackType
from typing import (
    Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Type, TypeVar, Union,
)
from urllib.parse import quote

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
        self.keys = 0
        self.lock = threading.Lock()
        self.progress_sent = -1.0

    def new_key(self) -> str:
        with self.lock:
            self.keys += 1
            return self.key + str(self.keys)

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
    while len(rest) < length:
        rest += _receive(connection, deadline)
    return status, json.loads(rest.decode()), keep


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
    """A forked child has connections of its own, and locks that nobody holds."""
    global _host
    _host = None


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


def _report(what: Union[BaseException, str], kind: str, patience: float = _PATIENCE) -> None:
    import traceback

    message, stack = str(what), ""
    if isinstance(what, BaseException):
        kind = kind or type(what).__name__
        stack = "".join(traceback.format_exception(type(what), what, what.__traceback__))
    now = time.time()
    message, stack = message[:_MAX_MESSAGE], stack[-_MAX_TRACEBACK:]
    # A surrogate, of a file's name perhaps, is no reason to lose the report.
    message = message.encode("utf-8", "replace").decode()
    stack = stack.encode("utf-8", "replace").decode()
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

_ExcInfo = Tuple[Type[BaseException], BaseException, Optional[TracebackType]]


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

    It is tf.train.Coordinator, with the same arguments and texts. What differs:
    join returns as soon as the last thread has ended, where the original looks once
    a second; it names threads in the order in which they were registered; and
    request_stop takes any exception, not only the one that is being handled.
    """

    def __init__(self, clean_stop_exception_types: Optional[Iterable[Type[BaseException]]] = None) -> None:
        """Make a coordinator that nobody has told to stop.

        An exception of one of the given types stops the threads as
        request_stop(None) does, and is not raised. Without types these are EOFError,
        StopIteration, and every class with the name OutOfRangeError, by which
        TensorFlow says that an input has ended. Types that are given replace them.
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
        info = None if ex is None else _exc_info(ex)
        if info is not None and self._is_clean(info[1]):
            info = None
        with self._lock:
            if self._joined and info is not None:
                raise info[1].with_traceback(info[2])
            first = not self._stop_event.is_set()
            if first:
                self._exc_info_to_raise = info
                self._stop_event.set()
                for waker in self._wakers:
                    waker.set()
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
            self._joined = False
            self._exc_info_to_raise = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
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
