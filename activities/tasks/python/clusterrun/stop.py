"""Stopping together: one stop for all the run's tasks."""

import json
import threading
import time
import weakref
from typing import Any, Callable, Dict, Optional, Tuple, Union

from ._errors import MAX_MESSAGE, ExcInfo, RemoteTraceback, TaskError, describe, exc_info, message_of, printable, seconds
from ._event import Event
from ._http import head
from ._transport import Away, Host, ask, find_host, in_forked_children

_STOP = "/v1/stop"
_STOP_WAIT = 60  # seconds that a request waits at the host
_FIRST_PATIENCE = 1.0  # seconds for an absent host's first answer


def request_stop(ex: Union[BaseException, ExcInfo, None] = None, reason: Optional[str] = None) -> None:
    """Ask for all tasks of the run to stop, optionally because of the exception ex, which may
    be a tuple of sys.exc_info(), or for a reason that is not an error.

    The first exception decides the run's result, unless its kind means a clean stop: by default
    StopIteration, EOFError and OutOfRangeError. The call returns when the run has recorded the
    stop. It raises TaskError if the run refuses it, or is away for long. Outside a task, the
    stop is only for this process.
    """
    ask_to_stop(None if ex is None else exc_info(ex)[1], reason)


def should_stop() -> bool:
    """Return whether the run's tasks are to stop. It is cheap enough for every step: the first
    call starts a thread that follows every change, and later calls only read the state. Raise
    TaskError if the host cannot be asked. Outside a task, only the process's own request_stop
    counts."""
    watch = _watch or watching()
    if watch.error is not None:
        watch.raise_error()
    return watch.stop.is_set()


def wait_for_stop(timeout: Optional[float] = None) -> bool:
    """Wait until the run's tasks are to stop, at most timeout seconds; return whether they
    are."""
    end = None if timeout is None else time.monotonic() + seconds("timeout", timeout)
    watch = _watch or watching()
    if watch.thread is None and watch.host is not None:  # the interpreter is exiting
        watch.keep_up_until(end)
    told = watch.stop.wait(None if end is None else bounded(max(0.0, end - time.monotonic())))
    if watch.error is not None:
        watch.raise_error()
    return told


def preempted() -> Optional[float]:
    """Return the seconds left until the task is stopped, or None if it has not been given
    notice. Notice is given when its host drains or a person requests it. It is as cheap as
    should_stop. Save a checkpoint, and continue or exit with a nonzero code; the run continues
    from it once capacity is free. If all tasks exit with 0 in time, the run succeeds.
    Outside a task, it returns None."""
    watch = _watch or watching()
    if watch.error is not None:
        watch.raise_error()
    end = watch.end
    return None if end is None else max(0.0, end - time.monotonic())


class StopError(RuntimeError):
    """The error of another process that stopped a Coordinator tied to the run, or the stop that
    interrupted a ClusterCoordinator's wait. by is the task that asked, empty for an operator;
    kind, message and traceback describe the error, if any."""

    __module__ = "clusterrun"

    def __init__(self, text: str, by: str = "", kind: str = "", message: str = "", traceback: str = "") -> None:
        super().__init__(text)
        self.by = by
        self.kind = kind
        self.message = message
        self.traceback = traceback


def stop_error(said: Dict[str, Any]) -> Optional[StopError]:
    """Return a stop's error, if there is one and it counts."""
    error = said.get("error")
    if not error or said.get("clean"):
        return None
    by, kind, message = said.get("by", ""), error.get("kind", ""), error.get("message", "")
    what = "%s: %s" % (kind, message) if kind else message
    ex = StopError("%s stopped the run: %s" % (by or "an operator", what), by, kind, message, error.get("traceback", ""))
    if ex.traceback:
        ex.__cause__ = RemoteTraceback(ex.traceback)
    return ex


def wait_ended(said: Dict[str, Any]) -> StopError:
    """Return the error of an interrupted wait, with the stop's reason."""
    by, reason = said.get("by", ""), said.get("reason") or "the tasks of the run are to stop together"
    return stop_error(said) or StopError("%s stopped the run: %s" % (by or "an operator", reason), by)


def ask_to_stop(ex: Optional[BaseException], reason: Optional[str]) -> None:
    body: Dict[str, Any] = {}
    if reason:
        body["reason"] = printable(message_of(reason)[:MAX_MESSAGE])
    if ex is not None:
        kind, message, stack = describe(ex)
        body["error"] = {"kind": kind, "message": message, "traceback": stack}
    watch = get_watch()
    if watch.host is not None:
        watch.learn(ask("POST", _STOP, json.dumps(dict(body, key=watch.host.new_key()))))
    else:  # there is only this process's state
        with watch.lock:
            watch.learn(dict(body, seq=watch.said["seq"] + 1, stop=True))


class Watch:
    """Follows whether the run's tasks are to stop, with one waiting request to the host on a
    thread, for all callers in this process. Without a host, it follows nothing."""

    def __init__(self, host: Optional[Host]) -> None:
        self.host = host
        self.stop = Event()
        self.said: Dict[str, Any] = {"seq": 0, "stop": False}
        self.end: Optional[float] = None  # when the tasks are stopped, if announced
        self.error: Optional[Exception] = None  # why the host cannot be asked
        self.heard = Event()  # set after the first answer
        self.thread: Optional[threading.Thread] = None
        self.lock = threading.RLock()

    def start(self) -> None:
        with self.lock:
            if self.thread is not None or self.host is None:
                return
            thread = threading.Thread(target=self.run, name="clusterrun-stop", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # an exiting interpreter cannot start threads
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
        """Ask for the state: first immediately, then on each change."""
        assert self.host is not None
        path = _STOP
        if self.heard.is_set():
            path += "?wait=%ds&after=%d" % (_STOP_WAIT, self.said["seq"])
        try:
            self.learn(self.host.exchange(head("GET", path), bytes, deadline))
        except Away:
            return
        except Exception as e:
            if not self.stop.is_set():
                self.error = e
                self.stop.set()  # wakes those that wait
        self.heard.set()

    def learn(self, said: Dict[str, Any]) -> None:
        """Record a state, unless a later one is known, because a restarted host worker may lack
        the latest one."""
        with self.lock:
            if said["seq"] <= self.said["seq"]:
                return
            self.said = said
            notice = said.get("notice")
            self.end = None if notice is None else time.monotonic() + notice["left_seconds"]
            if said["stop"]:
                self.stop.set()
        with _listeners_lock:
            listeners = list(_listeners.items())
        for listener, (hear, _) in listeners:
            hear(listener, said)

    def raise_error(self) -> None:
        e = self.error
        if isinstance(e, TaskError):
            raise TaskError(str(e), e.code, e.field)
        raise TaskError("cannot ask the host whether to stop: %s" % e)


_Hear = Callable[[Any, Dict[str, Any]], None]
_Forked = Callable[[Any], None]

_watch: Optional[Watch] = None  # once started
_watches: Dict[Optional[Host], Watch] = {}
_listeners: "weakref.WeakKeyDictionary[Any, Tuple[_Hear, _Forked]]" = weakref.WeakKeyDictionary()
_listeners_lock = threading.RLock()


def get_watch() -> Watch:
    host = find_host()
    return _watches.get(host) or _watches.setdefault(host, Watch(host))


def watching() -> Watch:
    """Return this process's watch, starting it if necessary."""
    global _watch
    watch = get_watch()
    watch.start()
    _watch = watch
    return watch


def keep_watching() -> None:
    """Restart the watch in a forked child."""
    if _watch is None:
        watching()


def listen(listener: Any, hear: _Hear, forked: _Forked) -> Watch:
    """Call hear with the listener and each state of the run from now on, for the listener's
    lifetime, and call forked in a forked child."""
    watch = watching()
    with _listeners_lock:
        _listeners[listener] = hear, forked
    return watch


@in_forked_children
def _forget_watch() -> None:
    """A forked child gets unlocked locks, and no thread that follows the run."""
    global _watch, _listeners_lock
    _watch, _listeners_lock = None, threading.RLock()
    _watches.clear()
    for listener, (_, forked) in list(_listeners.items()):
        forked(listener)


def bounded(timeout: Optional[float]) -> Optional[float]:
    return None if timeout is None else min(seconds("timeout", timeout), threading.TIMEOUT_MAX)
