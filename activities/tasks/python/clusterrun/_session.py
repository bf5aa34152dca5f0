"""The client of a run's queue."""

import collections
import json
import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Optional

from ._errors import TaskError
from ._http import COORDINATOR, FOREVER
from ._json import loads
from ._line import Line
from .remote import PerWorkerValues, RemoteValue, RemoteValueStatus, closure_error
from .serving import Server
from .stop import StopError, listen, wait_ended
from .watchdog import WatchDog

if TYPE_CHECKING:
    from .closures import ClusterCoordinator

_MAX_BATCH, _MAX_BATCH_BYTES = 1000, 512 << 10  # closures in a request
FLUSH_PATIENCE = 2.0  # seconds, when the program exits


class Unsent:
    """A closure that the queue has not confirmed. resources are definitions, by ID."""

    __slots__ = ("value", "raw", "resources", "size")

    def __init__(self, value: RemoteValue, raw: bytes, resources: Dict[int, bytes]) -> None:
        self.value = value
        self.raw = raw
        self.resources = resources
        self.size = len(raw) + sum(map(len, resources.values()))


sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


class Session:
    """A client of the queue. A thread sends one request at a time, with everything that the
    queue may not know, and receives outcomes. A request that waits for outcomes is abandoned when
    something changes. The queue recognizes repeated closures by their numbers.

    A signal handler may raise an exception between any two lines of the main thread. Therefore
    each scheduled closure and each join is a single entry of a collection, and is not counted
    elsewhere."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.urandom(16).hex()
        self.over = ""  # why no more requests are possible
        self.closing = False
        # A finalizer may need the lock in a thread that holds it.
        self.lock = threading.RLock()
        self.change = threading.Condition(self.lock)  # signals any change to callers
        self.unsent: Deque[Unsent] = collections.deque()
        self.sent: List[Unsent] = []  # not confirmed yet
        self.scheduled = 0  # number of confirmed closures
        self.room = -1  # for closures that are not confirmed; -1 is unknown
        self.hurry = False  # the answer must not wait for outcomes of new closures
        self.open: Dict[int, weakref.ref[RemoteValue]] = {}  # without an outcome, by number
        self.taken = 0  # number of received outcomes
        self.joins: Dict[object, bool] = {}  # whether each one waits
        self.asked = 0  # number of answers to joins
        self.idle = False  # the last one
        self.failed = False  # the queue has an error that was not raised yet
        self.raised: Optional[BaseException] = None  # an error that must be raised
        self.stop: Optional[Dict[str, Any]] = None  # the run's state once its tasks are to stop
        self.released: List[int] = []  # unreferenced resources
        self.leaving: List[int] = []  # those in the last request
        self.waits = True  # the thread waits until something changes
        self.counts = {"closure_execution": 0, "remote_value_fetch": 0}
        self.dog: Optional[WatchDog] = None
        self.line = Line(path)
        threading.Thread(target=self.run, name="clusterrun-coordinator", daemon=True).start()
        with self.lock:
            while self.room < 0 and not self.over:
                self.change.wait()
            self.check()
        sessions.add(self)
        self.hear_stop(listen(self, Session.hear_stop, Session.forked).said)

    def check(self) -> None:
        """The lock must be held, as for all methods below that do not acquire it."""
        if self.over:
            raise TaskError(self.over, "over")

    def hear_stop(self, said: Dict[str, Any]) -> None:
        """Handle a state from the run."""
        with self.lock:
            self.stop = said if said["stop"] else None
            self.change.notify_all()

    def wait(self, seconds: Optional[float] = None) -> None:
        """Wait for a change. While the tasks are to stop, it may never come: serving tasks exit,
        and queued closures stay queued."""
        if self.stop is not None:
            raise wait_ended(self.stop)
        self.pause(seconds)

    def pause(self, seconds: Optional[float] = None) -> None:
        """Wait for a change."""
        try:
            self.change.wait(seconds)
        except BaseException:
            # A signal handler's exception may come when wait has just released the lock, or
            # before it has reacquired it.
            if not self.lock._is_owned():  # type: ignore[attr-defined]
                self.lock.acquire()
            raise

    def wake(self) -> None:
        """Make the thread send a request."""
        if self.waits:
            self.waits = False
            self.line.wake()

    def close(self) -> None:
        """Stop the thread. No closure is unsent, and no thread is waiting."""
        with self.lock:
            self.closing = True
            self.wake()
            if self.dog is not None:
                self.dog.stop()

    def end(self, why: str) -> None:
        """Record that no more requests are possible, and why."""
        with self.lock:
            self.over = self.over or why
            for one in self.unsent:
                one.value._abort()
            for ref in self.open.values():
                value = ref()
                if value is not None:
                    value._abort()
            self.unsent.clear()
            self.sent.clear()
            self.open.clear()
            self.change.notify_all()

    def forked(self) -> None:
        """Called in a forked child, which does not make requests."""
        self.lock = threading.RLock()
        self.change = threading.Condition(self.lock)
        self.line.close()
        self.waits, self.dog = False, None
        self.end("this coordinator belongs to the parent process; make another one here")

    # -- asking the queue

    def run(self) -> None:
        try:
            while not self.over:
                with self.lock:
                    self.line.forget()
                    raw, joins = self.compose()
                    if raw is None and self.closing:
                        break
                if raw is None:
                    self.line.wait(None, FOREVER)
                    continue
                answer = self.line.ask(COORDINATOR, raw)
                with self.lock:
                    if answer is None:
                        self.hurry = True
                    elif not self.over:
                        self.answered(loads(answer), joins)
                del answer
        except BaseException as e:
            over = isinstance(e, TaskError) and e.code == "over"
            self.end(str(e) if over else "closures can no longer be scheduled: %s" % e)
        with self.lock:
            self.waits = False
            self.line.close()

    def compose(self) -> Any:
        """Return the next request, if any, and whether it joins."""
        size = sum(one.size for one in self.sent)
        while self.unsent and not self.failed and len(self.sent) < min(max(1, self.room), _MAX_BATCH):
            size += self.unsent[0].size
            if self.sent and size > _MAX_BATCH_BYTES:
                break
            one = self.unsent.popleft()
            self.sent.append(one)
            one.value._id = self.scheduled + len(self.sent)
            if not self.open and self.dog is not None:
                self.dog.report_closure_done()
            self.open[one.value._id] = weakref.ref(one.value)
        # Asking raises an error, which cancels what is unsent.
        failed = self.failed and bool(self.sent or self.unsent)
        joins, sent = bool(self.joins) or failed, [] if failed else self.sent
        self.waits = True
        if self.room >= 0 and not self.open and not joins:
            return None, False
        alone = not self.unsent and not self.hurry and len(sent) < self.room
        self.waits = all(self.joins.values()) and not failed and self.room >= 0 and (not sent or alone)
        resources: Dict[int, bytes] = {}
        for one in sent:
            resources.update(one.resources)
        used = set(resources).union(*(one.resources for one in self.unsent))
        self.leaving = [key for key in self.released if key not in used][:_MAX_BATCH]
        says = {
            "client": self.name, "after": self.taken, "first": self.scheduled + 1, "join": joins, "wait": self.waits,
            "released": self.leaving,
        }
        return b'%s,"closures":[%s],"resources":[%s]}' % (
            json.dumps(says)[:-1].encode(), b",".join(one.raw for one in sent), b",".join(resources.values())
        ), joins

    def answered(self, answer: Dict[str, Any], joins: bool) -> None:
        """Handle the queue's answer."""
        for outcome in answer.get("outcomes") or ():
            self.taken += 1
            if outcome.get("kind") == "raised":
                self.raised = closure_error(outcome["error"])
                # These were scheduled before the error was received.
                while self.unsent:
                    self.unsent.popleft().value._settle({"id": 0, "kind": "cancelled"})
                continue
            self.count(outcome)
            ref = self.open.pop(outcome["id"], None)
            value = None if ref is None else ref()
            if value is not None:
                value._settle(outcome)
        del self.sent[:answer["scheduled"] - self.scheduled]
        self.scheduled, self.room = answer["scheduled"], min(answer["room"], _MAX_BATCH)
        for key in self.leaving:
            self.released.remove(key)
        self.failed = answer.get("failed", False)
        self.hurry = bool(self.sent) or self.hurry and bool(self.unsent)
        if joins:
            self.asked += 1
            self.idle = answer.get("done", False) and not self.open and not self.unsent
        self.change.notify_all()

    def count(self, outcome: Dict[str, Any]) -> None:
        kind = outcome.get("kind")
        self.counts["closure_execution"] += kind != "cancelled"
        self.counts["remote_value_fetch"] += kind in (None, "value")
        if self.dog is not None:
            self.dog.report_closure_done()

    # -- callers

    def schedule(self, coordinator: "ClusterCoordinator", closure: str, resources: Dict[int, bytes]) -> RemoteValue:
        one = Unsent(RemoteValue(coordinator), closure.encode(), resources)
        try:
            with self.lock:
                while True:
                    self.check()
                    self.tell()
                    if not any(self.joins.values()) and self.unconfirmed() < max(1, self.room):
                        break
                    self.wait()
                self.unsent.append(one)
                self.wake()
                # If the queue is full, it waits.
                while self.unconfirmed() > self.room and (one in self.unsent or one in self.sent):
                    self.wait()
                return one.value
        except BaseException:  # such as KeyboardInterrupt, so the caller does not get the value
            with self.lock:
                if one in self.unsent:
                    self.unsent.remove(one)
                    self.change.notify_all()
            raise

    def unconfirmed(self) -> int:
        return len(self.unsent) + len(self.sent)

    def tell(self) -> None:
        """Raise the pending error, once."""
        error, self.raised = self.raised, None
        if error is not None:
            raise error

    def fetch(self, value: RemoteValue, timeout: Optional[float]) -> Any:
        end = None if timeout is None else time.monotonic() + timeout
        with self.lock:
            while value._status is RemoteValueStatus.NOT_READY:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("closure %s has not ended within %gs" % (value._id or "", timeout or 0.0))
                self.wait(left)
        if value._error is not None:
            raise closure_error(value._error)
        return value._value

    def join(self) -> None:
        try:
            self.settle(True)
        except StopError:
            if not self.done():
                raise

    def done(self) -> bool:
        with self.lock:
            self.check()
            self.tell()
            if (self.open or self.unsent) and not self.failed:
                return False
        return self.settle(False)

    def settle(self, waits: bool) -> bool:
        """Return whether everything is done, or raise the error once nothing is executing."""
        this = object()
        try:
            with self.lock:
                asked = self.asked
                self.joins[this] = waits
                self.wake()
                while True:
                    self.check()
                    self.tell()
                    if self.asked != asked and (self.idle or not (waits or self.failed)):
                        return self.idle
                    (self.wait if waits else self.pause)()
        finally:
            with self.lock:
                self.joins.pop(this, None)
                self.change.notify_all()

    def keep(self, values: PerWorkerValues) -> None:
        """Release the resource when it is unreferenced, with the next request."""
        weakref.finalize(values, self.released.append, values._id).atexit = False  # the queue drops it with the run

    def metrics(self) -> Dict[str, int]:
        with self.lock:
            return dict(self.counts)

    def watch(self, seconds: Optional[float]) -> None:
        with self.lock:
            if self.dog is None and not self.over:
                dog = WatchDog(-1 if seconds is None else seconds, sys.stderr, waits=lambda: bool(self.open))
                self.dog = dog if dog.timeout > 0 else None

    def flush(self, end: float) -> None:
        """Send what is unsent before the program exits."""
        with self.lock:
            self.hurry = True
            self.wake()
            while self.unconfirmed() and not self.over and time.monotonic() < end:
                self.pause(end - time.monotonic())


def building() -> bool:
    """Return whether a per-worker resource's function is the caller. It inspects the stack,
    because a note could be lost when that is interrupted at any line."""
    frame = sys._getframe()
    while frame is not None and frame.f_code is not Server.resource.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None
