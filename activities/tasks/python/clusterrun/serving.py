"""Serving: a process calls functions that coordinators schedule."""

import os
import sys
import threading
import time
from typing import Any, Dict, Mapping, Optional

from ._errors import CancelledError, ResourceError, TaskError, UnavailableError
from ._http import FOREVER, MAX_WAIT
from ._interrupt import forget_interrupt, interrupt, leave_main_thread, wake_main_thread, wake_thread
from ._json import loads
from ._ledger import Call, Ledger
from ._line import Line
from ._transport import in_forked_children
from ._values import RESOURCE, error_outcome, failure_outcome, value_outcome
from .functions import functions, unknown_function
from .stop import wait_for_stop

_NEXT = "/v1/closures/next"
_ASK_WHILE_BUSY = 0.020  # seconds before the host is asked whether calls are cancelled
_LEAVE_PATIENCE = 2.0
_WAKE_AGAIN = (0.1, 0.5, 2.0)  # seconds after a thread's first wake-up


def serve(slots: int = 1) -> None:
    """Call the functions that coordinators schedule. It returns when the run's tasks are to
    stop together: immediately if no function is being called, otherwise when the running ones
    have returned; they may check should_stop().

        @clusterrun.function
        def train(step, rate=0.1):
            ...
            return {"loss": loss}

        clusterrun.serve()

    Arguments and values are JSON values, and NaN, the infinities and bytes; other values are
    stored as text, with a warning. A value is limited to 256 KiB. An exception is the call's
    error. SystemExit exits the process, and the call is lost; it is repeated elsewhere. The
    exit code is then never 0, so the task is restarted if the run restarts tasks.

    With one slot, functions are called one after another in the thread that calls serve; with
    more, up to slots functions are called concurrently in separate threads. Meanwhile another
    thread asks the host for more. A function that holds the interpreter in native code for long
    therefore cannot be cancelled, and the process does not report, until it releases the
    interpreter. CancelledError is raised in a cancelled call; functions may also check
    cancelled(). If the call does not return, its process is lost: the host restarts the task.

    A program that a function has started, for example with subprocess.Popen, continues when the
    call is cancelled, because later calls may need it. Stop it in a finally clause, like
    subprocess.run. At the latest it is killed with the process.
    """
    if not os.environ.get("CLUSTERRUN_SOCKET"):
        raise ValueError("serve is for tasks: CLUSTERRUN_SOCKET is not set, clusterrun did not start this process")
    if not isinstance(slots, int) or not 1 <= slots <= 1024:
        raise ValueError("slots is %r; want 1 to 1024" % (slots,))
    if not functions:
        raise ValueError("no function is registered: decorate those to be called with @clusterrun.function")
    if not _stagger(start_delay(os.environ)):
        Server(os.environ["CLUSTERRUN_SOCKET"], slots).serve()


def cancelled() -> bool:
    """Return whether the running function must return because its call was cancelled; False
    outside a call. With one slot, threads started by a function get the same answer."""
    server = _server
    if server is None or server.pid != os.getpid():
        return False
    call = server.ledger.running.get(threading.get_ident())
    if call is None and server.ledger.slots == 1:
        call = next(iter(list(server.ledger.running.values())), None)
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
            raise ValueError("%s is %r; want a number of seconds, such as 5" % (name, text))
        values.append(value)
    delay = values[0] * int(environ.get("CLUSTERRUN_TASK_INDEX") or 0)
    return min(delay, values[1]) if values[1] else delay


class Resource:
    """A resource that is built once in this process, at its first use."""

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.raw = raw
        self.lock = threading.Lock()
        self.built = False
        self.value: Any = None
        self.error: Optional[BaseException] = None


_server: Optional["Server"] = None


class Server:
    """A process that serves. One thread communicates with the host; the rest call functions."""

    def __init__(self, path: str, slots: int) -> None:
        self.ledger = Ledger(os.urandom(16).hex(), slots, Resource)
        self.pid = os.getpid()
        self.lock = threading.Lock()  # guards the ledger
        self.change = threading.Condition(self.lock)  # signals changes of queue, stopping and over to callers
        self.finished = threading.Condition(self.lock)  # signals changes of workers and over to others
        self.workers = 0  # threads that call, if serve's own thread does not
        self.over = False
        self.failure: Optional[BaseException] = None
        self.line = Line(path, self.wake_again)

    # -- calling functions

    def serve(self) -> None:
        global _server
        _server = self
        previous = wake_main_thread()
        host = threading.Thread(target=self.ask, name="clusterrun-closures", daemon=True)
        host.start()
        try:
            if self.ledger.slots == 1:
                self.work()
            else:
                self.workers = self.ledger.slots
                for i in range(self.ledger.slots):
                    threading.Thread(target=self.guard, name="clusterrun-call-%d" % i, daemon=True).start()
                with self.lock:
                    while self.workers and not self.over:
                        self.finished.wait()
        finally:
            if self.pid == os.getpid():
                self.end(None)
                host.join(2 * _LEAVE_PATIENCE)
                leave_main_thread(previous)
                _server = None
        if self.failure is not None:
            raise self.failure

    def end(self, failure: Optional[BaseException]) -> None:
        with self.lock:
            self.over = True
            self.ledger.stop()
            self.failure = self.failure or failure
            self.change.notify_all()
            self.finished.notify_all()
            self.line.wake()

    def guard(self) -> None:
        """Run work in a new thread. Its failure stops the whole service."""
        try:
            self.work()
        except BaseException as e:
            if self.pid != os.getpid():  # none of this exists in a forked child
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
                ledger = self.ledger
                while not ledger.queue and not ledger.dropped and not ledger.stopping:
                    self.change.wait()
                if ledger.stopping:
                    return
                dropped, ledger.dropped = ledger.dropped, []
                if not dropped:
                    call = ledger.begin(threading.get_ident())
            if dropped:
                # Code that runs when they are dropped, such as a generator's finally, belongs to
                # the program: it runs in the functions' threads, and without the lock.
                del dropped
                continue
            self.run(call)

    def run(self, call: Call) -> None:
        """Call a function, and store its outcome. CancelledError may still come until the lock
        is held and the interpreter has dropped it."""
        outcome: Optional[bytes] = None
        while True:
            try:
                call.inside = True
                if outcome is None:
                    outcome = self.call(call)
                with self.lock:
                    if call.interrupted:
                        forget_interrupt(call.thread)
                    self.ledger.ended(call, outcome)
                    self.line.wake()
                break
            except CancelledError as e:  # too late: the function had returned
                if outcome is None:
                    outcome = error_outcome("cancelled", "CancelledError", str(e), "")

    def call(self, call: Call) -> bytes:
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
                "clusterrun: the function %s has forked, and the child has returned from it; end it with os._exit" % call.function
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
        resource = self.ledger.resources.get(key)
        if resource is None:
            raise ResourceError(ValueError("the host has not defined the resource %r, or it is no longer needed" % (key,)))
        with resource.lock:
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
            while not self.over:
                if self.ask_once(MAX_WAIT, FOREVER) and len(self.ledger.calls) >= self.ledger.slots:
                    self.line.wait(None, time.monotonic() + _ASK_WHILE_BUSY)
        except BaseException as e:
            self.end(e)
        end = time.monotonic() + _LEAVE_PATIENCE
        try:  # report that this process no longer serves, and its last outcomes
            while time.monotonic() < end and not (self.ask_once(0, end) and not self.ledger.done):
                pass
        except Exception:
            pass  # the host detects the process's exit
        self.line.hang_up()

    def ask_once(self, wait: int, end: float) -> bool:
        """Report this process's state to the host, and act on the answer. Return False if there
        is no answer before a time or before the state changes."""
        with self.lock:
            body, sent = self.ledger.compose(wait)
            self.line.forget()
        answer = self.line.ask(_NEXT, body, end)
        if answer is None:
            return False
        with self.lock:
            for call in self.ledger.answered(loads(answer), sent):
                # A call that has not entered yet first checks told.
                call.interrupted = call.inside and interrupt(call.thread)
                if call.interrupted:
                    call.wakes = [time.monotonic() + after for after in _WAKE_AGAIN]
            self.change.notify_all()
        return True

    def wake_again(self) -> float:
        """Wake due threads again, and return when the next is due. A signal may come just
        before the wait that it should interrupt, and is lost."""
        next_one, now = FOREVER, time.monotonic()
        with self.lock:
            for call in self.ledger.running.values():
                if call.wakes and call.wakes[0] <= now:
                    call.wakes.pop(0)
                    wake_thread(call.thread)
                if call.wakes:
                    next_one = min(next_one, call.wakes[0])
        return next_one


@in_forked_children
def _leave_server() -> None:
    """A forked child does not serve: the connection belongs to its parent."""
    global _server
    server, _server = _server, None
    if server is not None:
        server.line.close()
