"""The client of the queue of a run."""

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
from ._http import COORDINATOR, MAX_WAIT, head
from ._json import loads
from ._transport import Away, Line, get_host
from .remote import TEXT_CANCELLED, PerWorkerValues, RemoteValue, RemoteValueStatus, closure_error
from .serving import Server
from .stop import listen, wait_ended
from .watchdog import WatchDog

if TYPE_CHECKING:
    from .closures import ClusterCoordinator

_MAX_BATCH, _MAX_BATCH_BYTES = 1000, 512 << 10  # closures in a request
_MAX_UNSENT, _MAX_UNSENT_BYTES = 2 * _MAX_BATCH, 2 * _MAX_BATCH_BYTES
_MAX_EARLY = 8 * _MAX_BATCH
_MAX_FIND = 4096
_ASK_DONE = 1.0  # seconds between questions to the queue while the answer is known here
FLUSH_PATIENCE = 2.0  # seconds, at the end of the program
_GATHER_RELEASES = 0.05  # seconds that a release waits for others


class Unsent:
    """A closure that is unsent or in flight."""

    __slots__ = ("number", "value", "raw", "epoch", "cancelled")

    def __init__(self, value: RemoteValue, raw: bytes) -> None:
        self.number = 0  # increases with each closure
        self.value = value
        self.raw = raw
        self.epoch = 0
        self.cancelled = False  # it must be cancelled once it has an ID


class Open:
    """A closure in the queue that has not ended, to the knowledge of this process, and the
    values that wait for it here, if there are any. ours tells whether it was scheduled
    here, so that join and done wait for it."""

    __slots__ = ("values", "ours")

    def __init__(self, ours: bool) -> None:
        self.values: List[weakref.ref[RemoteValue]] = []
        self.ours = ours


sessions: "weakref.WeakSet[Session]" = weakref.WeakSet()


class Session:
    """A client of the queue of the run. One thread sends what is scheduled, in batches;
    another follows the outcomes. Each request has a number, so that it can be sent again
    when its answer is lost, and the queue gives the same answer. The position in the
    history of the queue is known here, so the host need not remember it.

    A signal handler may raise an exception between any two lines of the main thread.
    Therefore each scheduled closure and each join is a single entry of a collection, and
    is counted nowhere else."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.name = os.urandom(16).hex()
        self.over = ""  # why no more requests are possible
        self.closing = False
        # A finalizer may need the lock in a thread that holds it.
        self.lock = threading.RLock()
        self.work = threading.Condition(self.lock)  # something must be sent
        self.wanted = threading.Condition(self.lock)  # somebody waits for outcomes
        self.room = threading.Condition(self.lock)  # more can be scheduled
        self.ended = threading.Condition(self.lock)  # signals the end of closures
        self.unsent: Deque[Unsent] = collections.deque()
        self.bytes = 0  # of unsent
        self.sent_now: List[Unsent] = []  # the last batch, of which
        self.sending = 0  # this many have no answer yet
        self.batch = 0
        self.numbers = itertools.count(1)
        self.passed = 0  # how many closures the queue has answered for
        self.open: Dict[int, Open] = {}
        self.ours = 0  # how many of those were scheduled here
        self.early: Dict[int, Dict[str, Any]] = {}  # outcomes that came before the ID
        self.early_ranges: List[Dict[str, Any]] = []
        self.early_full = False  # some outcomes were dropped
        self.epoch = 0
        self.raised: Optional[BaseException] = None  # an error that must be raised
        self.failed = False  # a function has failed, and the error was not raised yet
        self.stop: Optional[Dict[str, Any]] = None  # the state of the run while its tasks are to stop
        self.joins: Set[Line] = set()  # one for each waiting join
        self.calls = itertools.count(1)
        self.abandoned: List[int] = []  # calls of joins that were interrupted
        self.resources = itertools.count(1)
        # It is held while a resource is created: the queue remembers the numbers of the
        # latest requests.
        self.creating = threading.Lock()
        self.kept: Set[int] = set()  # resources that are referred to here
        # Resources that are not, each with the number up to which closures may use them.
        self.released: Deque[Tuple[int, int]] = collections.deque()
        self.releasing = 0  # releases in flight
        self.release_at = 0.0  # others may be added until then
        self.asked = 0.0  # when the queue was last asked whether everything is done
        self.counts = {"closure_execution": 0, "remote_value_fetch": 0}
        self.dog: Optional[WatchDog] = None
        self.started = False
        self.threads: List[threading.Thread] = []
        self.lines = [Line(path), Line(path)]
        opened = self.ask("open", {})
        self.at = opened["at"]
        # How many closures the queue has room for, as last reported. Closures that it has not
        # answered for count against that.
        self.free = opened.get("room", _MAX_UNSENT)
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
        """The lock must be held, as for all methods below that do not take it."""
        if self.over:
            raise TaskError(self.over, "over")

    def hear_stop(self, said: Dict[str, Any]) -> None:
        """Handle a stop of the tasks of the run, or the end of one."""
        with self.lock:
            self.stop = said if said["stop"] else None
            if self.stop is not None:
                for line in self.joins:
                    line.cut()
                self.room.notify_all()
                self.ended.notify_all()

    def wait(self, condition: threading.Condition, seconds: Optional[float] = None) -> None:
        """Wait for a condition. While the tasks are to stop it may never come true:
        serving tasks end, and what is queued stays queued."""
        if self.stop is not None:
            raise wait_ended(self.stop)
        try:
            condition.wait(seconds)
        except BaseException:
            # The exception of a signal handler may come when wait has just released the lock,
            # or before it has acquired it again.
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
            if thread.ident is not None:  # it was started before a signal came
                continue
            try:
                thread.start()
            except RuntimeError as e:  # may replace the exception of a signal handler
                raise e.__context__ or e
        self.started = True

    def close(self) -> None:
        """End the threads. No closure is unsent, and no thread waits for anything."""
        with self.lock:
            self.closing = True
            releases = (self.released or self.releasing) and not self.over
            self.lines[0].patience = time.monotonic() + FLUSH_PATIENCE
            self.work.notify_all()
            self.wanted.notify_all()
        if not releases:  # otherwise the thread that sends them hangs up
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
            for opened in self.open.values():
                for ref in opened.values:
                    value = ref()
                    if value is not None:
                        value._abort()
            self.open.clear()
            self.ours = 0
            for condition in (self.work, self.wanted, self.room, self.ended):
                condition.notify_all()

    def forked(self) -> None:
        """Called in a forked child, which makes no requests."""
        self.lock, self.creating = threading.RLock(), threading.Lock()
        self.work, self.wanted, self.room, self.ended = (threading.Condition(self.lock) for _ in range(4))
        for line in self.lines:
            line.hang_up()
        self.joins.clear()
        self.dog = None
        self.end("this coordinator belongs to the parent process; make another one here")

    # -- scheduling

    def schedule(self, coordinator: "ClusterCoordinator", closure: str) -> RemoteValue:
        try:
            raw = closure.encode()
        except UnicodeEncodeError:  # a surrogate, for example from a file name
            raw = json.dumps(json.loads(closure)).encode()
        value = RemoteValue(coordinator)
        one = Unsent(value, raw)
        try:
            with self.lock:
                while True:
                    self.check()
                    self.tell()
                    if not self.joins and self.unanswered() < max(1, self.free) and self.bytes < _MAX_UNSENT_BYTES:
                        break
                    self.wait(self.room)
                self.start()
                one.number, one.epoch = next(self.numbers), self.epoch
                self.unsent.append(one)
                self.bytes += len(raw)
                self.work.notify_all()
                # If the queue has no room for it, it waits there.
                while self.unanswered() > self.free and not value._id and value._status is RemoteValueStatus.NOT_READY and not self.over:
                    self.wait(self.room)
                return value
        except BaseException:  # such as KeyboardInterrupt: the caller does not get the value
            self.take_back(one)
            raise

    def unanswered(self) -> int:
        return len(self.unsent) + self.sending

    def answered(self, until: int) -> bool:
        """Return whether the queue has answered for the closures up to a number."""
        first = self.sent_now[-self.sending] if self.sending else self.unsent[0] if self.unsent else None
        return first is None or first.number > until

    def take_back(self, one: Unsent) -> None:
        """Cancel a closure whose value is not used, if it was scheduled at all."""
        with self.lock:
            one.cancelled = True  # in case it is in flight
            if one in self.unsent:
                self.unsent.remove(one)
                self.unsent_cancelled(one)
                self.room.notify_all()
                self.ended.notify_all()
            key = one.value._id if one.value._status is RemoteValueStatus.NOT_READY else 0
        if key:
            self.ask("cancel", {"closures": [key]})

    def unsent_cancelled(self, one: Unsent) -> None:
        one.cancelled = True
        one.value._settle({"id": 0, "kind": "cancelled"})
        self.bytes -= len(one.raw)

    def tell(self) -> None:
        """Raise the error that must be raised, once."""
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
                del batch  # it refers to the coordinator
        except Away:
            pass
        except BaseException as e:
            over = isinstance(e, TaskError) and e.code == "over"
            self.end(str(e) if over else "closures cannot be scheduled: %s" % e)
        finally:
            if self.closing:
                self.lines[0].hang_up()

    def due(self) -> List[int]:
        """Return the resources that can be released: the queue has answered for the
        closures that use them. Releases are gathered for a moment."""
        found: List[int] = []
        if self.over or (time.monotonic() < self.release_at and not self.closing):
            return found
        while self.released and len(found) < _MAX_BATCH:
            if self.unsent and self.unsent[0].number <= self.released[0][0]:
                break
            found.append(self.released.popleft()[1])
        self.releasing = len(found)
        return found

    def release(self, resources: List[int]) -> None:
        """Release resources. If the host does not accept that, it has an earlier version,
        which keeps them."""
        try:
            self.lines[0].ask(COORDINATOR + "release", json.dumps({"client": self.name, "resources": resources}).encode())
        except TaskError as e:
            if e.code == "over":
                raise
        with self.lock:
            self.releasing = 0
            self.ended.notify_all()

    def next_batch(self) -> List[Unsent]:
        """Return what fits into a request. Its closures were scheduled in the same epoch,
        because an error cancels them together."""
        batch = [self.unsent.popleft()]
        size = len(batch[0].raw)
        while self.unsent and len(batch) < _MAX_BATCH:
            one = self.unsent[0]
            size += len(one.raw)
            if size > _MAX_BATCH_BYTES or one.epoch != batch[0].epoch:
                break
            batch.append(self.unsent.popleft())
        self.bytes = sum(len(one.raw) for one in self.unsent)
        return batch

    def deliver(self, batch: List[Unsent]) -> None:
        """Send closures. If the queue refuses some of them, the others are still sent."""
        self.batch += 1
        raw = b'{"client":"%s","batch":%d,"epoch":%d,"closures":[%s]}' % (
            self.name.encode(), self.batch, batch[0].epoch, b",".join(one.raw for one in batch)
        )
        try:
            answer = json.loads(self.lines[0].ask(COORDINATOR + "schedule", raw).decode())
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
            self.lines[0].ask(COORDINATOR + "cancel", json.dumps({"closures": cancelled}).encode())
        if unseen:
            self.look(unseen)

    def sent(self, batch: List[Unsent], answer: Optional[Dict[str, Any]]) -> Tuple[List[int], List[int]]:
        """Handle the answer to a request. Return the closures that may have ended before,
        and those that must be cancelled."""
        unseen, cancelled = [], []
        with self.lock:
            self.sending -= len(batch)
            self.passed += len(batch)
            if answer is None:
                for one in batch:
                    one.value._abort()
            elif "refused" in answer:
                said = refused(answer["refused"])
                batch[0].value._settle({"error": said})
                if self.raised is None:
                    self.raised = closure_error(said)
            else:
                self.free = min(answer.get("room", _MAX_UNSENT), _MAX_UNSENT)
                for key, one in enumerate(batch, answer["first"]):
                    one.value._id = key
                    if one.cancelled:
                        cancelled.append(key)
                    outcome = self.early.get(key) or self.early_range(key)
                    if outcome is not None:
                        self.count(outcome, True)
                        one.value._settle(outcome)
                        continue
                    if self.over:
                        one.value._abort()
                        continue
                    self.expect(one.value, True)
                    if self.early_full:
                        unseen.append(key)
                self.hear(answer)
                if answer.get("raised") and self.raised is None:
                    self.raised = closure_error(answer["raised"])
            if not self.sending:
                self.early, self.early_ranges, self.early_full = {}, [], False
                self.sent_now = []
            self.room.notify_all()
            self.ended.notify_all()
        return unseen, cancelled

    def expect(self, value: RemoteValue, ours: bool) -> None:
        if not self.open and self.dog is not None:
            self.dog.report_closure_done()
        opened = self.open.get(value._id)
        if opened is None:
            opened = self.open[value._id] = Open(ours)
            self.ours += ours
        opened.values.append(weakref.ref(value))
        self.wanted.notify()

    def hear(self, answer: Dict[str, Any]) -> None:
        self.epoch = max(self.epoch, answer.get("epoch", 0))
        if answer.get("raised"):
            self.failed = False

    # -- outcomes

    def receive(self) -> None:
        try:
            while True:
                with self.lock:
                    while not self.open and not self.sending and not self.closing and not self.over:
                        self.wanted.wait()
                    if self.closing or self.over:
                        return
                    what = {"client": self.name, "after": self.at, "wait": MAX_WAIT, "tuples": True}
                raw = self.lines[1].ask(COORDINATOR + "outcomes", json.dumps(what).encode())
                answer = loads(raw)
                with self.lock:
                    self.take(answer)
                del answer
        except Away:
            pass
        except BaseException as e:
            over = isinstance(e, TaskError) and e.code == "over"
            self.end(str(e) if over else "the outcomes of closures can no longer be followed: %s" % e)

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
                self.settle(cancelled_outcome(key, span))
            if self.sending and self.early_room():
                self.early_ranges.append(span)
        self.ended.notify_all()

    def settle(self, outcome: Dict[str, Any]) -> None:
        key = outcome["id"]
        opened = self.open.pop(key, None)
        if opened is None:
            # The ID of the closure may still be in flight. The first outcome counts.
            if self.sending and key not in self.early and self.early_range(key) is None and self.early_room():
                self.early[key] = outcome
            return
        self.ours -= opened.ours
        self.count(outcome, opened.ours)
        for ref in opened.values:
            value = ref()
            if value is not None:
                value._settle(outcome)

    def early_room(self) -> bool:
        """Return whether an outcome can be kept. Their number is bounded, because other
        clients may have closures called, too."""
        if len(self.early) + len(self.early_ranges) >= _MAX_EARLY:
            self.early, self.early_ranges, self.early_full = {}, [], True
        return not self.early_full

    def early_range(self, key: int) -> Optional[Dict[str, Any]]:
        for span in self.early_ranges:
            if span["first"] <= key <= span["last"]:
                return cancelled_outcome(key, span)
        return None

    def count(self, outcome: Dict[str, Any], ours: bool) -> None:
        kind = outcome.get("kind")
        if kind != "cancelled":
            self.counts["closure_execution"] += 1
        if kind in ("error", "input"):
            self.failed = self.failed or ours
        elif kind != "cancelled":
            self.counts["remote_value_fetch"] += 1
        if self.dog is not None:
            self.dog.report_closure_done()

    def look(self, keys: List[int]) -> None:
        """Look up the outcomes of closures that may have ended before they were awaited
        here. Later outcomes arrive by the history."""
        raw = json.dumps({"closures": keys, "tuples": True}).encode()
        self.found(loads(self.lines[0].ask(COORDINATOR + "find", raw)))

    def found(self, answer: Dict[str, Any]) -> None:
        with self.lock:
            for outcome in answer["outcomes"]:
                self.settle(outcome)
            self.ended.notify_all()

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

    def find(self, coordinator: "ClusterCoordinator", key: int) -> RemoteValue:
        value = RemoteValue(coordinator)
        value._id = key
        with self.lock:
            self.check()
            self.expect(value, False)
            self.start()
        try:
            answer = self.ask("find", {"closures": [key], "tuples": True})
        except BaseException as e:
            with self.lock:
                opened = self.open.get(key)
                if opened is not None:
                    opened.values = [ref for ref in opened.values if ref() is not value]
                    if not opened.values and not opened.ours:
                        del self.open[key]
            if isinstance(e, TaskError) and e.code in REFUSALS:
                raise ValueError(str(e)) from None
            raise
        self.found(answer)
        return value

    # -- waiting

    def join(self) -> None:
        line = Line(self.path)
        try:
            with self.lock:
                self.joins.add(line)
                self.work.notify_all()  # a signal may have interrupted schedule before that
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
            if self.unanswered() or (self.ours and not self.failed and now - self.asked < _ASK_DONE):
                return False
            self.asked, self.failed = now, False
            call = next(self.calls)
        return self.conclude(self.ask("done", {"client": self.name, "call": call}))

    def conclude(self, answer: Dict[str, Any]) -> bool:
        """Return the result of a join: that everything is done, or the error. The queue
        knows of the end of functions a little earlier than this process."""
        with self.lock:
            self.hear(answer)
            raised = answer.get("raised")
            if raised or answer["done"]:
                until = self.passed
                while self.ours and self.passed == until and not self.over:
                    self.ended.wait()
        if raised:
            raise closure_error(raised)
        with self.lock:
            if answer["done"]:
                self.tell()
        return bool(answer["done"])

    # -- resources, cancellation, and the end

    def create_resource(self, what: str) -> int:
        if building():
            raise ValueError("Creating a per-worker resource in the function of one is not allowed.")
        try:
            with self.creating:
                raw = ('{"client":"%s","number":%d,"resource":{%s}}' % (self.name, next(self.resources), what)).encode()
                resource: int = get_host().exchange(head("POST", COORDINATOR + "resources"), lambda: raw, None)["id"]
                return resource
        except TaskError as e:
            if e.code in REFUSALS:
                raise closure_error(refused(e)) from None
            raise

    def keep(self, values: PerWorkerValues) -> None:
        """Release the resource when nothing refers to it."""
        with self.lock:
            self.start()  # a finalizer may be unable to do that
            self.kept.add(values._id)
        weakref.finalize(values, self.drop, values._id).atexit = False  # see _flush_sessions

    def drop(self, resource: int) -> None:
        with self.lock:
            if self.over or resource not in self.kept:
                return
            self.kept.remove(resource)
            if not self.released:
                self.release_at = time.monotonic() + _GATHER_RELEASES
            self.released.append((next(self.numbers), resource))
            self.work.notify()

    def cancel(self, values: Optional[List[RemoteValue]]) -> None:
        with self.lock:
            self.check()
            wanted = None if values is None else {id(v) for v in values}
            kept: Deque[Unsent] = collections.deque()
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
        """At the end of the program, send what is unsent and release all resources."""
        with self.lock:
            for resource in sorted(self.kept):
                self.drop(resource)
            self.release_at = 0.0
            self.work.notify()
            while (self.unanswered() or self.released or self.releasing) and not self.over and time.monotonic() < end:
                self.ended.wait(end - time.monotonic())


def building() -> bool:
    """Return whether the caller is called by the function of a per-worker resource. It
    looks at the stack, because a note could be lost when that is interrupted at any line."""
    frame = sys._getframe()
    while frame is not None and frame.f_code is not Server.resource.__code__:
        frame = frame.f_back  # type: ignore[assignment]
    return frame is not None


REFUSALS = ("queue_refused", "invalid")


def refused(e: TaskError) -> Dict[str, Any]:
    """Return the error of a closure that the queue refuses."""
    message, field = str(e), e.field
    if field:
        message = message[len("field %s: " % field):]
    for outer in ("closures[0].", "options.", "resource."):
        if field.startswith(outer):
            field = field[len(outer):]
    if field not in ("", "function"):
        message = "%s: %s" % (field, message)
    kind = "UnknownFunctionError" if message.startswith("no task has registered a function") else "RefusedError"
    return {"kind": kind if e.code in REFUSALS else "TaskError", "message": message}


def cancelled_outcome(key: int, span: Dict[str, Any]) -> Dict[str, Any]:
    return {"id": key, "kind": "cancelled", "error": {
        "kind": "CancelledError", "message": span.get("text") or TEXT_CANCELLED, "closure": key,
    }}
