"""The client of a run's queue."""

import collections
import itertools
import json
import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Deque, Dict, List, Optional, Set, Tuple

from ._errors import TaskError
from ._http import COORDINATOR, head
from ._json import loads
from ._transport import Away, Line, get_host
from .remote import PerWorkerValues, RemoteValue, RemoteValueStatus, closure_error
from .serving import Server
from .stop import listen, wait_ended
from .watchdog import WatchDog

if TYPE_CHECKING:
    from .closures import ClusterCoordinator

_MAX_BATCH, _MAX_BATCH_BYTES = 1000, 512 << 10  # closures in a request
_MAX_UNSENT, _MAX_UNSENT_BYTES = 2 * _MAX_BATCH, 2 * _MAX_BATCH_BYTES
_ASK_DONE = 1.0  # seconds between questions to the queue while this process knows the answer
_ANSWER_FIRST = 0.020  # seconds a schedule may wait for a lone call's outcome
FLUSH_PATIENCE = 2.0  # seconds, when the program exits
_GATHER_RELEASES = 0.05  # seconds a release waits for others


class Unsent:
    """A closure that is unsent or in flight, with the definitions of its resources, by ID."""

    __slots__ = ("number", "value", "raw", "resources", "size")

    def __init__(self, value: RemoteValue, raw: bytes, resources: Dict[int, bytes]) -> None:
        self.number = 0  # increases with each closure
        self.value = value
        self.raw = raw
        self.resources = resources
        self.size = len(raw) + sum(map(len, resources.values()))


sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


class Session:
    """A client of the run's queue. One thread sends scheduled closures in batches; another
    receives the outcomes. Requests are numbered, so that they can be resent if an answer is
    lost, and the queue repeats the answer.

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
        self.work = threading.Condition(self.lock)  # something must be sent
        self.wanted = threading.Condition(self.lock)  # a caller waits for outcomes
        self.room = threading.Condition(self.lock)  # more can be scheduled
        self.ended = threading.Condition(self.lock)  # signals that closures ended
        self.unsent: Deque[Unsent] = collections.deque()
        self.bytes = 0  # of unsent
        self.sent_now: List[Unsent] = []  # the last batch
        self.sending = 0  # number of these without an answer
        self.batch = 0
        self.numbers = itertools.count(1)
        self.passed = 0  # number of closures the queue has answered for
        self.open: Dict[int, weakref.ref[RemoteValue]] = {}  # in the queue, by ID
        self.early: Dict[int, Dict[str, Any]] = {}  # outcomes that arrived before the ID
        self.taken = 0  # number of received outcomes
        self.taking = False  # a take is in flight
        self.raised: Optional[BaseException] = None  # an error that must be raised
        self.failed = False  # a function failed, and the error was not raised yet
        self.stop: Optional[Dict[str, Any]] = None  # the run's state while its tasks are to stop
        self.joins: Set[Line] = set()  # one for each waiting join
        self.calls = itertools.count(1)
        self.abandoned: List[int] = []  # calls of interrupted joins
        # Unreferenced resources, each with the number up to which closures may use them.
        self.released: Deque[Tuple[int, int]] = collections.deque()
        self.release_at = 0.0  # others may be added until then
        self.asked = 0.0  # when the queue was last asked whether everything is done
        self.counts = {"closure_execution": 0, "remote_value_fetch": 0}
        self.dog: Optional[WatchDog] = None
        self.started = False
        self.threads: List[threading.Thread] = []
        self.lines = [Line(path), Line(path)]
        # The queue's capacity for closures, as last reported. Closures that it has not answered
        # for count against it.
        self.free = min(self.ask("open", {})["room"], _MAX_UNSENT)
        sessions.add(self)
        self.hear_stop(listen(self, Session.hear_stop, Session.forked).said)

    def ask(self, name: str, what: Dict[str, Any], line: Optional[Line] = None) -> Dict[str, Any]:
        raw = json.dumps(what).encode()
        try:
            if line is not None:
                answer: Dict[str, Any] = loads(line.ask(COORDINATOR + name, raw))
                return answer
            return get_host().exchange(head("POST", COORDINATOR + name), lambda: raw, None)
        except TaskError as e:
            if e.code == "over":
                self.end(str(e))
            raise

    def check(self) -> None:
        """The lock must be held, as for all methods below that do not acquire it."""
        if self.over:
            raise TaskError(self.over, "over")

    def hear_stop(self, said: Dict[str, Any]) -> None:
        """Handle a requested or cleared stop."""
        with self.lock:
            self.stop = said if said["stop"] else None
            if self.stop is not None:
                for line in self.joins:
                    line.cut()
                self.room.notify_all()
                self.ended.notify_all()

    def wait(self, condition: threading.Condition, seconds: Optional[float] = None) -> None:
        """Wait for a condition. While the tasks are to stop, it may never come true: serving
        tasks exit, and queued closures stay queued."""
        if self.stop is not None:
            raise wait_ended(self.stop)
        try:
            condition.wait(seconds)
        except BaseException:
            # A signal handler's exception may come when wait has just released the lock, or
            # before it has reacquired it.
            if not self.lock._is_owned():  # type: ignore[attr-defined]
                self.lock.acquire()
            raise

    def start(self) -> None:
        if self.started:
            return
        self.threads = self.threads or [
            threading.Thread(target=self.send, name="clusterrun-schedule", daemon=True),
            threading.Thread(target=self.receive, name="clusterrun-outcomes", daemon=True),
        ]
        for thread in self.threads:
            if thread.ident is not None:  # started before a signal came
                continue
            try:
                thread.start()
            except RuntimeError as e:  # may replace a signal handler's exception
                raise e.__context__ or e
        self.started = True

    def close(self) -> None:
        """Stop the threads. No closure is unsent, and no thread is waiting."""
        with self.lock:
            self.closing = True
            self.work.notify_all()
            self.wanted.notify_all()
        self.lines[0].cut()
        self.lines[1].cut()
        if self.dog is not None:
            self.dog.stop()

    def end(self, why: str) -> None:
        """Record that no more requests are possible, and why."""
        with self.lock:
            self.over = self.over or why
            for unsent in self.unsent:
                unsent.value._abort()
            self.unsent.clear()
            self.released.clear()
            for ref in self.open.values():
                value = ref()
                if value is not None:
                    value._abort()
            self.open.clear()
            for condition in (self.work, self.wanted, self.room, self.ended):
                condition.notify_all()

    def forked(self) -> None:
        """Called in a forked child, which does not make requests."""
        self.lock = threading.RLock()
        self.work, self.wanted, self.room, self.ended = (threading.Condition(self.lock) for _ in range(4))
        for line in self.lines:
            line.hang_up()
        self.joins.clear()
        self.dog = None
        for one in self.sent_now[len(self.sent_now) - self.sending:]:
            one.value._abort()  # no answer comes in a child
        self.end("this coordinator belongs to the parent process; make another one here")

    # -- scheduling

    def schedule(self, coordinator: "ClusterCoordinator", closure: str, resources: Dict[int, bytes]) -> RemoteValue:
        try:
            raw = closure.encode()
        except UnicodeEncodeError:  # a surrogate, for example from a file name
            raw = json.dumps(json.loads(closure)).encode()
        value = RemoteValue(coordinator)
        one = Unsent(value, raw, resources)
        try:
            with self.lock:
                while True:
                    self.check()
                    self.tell()
                    if not self.joins and self.unanswered() < max(1, self.free) and self.bytes < _MAX_UNSENT_BYTES:
                        break
                    self.wait(self.room)
                self.start()
                one.number = next(self.numbers)
                self.unsent.append(one)
                self.bytes += one.size
                self.work.notify_all()
                if self.sending:
                    self.wanted.notify()  # the answer must not wait for outcomes
                # If the queue is full, it waits.
                while self.unanswered() > self.free and not value._id and value._status is RemoteValueStatus.NOT_READY and not self.over:
                    self.wait(self.room)
                return value
        except BaseException:  # such as KeyboardInterrupt, so the caller does not get the value
            self.take_back(one)
            raise

    def unanswered(self) -> int:
        return len(self.unsent) + self.sending

    def answered(self, until: int) -> bool:
        """Return whether the queue has answered for the closures up to a number."""
        first = self.sent_now[-self.sending] if self.sending else self.unsent[0] if self.unsent else None
        return first is None or first.number > until

    def take_back(self, one: Unsent) -> None:
        """Cancel a closure with an unused value, unless it was already sent."""
        with self.lock:
            if one in self.unsent:
                self.unsent.remove(one)
                one.value._settle({"id": 0, "kind": "cancelled"})
                self.bytes -= one.size
                self.room.notify_all()
                self.ended.notify_all()

    def tell(self) -> None:
        """Raise the pending error, once."""
        error, self.raised = self.raised, None
        if error is not None:
            raise error

    def send(self) -> None:
        try:
            while True:
                with self.lock:
                    while not self.unsent and not self.closing and not self.over:
                        wait = self.release_at - time.monotonic() if self.released else None
                        if wait is not None and wait <= 0:
                            break
                        self.work.wait(wait)
                    if self.over or self.closing and not self.unsent:
                        return
                    batch = self.sent_now = self.next_batch()
                    released = self.due()
                    self.sending = len(batch)
                    self.wanted.notify()
                    self.room.notify_all()
                self.deliver(batch, released)
                del batch  # refers to the coordinator
        except Away:
            pass
        except BaseException as e:
            over = isinstance(e, TaskError) and e.code == "over"
            self.end(str(e) if over else "closures cannot be scheduled: %s" % e)
        finally:
            if self.closing:
                self.lines[0].hang_up()

    def due(self) -> List[int]:
        """Return the resources that no unsent closure uses. Releases are collected for a
        moment."""
        found: List[int] = []
        while self.released and len(found) < _MAX_BATCH:
            if self.unsent and self.unsent[0].number <= self.released[0][0]:
                break
            found.append(self.released.popleft()[1])
        return found

    def next_batch(self) -> List[Unsent]:
        """Return what fits into a request."""
        batch: List[Unsent] = []
        size = 0
        while self.unsent and len(batch) < _MAX_BATCH:
            size += self.unsent[0].size
            if batch and size > _MAX_BATCH_BYTES:
                break
            batch.append(self.unsent.popleft())
        self.bytes = sum(one.size for one in self.unsent)
        return batch

    def deliver(self, batch: List[Unsent], released: List[int]) -> None:
        """Send closures. If the queue refuses some, the rest are still sent."""
        self.batch += 1
        resources: Dict[int, bytes] = {}
        for one in batch:
            resources.update(one.resources)
        with self.lock:  # lone calls return with the answer
            says = {"client": self.name, "batch": self.batch, "released": released}
            after = self.taken
            if batch and not (self.open or self.taking or self.unsent) and self.unanswered() < self.free:
                says.update(wait=True, after=after)
        raw = b'%s,"closures":[%s],"resources":[%s]}' % (
            json.dumps(says)[:-1].encode(), b",".join(one.raw for one in batch), b",".join(resources.values())
        )
        try:
            answer = loads(self.lines[0].ask(COORDINATOR + "schedule", raw))
        except TaskError as e:
            if e.code == "over":
                self.end(str(e))
                answer = None
            elif len(batch) > 1:
                half = len(batch) // 2
                self.deliver(batch[:half], [])
                self.deliver(batch[half:], released)
                return
            else:
                answer = {"refused": e}
        self.sent(batch, answer, after)

    def sent(self, batch: List[Unsent], answer: Optional[Dict[str, Any]], after: int) -> None:
        """Handle the answer to a request."""
        with self.lock:
            self.sending -= len(batch)
            self.passed += len(batch)
            if answer is None:
                for one in batch:
                    one.value._abort()
            elif "refused" in answer:
                said = refused(answer["refused"])
                for one in batch:
                    one.value._settle({"error": said})
                if self.raised is None:
                    self.raised = closure_error(said)
            else:
                self.free = min(answer["room"], _MAX_UNSENT)
                for key, one in enumerate(batch, answer["first"]):
                    outcome = self.early.get(key) if answer["first"] else None
                    if outcome is None and answer.get("raised"):
                        outcome = {"id": key, "kind": "cancelled"}
                    one.value._id = key if answer["first"] else 0
                    if outcome is not None:
                        self.count(outcome)
                        one.value._settle(outcome)
                    elif self.over:
                        one.value._abort()
                    else:
                        self.expect(one.value)
                self.take(answer, after)
                if answer.get("raised"):
                    self.failed = False
                    # These were scheduled before the error was received.
                    while self.unsent:
                        self.unsent.popleft().value._settle({"id": 0, "kind": "cancelled"})
                    self.bytes = 0
                    if self.raised is None:
                        self.raised = closure_error(answer["raised"])
            if not self.sending:
                self.early = {}
                self.sent_now = []
            self.wanted.notify()
            self.room.notify_all()
            self.ended.notify_all()

    def expect(self, value: RemoteValue) -> None:
        if not self.open and self.dog is not None:
            self.dog.report_closure_done()
        self.open[value._id] = weakref.ref(value)
        self.wanted.notify()

    # -- outcomes

    def receive(self) -> None:
        try:
            while True:
                with self.lock:
                    while not self.open and not self.sending and not self.closing and not self.over:
                        self.wanted.wait()
                    batch, end = self.sent_now, time.monotonic() + _ANSWER_FIRST
                    while self.answers_first(batch) and time.monotonic() < end:
                        self.wanted.wait(end - time.monotonic())
                    if self.closing or self.over:
                        return
                    answered = not self.open and self.sent_now is not batch
                    del batch  # refers to the coordinator
                    if answered:
                        continue
                    self.taking = True
                    after = self.taken
                what = {"client": self.name, "after": after}
                answer = loads(self.lines[1].ask(COORDINATOR + "take", json.dumps(what).encode()))
                with self.lock:
                    self.taking = False
                    self.take(answer, after)
                del answer
        except Away:
            pass
        except BaseException as e:
            over = isinstance(e, TaskError) and e.code == "over"
            self.end(str(e) if over else "the outcomes of closures can no longer be followed: %s" % e)

    def answers_first(self, batch: List[Unsent]) -> bool:
        """Return whether the answer to a schedule may bring all wanted outcomes."""
        return not (self.open or self.unsent or self.closing or self.over) and self.sent_now is batch

    def take(self, answer: Dict[str, Any], after: int) -> None:
        """Handle the outcomes after the given number. Some may have arrived in another
        answer."""
        for outcome in (answer.get("outcomes") or [])[self.taken - after:]:
            self.taken += 1
            ref = self.open.pop(outcome["id"], None)
            if ref is None:
                self.early[outcome["id"]] = outcome  # the closure's ID is still in flight
                continue
            self.count(outcome)
            value = ref()
            if value is not None:
                value._settle(outcome)
        self.ended.notify_all()

    def count(self, outcome: Dict[str, Any]) -> None:
        kind = outcome.get("kind")
        if kind != "cancelled":
            self.counts["closure_execution"] += 1
        if kind in ("error", "input", "unavailable"):
            self.failed = True
        elif kind != "cancelled":
            self.counts["remote_value_fetch"] += 1
        if self.dog is not None:
            self.dog.report_closure_done()

    def fetch(self, value: RemoteValue, timeout: Optional[float]) -> Any:
        end = None if timeout is None else time.monotonic() + timeout
        with self.lock:
            while value._status is RemoteValueStatus.NOT_READY:
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("closure %s has not ended within %gs" % (value._id or "", timeout or 0.0))
                self.wait(self.ended, left)
        if value._error is not None:
            raise closure_error(value._error)
        return value._value

    # -- waiting

    def join(self) -> None:
        line = Line(self.path)
        try:
            with self.lock:
                self.joins.add(line)
                self.work.notify_all()  # if a signal interrupted schedule before that
                until = next(self.numbers)
                while not self.answered(until) and self.raised is None and not self.over:
                    self.wait(self.ended)
                self.check()
                self.tell()
                stop = self.stop
                if stop is None:
                    call = self.abandoned.pop() if self.abandoned else next(self.calls)
            if stop is None:
                try:
                    answer = self.ask("join", {"client": self.name, "call": call}, line)
                except BaseException as e:  # such as KeyboardInterrupt: the next join continues this one
                    with self.lock:
                        self.abandoned.append(call)
                        stop = self.stop or {}
                    if not isinstance(e, Away):
                        raise
                else:
                    self.conclude(answer)
                    return
            if not self.done():
                raise wait_ended(stop)
        finally:
            self.joins.discard(line)
            line.hang_up()
            with self.lock:
                self.room.notify_all()

    def done(self) -> bool:
        with self.lock:
            self.check()
            self.tell()
            now = time.monotonic()
            if self.unanswered() or (self.open and not self.failed and (now - self.asked < _ASK_DONE or self.abandoned)):
                return False
            self.asked, self.failed = now, False
            call = self.abandoned.pop() if self.abandoned else next(self.calls)
        return self.conclude(self.ask("join", {"client": self.name, "call": call, "poll": True}))

    def conclude(self, answer: Dict[str, Any]) -> bool:
        """Return a join's result: that everything is done, or the error. The queue records the
        end of functions slightly earlier than this process."""
        raised = answer.get("raised")
        with self.lock:
            if raised:
                self.failed = False
            if raised or answer["done"]:
                until = self.passed
                while self.open and self.passed == until and not self.over:
                    self.ended.wait()
        if raised:
            raise closure_error(raised)
        with self.lock:
            if answer["done"]:
                self.tell()
        return bool(answer["done"])

    # -- resources, and the end

    def keep(self, values: PerWorkerValues) -> None:
        """Release the resource when it is unreferenced."""
        with self.lock:
            self.start()  # a finalizer may be unable to do that
        weakref.finalize(values, self.drop, values._id).atexit = False  # the queue drops it with the run

    def drop(self, resource: int) -> None:
        with self.lock:
            if self.over:
                return
            if not self.released:
                self.release_at = time.monotonic() + _GATHER_RELEASES
            self.released.append((next(self.numbers), resource))
            self.work.notify()

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
            while self.unanswered() and not self.over and time.monotonic() < end:
                self.ended.wait(end - time.monotonic())


def building() -> bool:
    """Return whether a per-worker resource's function is the caller. It inspects the stack,
    because a note could be lost when that is interrupted at any line."""
    frame = sys._getframe()
    while frame is not None and frame.f_code is not Server.resource.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


REFUSALS = ("queue_refused", "invalid")


def refused(e: TaskError) -> Dict[str, Any]:
    """Return the error of a closure refused by the queue."""
    message, field = str(e), e.field
    if field:
        message = message[len("field %s: " % field):]
    for outer in ("closures[0].", "resources[0]."):
        if field.startswith(outer):
            field = field[len(outer):]
    if field not in ("", "function"):
        message = "%s: %s" % (field, message)
    return {"kind": "RefusedError" if e.code in REFUSALS else "TaskError", "message": message}
