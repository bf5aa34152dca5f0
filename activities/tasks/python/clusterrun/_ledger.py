"""The closures of a serving process, and what it tells the host about them."""

import collections
import json
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

from ._http import FIRST_RETRY, FOREVER, LAST_RETRY, MAX_WAIT
from ._values import error_outcome

_MAX_DONE = 512 << 10  # bytes of outcomes in one request
_OUTCOMES_WAIT = 0.020  # seconds that outcomes wait for others while calls continue
_SLOT_WAITS = 0.0005  # seconds that an idle slot waits for the others, which may be as fast


class Call:
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
        self.began = 0.0  # the time at which it began
        self.thread = 0
        self.told = False  # that it must end
        self.inside = False  # the code that catches CancelledError
        self.interrupted = False  # CancelledError was sent
        self.wakes: List[float] = []  # times at which its thread is woken up again for that


class Request:
    """A request in flight, with its outcomes by the IDs of their closures, and the
    closures that it hands back."""

    def __init__(self, free: int, done: List[Tuple[int, bytes]], returned: List[int]) -> None:
        self.free = free
        self.done = done
        self.returned = returned
        self.body = b""

    def taken(self) -> List[int]:
        """Return the closures that the process no longer has once this is answered."""
        return [key for key, _ in self.done] + self.returned


class Ledger:
    """The state of a serving process, all of which it sends with each request. Answers
    with news have a number, so that nothing is taken twice; an outcome that was sent but
    not answered is sent again. A ledger may be used by one thread at a time.

    resource turns the host's definition of a resource into an object."""

    def __init__(self, name: str, slots: int, resource: Callable[[Dict[str, Any]], Any]) -> None:
        self.name = name
        self.slots = slots
        self.resource = resource
        self.calls: Dict[int, Call] = {}  # all closures of this process
        self.queue: Deque[Call] = collections.deque()  # those that have not begun
        self.running: Dict[int, Call] = {}  # by thread
        self.progress = 0.0  # when the last call began, or closures last arrived
        self.done: List[Tuple[int, bytes]] = []  # outcomes that are in no request,
        self.since = 0.0  # and the time of the first of them
        self.returned: List[int] = []
        self.unanswered: Dict[int, int] = {}  # requests with the outcome of a closure
        self.seq = 0
        self.got = 0
        self.open: List[Request] = []
        self.delay = 0.0  # before the next retry
        self.retry = 0.0  # the time of the next retry
        self.stopping = False  # all tasks stop together: no more calls begin
        self.over = False
        self.resources: Dict[int, Any] = {}
        self.dropped: List[Any] = []  # resources that are no longer needed

    def begin(self, thread: int, now: float) -> Call:
        """Take the first call of the queue for a thread."""
        call = self.queue.popleft()
        call.began = self.progress = now
        call.thread = thread
        self.running[thread] = call
        return call

    def ended(self, call: Call, outcome: bytes, now: float) -> None:
        """Keep the outcome of a call for the next request."""
        self.running.pop(call.thread, None)
        self.calls.pop(call.id, None)
        if not self.done:
            self.since = now
        self.done.append((call.id, b'{"id":%d,"call":%d%s}' % (call.id, call.number, outcome)))

    def next(self, now: float) -> Tuple[Optional[Request], Optional[float]]:
        """Return the request that is due, or else how long none is."""
        if self.stopping and not (self.calls or self.done or self.returned):
            return None, None  # the host knows that it has ended, or the farewell tells it
        if len(self.open) > 1:
            return None, None  # the newer request makes the host answer the older one
        if self.retry > now:
            return None, self.retry - now
        free = 0 if self.queue or self.stopping else self.slots - len(self.running)
        due = [FOREVER]
        if self.returned:
            due.append(0.0)
        wait = 0.0 if free == self.slots else _SLOT_WAITS if free else _OUTCOMES_WAIT
        if self.done:
            due.append(self.since + wait - now)
        if not self.open:
            due.append(self.progress + wait - now)
        elif free > self.open[0].free:
            due.append(self.progress + _SLOT_WAITS - now)
        wait = min(due)
        if wait > 0:
            return None, None if wait == FOREVER else wait
        return self.compose(free, MAX_WAIT), None

    def hand_back(self) -> None:
        """Hand back the calls that have not begun."""
        while self.queue:
            call = self.queue.popleft()
            self.calls.pop(call.id, None)
            self.returned.append(call.id)

    def compose(self, free: int, wait: int) -> Request:
        """Return a request with the state of the process."""
        n, size = 0, 0
        while n < len(self.done) and n < 1000 and size < _MAX_DONE:
            size += len(self.done[n][1])
            n += 1
        request = Request(free, self.done[:n], self.returned)
        del self.done[:n]
        self.returned = []
        held = set(self.calls)
        held.update(self.unanswered)
        held.update(key for key, _ in self.done)
        self.seq += 1
        says = {
            "process": self.name, "seq": self.seq, "got": self.got, "slots": 0 if self.stopping or self.over else self.slots,
            "held": list(held), "returned": request.returned, "free": free, "wait": wait,
        }
        request.body = b"%s,\"done\":[%s]}" % (json.dumps(says)[:-1].encode(), b",".join(o for _, o in request.done))
        for key in request.taken():
            self.unanswered[key] = self.unanswered.get(key, 0) + 1
        self.open.append(request)
        return request

    def failed(self, request: Request, now: float, again: bool) -> None:
        """Handle a request that was not answered: the next one repeats its content, after
        a delay unless again is set."""
        self.take_back(request)
        if not again:
            self.delay = min(max(2 * self.delay, FIRST_RETRY), LAST_RETRY)
            self.retry = now + self.delay

    def take_back(self, request: Request) -> None:
        """Put the content of a request back."""
        self._settle(request)
        self.done = request.done + self.done
        self.returned = request.returned + self.returned

    def _settle(self, request: Request) -> None:
        """Remove a request from those in flight."""
        self.open.remove(request)
        for key in request.taken():
            left = self.unanswered[key] - 1
            if left:
                self.unanswered[key] = left
            else:
                del self.unanswered[key]

    def answered(self, request: Request, answer: Dict[str, Any], now: float) -> List[Call]:
        """Handle an answer. Return the running calls that it tells to end."""
        self.delay = 0.0
        self._settle(request)
        # This comes first: a closure of this answer may use again what was released earlier.
        for span in answer.get("released") or ():
            for key in [k for k in self.resources if span["first"] <= k <= span["last"]]:
                self.dropped.append(self.resources.pop(key))
        news = answer.get("news", 0)
        if news > self.got:
            self.got = news
            for raw in answer.get("resources") or ():
                self.resources.setdefault(raw["id"], self.resource(raw))
            for raw in answer.get("closures") or ():
                self._take(raw)
            self.progress = now
        told = [call for call in (self._cancel(key, now) for key in answer.get("cancel") or ()) if call is not None]
        self.stopping = self.stopping or bool(answer.get("stop"))
        if self.stopping or self.over:
            self.hand_back()
        return told

    def _take(self, raw: Dict[str, Any]) -> None:
        key = raw["id"]
        if key in self.returned:
            self.returned.remove(key)
        call = self.calls.get(key)
        if call is not None:  # a restarted host may not know that this process has it
            call.number = raw["call"]
            return
        call = self.calls[key] = Call(raw)
        self.queue.append(call)

    def _cancel(self, key: int, now: float) -> Optional[Call]:
        """Tell a call to end. Return it if it has begun."""
        call = self.calls.get(key)
        if call is None or call.told:
            return None
        call.told = True
        if call.began:
            return call
        self.queue.remove(call)
        self.ended(call, error_outcome("cancelled", "CancelledError", "", ""), now)
        return None
