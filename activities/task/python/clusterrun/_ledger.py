"""What a process that serves has of closures, and what it tells the host of them."""

import collections
import json
from typing import Any, Callable, Deque, Dict, Iterable, List, Optional, Tuple

from ._http import FIRST_RETRY, FOREVER, LAST_RETRY, MAX_WAIT
from ._values import error_outcome

_MAX_DONE = 512 << 10  # bytes of outcomes in one request
_OUTCOMES_WAIT = 0.020  # for others, while calls go on
_SLOT_WAITS = 0.0005  # for the other slots, which may be as quick
_HAND_BACK_AFTER = 0.100  # what waits behind calls for so long is for others


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
        self.began = 0.0  # once it has
        self.thread = 0
        self.told = False  # to end
        self.inside = False  # of what catches CancelledError
        self.interrupted = False  # CancelledError was sent
        self.wakes: List[float] = []  # when its thread is to be woken up again for that


class Request:
    """A request on its way, and what it takes along: outcomes by the IDs of their
    closures, and closures that are handed back."""

    def __init__(self, free: int, done: List[Tuple[int, bytes]], returned: List[int], names: Optional[List[str]]) -> None:
        self.free = free
        self.done = done
        self.returned = returned
        self.names = names
        self.body = b""

    def taken(self) -> List[int]:
        """The closures that the process has no more once this is answered."""
        return [key for key, _ in self.done] + self.returned


class Ledger:
    """A process says with each request how it stands. What an answer brings has a
    number, so that nothing is taken twice; an outcome that was sent and not answered
    is sent again. One thread at a time may use a ledger.

    functions are those that are registered, by name. resource makes what a resource is
    here of what the host says of it."""

    def __init__(self, name: str, slots: int, functions: Iterable[str], resource: Callable[[Dict[str, Any]], Any]) -> None:
        self.name = name
        self.slots = slots
        self.functions = functions
        self.resource = resource
        self.calls: Dict[int, Call] = {}  # all that are here
        self.queue: Deque[Call] = collections.deque()  # those that have not begun
        self.running: Dict[int, Call] = {}  # by thread
        self.progress = 0.0  # when a call was begun, or closures came
        self.done: List[Tuple[int, bytes]] = []  # outcomes that no request has,
        self.since = 0.0  # and since when
        self.returned: List[int] = []
        self.unanswered: Dict[int, int] = {}  # requests with the outcome of a closure
        self.seq = 0
        self.got = 0
        self.open: List[Request] = []
        self.introduced: Optional[List[str]] = None
        self.delay = 0.0  # before the next try
        self.retry = 0.0  # when that is
        self.stopping = False  # together: no call begins any more
        self.over = False
        self.resources: Dict[int, Any] = {}
        self.dropped: List[Any] = []  # nobody needs them any more

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
        """The request that is due, or for how long none is."""
        if self.stopping and not (self.calls or self.done or self.returned):
            return None, None  # the host counts it as ended already, or the farewell tells it
        if len(self.open) > 1:
            return None, None  # the older one is answered because of the newer one
        if self.retry > now:
            return None, self.retry - now
        free = 0 if self.queue or self.stopping else self.slots - len(self.running)
        due = [FOREVER]
        if self.queue:
            if now - self.progress >= _HAND_BACK_AFTER:
                self.hand_back()
            else:
                due.append(_OUTCOMES_WAIT)  # to see what has come of them
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
        """Have others make the calls that have not begun."""
        while self.queue:
            call = self.queue.popleft()
            self.calls.pop(call.id, None)
            self.returned.append(call.id)

    def compose(self, free: int, wait: int) -> Request:
        """Say how the process stands."""
        names: Optional[List[str]] = sorted(self.functions)
        if names == self.introduced:
            names = None
        n, size = 0, 0
        while n < len(self.done) and n < 1000 and size < _MAX_DONE:
            size += len(self.done[n][1])
            n += 1
        request = Request(free, self.done[:n], self.returned, names)
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
        for key in request.taken():
            self.unanswered[key] = self.unanswered.get(key, 0) + 1
        self.open.append(request)
        return request

    def failed(self, request: Request, now: float, again: bool) -> None:
        """A request was not answered: another one says the same, and more, after a while
        unless it is to be sent again at once."""
        self.take_back(request)
        if not again:
            self.delay = min(max(2 * self.delay, FIRST_RETRY), LAST_RETRY)
            self.retry = now + self.delay

    def take_back(self, request: Request) -> None:
        """What the request says is unsaid."""
        self._settle(request)
        self.done = request.done + self.done
        self.returned = request.returned + self.returned

    def _settle(self, request: Request) -> None:
        """A request is on its way no more."""
        self.open.remove(request)
        for key in request.taken():
            left = self.unanswered[key] - 1
            if left:
                self.unanswered[key] = left
            else:
                del self.unanswered[key]

    def answered(self, request: Request, answer: Dict[str, Any], now: float) -> List[Call]:
        """Take in an answer. Returns the calls that it tells to end while they are made."""
        self.delay = 0.0
        self._settle(request)
        if request.names is not None:
            self.introduced = request.names
        if answer.get("introduce"):
            self.introduced = None
        # Before what comes: a closure of this answer may use anew what was released earlier.
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
        told = [call for call in (self._cancel(raw["id"], now) for raw in answer.get("cancel") or ()) if call is not None]
        self.stopping = self.stopping or bool(answer.get("stop"))
        if self.stopping or self.over:
            self.hand_back()
        return told

    def _take(self, raw: Dict[str, Any]) -> None:
        key = raw["id"]
        if key in self.returned:
            self.returned.remove(key)
        call = self.calls.get(key)
        if call is not None:  # a host that was started again may not know that it is here
            call.number = raw["call"]
            return
        call = self.calls[key] = Call(raw)
        self.queue.append(call)

    def _cancel(self, key: int, now: float) -> Optional[Call]:
        """Have a call end. It is returned if it has begun."""
        call = self.calls.get(key)
        if call is None or call.told:
            return None
        call.told = True
        if call.began:
            return call
        self.queue.remove(call)
        self.ended(call, error_outcome("cancelled", "CancelledError", "", "", 0.0), now)
        return None
