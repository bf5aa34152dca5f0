"""Serving: a process calls functions that coordinators schedule."""

import json
import os
import threading
import time
from typing import Any, Dict, List, Mapping, Optional

from ._errors import CancelledError, ResourceError, TaskError, UnavailableError
from ._http import FOREVER, MAX_WAIT
from ._interrupt import forget_interrupt, interrupt, leave_main_thread, wake_main_thread, wake_thread
from ._json import loads
from ._line import Line
from ._transport import in_forked_children
from ._values import RESOURCE, error_outcome, failure_outcome, value_outcome
from .functions import functions, unknown_function
from .stop import wait_for_stop

_NEXT = "/v1/closures/next"
_ASK_WHILE_BUSY = 0.020  # seconds before the host is asked whether calls are cancelled
_LEAVE_PATIENCE = 2.0
_WAKE_AGAIN = 0.1  # seconds until a cancelled call is interrupted again


def serve() -> None:
    """Call the functions that coordinators schedule. It returns when the run's tasks are to
    stop together: immediately if no function is being called, otherwise when the running one
    has returned; it may check should_stop().

        @clusterrun.function
        def train(step, rate=0.1):
            ...
            return {"loss": loss}

        clusterrun.serve()

    Arguments and values are JSON values, and NaN, the infinities and bytes; other values are
    stored as text, with a warning. A value is limited to 256 KiB. An exception is the call's
    error. SystemExit exits the process, and the call is lost; it is repeated elsewhere. The
    exit code is then never 0, so the task is restarted if the run restarts tasks.

    Functions are called one after another in the thread that calls serve. Meanwhile another
    thread asks the host for more. To call several concurrently, run more tasks. A function that holds the interpreter in native code for long
    therefore cannot be cancelled, and the process does not report, until it releases the
    interpreter. CancelledError is raised in a cancelled call; functions may also check
    cancelled(). If the call does not return, its process is lost: the host restarts the task.

    A program that a function has started, for example with subprocess.Popen, continues when the
    call is cancelled, because later calls may need it. Stop it in a finally clause, like
    subprocess.run. At the latest it is killed with the process.
    """
    if not os.environ.get("CLUSTERRUN_SOCKET"):
        raise ValueError("serve is for tasks: CLUSTERRUN_SOCKET is not set, clusterrun did not start this process")
    if not functions:
        raise ValueError("no function is registered: decorate the functions to be called with @clusterrun.function")
    if not _stagger(start_delay(os.environ)):
        Server(os.environ["CLUSTERRUN_SOCKET"]).serve()


def cancelled() -> bool:
    """Return whether the running function must return because its call was cancelled; False
    outside a call. Threads started by a function get the same answer."""
    server = _server
    call = server.call if server is not None and server.pid == os.getpid() else None
    return call is not None and call.told


def _stagger(seconds: float) -> bool:
    """Wait before the first closure; return whether the tasks must stop in that time."""
    end = time.monotonic() + seconds
    try:
        return seconds > 0 and wait_for_stop(seconds)
    except TaskError:  # the host cannot be asked
        time.sleep(max(0.0, end - time.monotonic()))
        return False


def start_delay(environ: Mapping[str, str]) -> float:
    """Return the seconds before the first closure, which keep a large run's tasks from starting
    together: the task's index times the delay, at most the maximum."""
    values = []
    for name in ("TF_COORDINATOR_SCHEDULE_START_DELAY", "TF_COORDINATOR_SCHEDULE_START_DELAY_MAX"):
        text = environ.get(name) or "0"
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not 0 <= value < float("inf"):
            raise ValueError("%s is %r; use a number of seconds, such as 5" % (name, text))
        values.append(value)
    delay = values[0] * int(environ.get("CLUSTERRUN_TASK_INDEX") or 0)
    return min(delay, values[1]) if values[1] else delay


class Call:
    """A closure that this process holds."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.id: int = raw["id"]
        self.function: str = raw["function"]
        self.args: List[Any] = raw.get("args") or []
        self.kwargs: Dict[str, Any] = raw.get("kwargs") or {}
        self.resources: bool = bool(raw.get("resources"))
        self.begun = False
        self.told = False  # it must end
        self.inside = False  # the code that catches CancelledError
        self.interrupted = False  # CancelledError was sent


class Resource:
    """A resource that is built once in this process, at its first use."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.raw = raw
        self.built = False
        self.value: Any = None
        self.error: Optional[BaseException] = None


_server: Optional["Server"] = None


class Server:
    """A process that serves. One thread communicates with the host; serve's thread calls
    functions. Each request contains the process's whole state, and only the answer to the newest
    one counts."""

    def __init__(self, path: str) -> None:
        self.name = os.urandom(16).hex()
        self.pid, self.thread = os.getpid(), threading.get_ident()
        self.lock = threading.Lock()  # guards the state
        self.change = threading.Condition(self.lock)
        self.call: Optional[Call] = None
        self.outcome = b""  # the host may lack it
        self.seq = 0
        self.stopping = False  # no more calls start
        self.resources: Dict[int, Resource] = {}
        self.dropped: List[Resource] = []  # resources that are no longer needed
        self.over = False
        self.failure: Optional[BaseException] = None
        self.line = Line(path)

    # -- calling functions

    def serve(self) -> None:
        global _server
        _server = self
        previous = wake_main_thread()
        host = threading.Thread(target=self.ask, name="clusterrun-closures", daemon=True)
        host.start()
        try:
            self.work()
        finally:
            if self.pid == os.getpid():
                self.end(None)
                host.join(2 * _LEAVE_PATIENCE)
                if not host.is_alive():
                    self.line.close()
                leave_main_thread(previous)
                _server = None
        if self.failure is not None:
            raise self.failure

    def end(self, failure: Optional[BaseException]) -> None:
        with self.lock:
            self.over = True
            self.failure = self.failure or failure
            self.stop()
            self.line.wake()

    def stop(self) -> None:
        """Start no more calls. The next request omits the one that waits."""
        self.stopping = True
        if self.call is not None and not self.call.begun:
            self.call = None
        self.change.notify_all()

    def work(self) -> None:
        while True:
            with self.lock:
                while self.call is None and not self.dropped and not self.stopping:
                    self.change.wait()
                # Code that runs when resources are dropped, such as a generator's finally, belongs
                # to the program: it runs in this thread, and without the lock.
                dropped, self.dropped = self.dropped, []
                call = self.call
                if call is not None:
                    call.begun = True
                elif self.stopping:
                    return
            del dropped
            if call is not None:
                self.run(call)

    def run(self, call: Call) -> None:
        """Call a function, and store its outcome. CancelledError may still come until the lock
        is held and the interpreter has dropped it."""
        outcome: Optional[bytes] = None
        while True:
            try:
                call.inside = True
                if outcome is None:
                    outcome = self.outcome_of(call)
                with self.lock:
                    if call.interrupted:
                        forget_interrupt(self.thread)
                    self.call, self.outcome = None, b'{"id":%d%s}' % (call.id, outcome)
                    self.line.wake()
                break
            except CancelledError as e:  # too late: the function had returned
                if outcome is None:
                    outcome = error_outcome("cancelled", "CancelledError", str(e), "")

    def outcome_of(self, call: Call) -> bytes:
        try:
            if call.told:
                raise CancelledError
            value = self.value(call)
            self.check_fork(call)
            return value_outcome(call.function, value)
        except SystemExit as e:
            raise SystemExit(e.code or 1)  # even with 0 it has not completed
        except KeyboardInterrupt:
            raise
        except BaseException as e:
            self.check_fork(call)
            return failure_outcome(e)

    def check_fork(self, call: Call) -> None:
        if self.pid != os.getpid():
            # The parent also has the closure, and only its thread communicates with the host.
            # The child's work is done.
            raise SystemExit(
                "clusterrun: the function %s forked, and the child process returned from it; exit the child with os._exit" % call.function
            )

    def value(self, call: Call) -> Any:
        fn = functions.get(call.function)
        if fn is None:
            raise unknown_function(call.function)
        args, kwargs = call.args, call.kwargs
        if call.resources:
            args, kwargs = self.fill(args), self.fill(kwargs)
        return fn(*args, **kwargs)

    def fill(self, value: Any) -> Any:
        """Replace references to resources with what was built."""
        if isinstance(value, list):
            return [self.fill(v) for v in value]
        if isinstance(value, dict):
            if len(value) == 1 and RESOURCE in value:
                return self.resource(value[RESOURCE])
            return {k: self.fill(v) for k, v in value.items()}
        return value

    def resource(self, key: int) -> Any:
        """Return a resource, building it first if necessary. If that fails, it stays failed for
        this process's lifetime, unless the reason was a task that did not answer."""
        resource = self.resources.get(key)
        if resource is None:
            raise ResourceError(ValueError("the host has not defined resource %r, or it is no longer needed" % (key,)))
        if not resource.built:
            try:
                fn = functions.get(resource.raw["function"])
                if fn is None:
                    raise unknown_function(resource.raw["function"])
                resource.value = fn(*(resource.raw.get("args") or []), **(resource.raw.get("kwargs") or {}))
            except UnavailableError:
                raise
            except Exception as e:
                resource.error = e
            resource.built = True
        if resource.error is not None:
            raise ResourceError(resource.error) from resource.error
        return resource.value

    # -- asking the host

    def ask(self) -> None:
        try:
            while not self.over and (self.call is not None or not self.stopping):
                call, end = self.call, FOREVER
                if call is not None and call.interrupted:
                    # The signal may have come just before the wait that it should interrupt.
                    wake_thread(self.thread)
                    end = time.monotonic() + _WAKE_AGAIN
                if self.ask_once(MAX_WAIT, end) and self.call is not None:
                    self.line.wait(None, time.monotonic() + _ASK_WHILE_BUSY)
        except BaseException as e:
            self.end(e)
        end = time.monotonic() + _LEAVE_PATIENCE
        try:  # report that this process no longer serves, and its last outcome
            while time.monotonic() < end and not (self.ask_once(0, end) and not self.outcome):
                pass
        except Exception:
            pass  # the host detects the process's exit
        self.line.hang_up()

    def ask_once(self, wait: int, end: float) -> bool:
        """Report this process's state to the host, and act on the answer. Return False if there
        is no answer before a time or before the state changes."""
        with self.lock:
            call, outcome = self.call, self.outcome
            self.seq += 1
            says = {
                "process": self.name, "seq": self.seq, "slots": int(not self.stopping), "free": int(not self.stopping and call is None),
                "held": [] if call is None else [call.id], "ending": [call.id] if call is not None and call.told else [],
                "resources": list(self.resources), "wait": wait,
            }
            self.line.forget()
        answer = self.line.ask(_NEXT, b'%s,"done":[%s]}' % (json.dumps(says)[:-1].encode(), outcome), end)
        if answer is None:
            return False
        with self.lock:
            if self.outcome is outcome:
                self.outcome = b""
            self.answered(loads(answer))
        return True

    def answered(self, answer: Dict[str, Any]) -> None:
        for key in answer.get("released") or ():
            if key in self.resources:
                self.dropped.append(self.resources.pop(key))
        for raw in answer.get("resources") or ():
            self.resources.setdefault(raw["id"], Resource(raw))
        call = self.call
        if call is not None and call.id in (answer.get("cancel") or ()):
            call.told = True
            # A call that has not entered yet first checks told.
            call.interrupted = call.inside and interrupt(self.thread)
        for raw in answer.get("closures") or ():
            self.call = Call(raw)
        if answer.get("stop") or self.stopping:
            self.stop()
        self.change.notify_all()


@in_forked_children
def _leave_server() -> None:
    """A forked child does not serve: the connection belongs to its parent."""
    global _server
    server, _server = _server, None
    if server is not None:
        server.line.close()
