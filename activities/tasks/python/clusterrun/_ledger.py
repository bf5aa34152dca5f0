"""The closures of a serving process, and what it tells the host about them."""

import json
from typing import Any, Callable, Dict, List, Tuple

_MAX_DONE = 512 << 10  # bytes of outcomes in one request


class Call:
    """A closure that this process calls."""

    __slots__ = ("id", "function", "args", "kwargs", "resources", "thread", "told", "inside", "interrupted", "wakes")

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.id: int = raw["id"]
        self.function: str = raw["function"]
        self.args: List[Any] = raw.get("args") or []
        self.kwargs: Dict[str, Any] = raw.get("kwargs") or {}
        self.resources: bool = bool(raw.get("resources"))
        self.thread = 0  # that calls it
        self.told = False  # that it must end
        self.inside = False  # the code that catches CancelledError
        self.interrupted = False  # CancelledError was sent
        self.wakes: List[float] = []  # times at which its thread is woken up again for that


class Ledger:
    """The state of a serving process, all of which it sends with each request. It takes only
    the answer to its newest request. A ledger may be used by one thread at a time.

    resource turns the host's definition of a resource into an object."""

    def __init__(self, name: str, slots: int, resource: Callable[[Dict[str, Any]], Any]) -> None:
        self.name = name
        self.slots = slots
        self.resource = resource
        self.calls: Dict[int, Call] = {}  # all closures of this process
        self.queue: List[Call] = []  # those that have no thread yet
        self.running: Dict[int, Call] = {}  # by thread
        self.done: List[Tuple[int, bytes]] = []  # outcomes that the host may not have
        self.seq = 0
        self.stopping = False  # no more calls begin
        self.resources: Dict[int, Any] = {}
        self.dropped: List[Any] = []  # resources that are no longer needed

    def begin(self, thread: int) -> Call:
        """Take the first call of the queue for a thread."""
        call = self.queue.pop(0)
        call.thread = thread
        self.running[thread] = call
        return call

    def ended(self, call: Call, outcome: bytes) -> None:
        """Keep the outcome of a call for the next request."""
        self.running.pop(call.thread, None)
        del self.calls[call.id]
        self.done.append((call.id, b'{"id":%d%s}' % (call.id, outcome)))

    def stop(self) -> None:
        """Begin no more calls. The next request does not have those that wait."""
        self.stopping = True
        while self.queue:
            del self.calls[self.queue.pop().id]

    def compose(self, wait: int) -> Tuple[bytes, int]:
        """Return a request with the state of the process, and the number of outcomes in it."""
        n, size = 0, 0
        while n < len(self.done) and size < _MAX_DONE:
            size += len(self.done[n][1])
            n += 1
        slots = 0 if self.stopping else self.slots
        self.seq += 1
        says = {
            "process": self.name, "seq": self.seq, "slots": slots, "free": max(0, slots - len(self.calls)),
            "held": list(self.calls) + [key for key, _ in self.done[n:]], "ending": [key for key, call in self.calls.items() if call.told],
            "resources": list(self.resources), "wait": wait if n == len(self.done) else 0,
        }
        return b'%s,"done":[%s]}' % (json.dumps(says)[:-1].encode(), b",".join(outcome for _, outcome in self.done[:n])), n

    def answered(self, answer: Dict[str, Any], sent: int) -> List[Call]:
        """Take the answer to a request with that number of outcomes. Return the calls that it
        tells to end."""
        del self.done[:sent]
        for key in answer.get("released") or ():
            if key in self.resources:
                self.dropped.append(self.resources.pop(key))
        for raw in answer.get("resources") or ():
            self.resources.setdefault(raw["id"], self.resource(raw))
        told = [self.calls[key] for key in answer.get("cancel") or () if key in self.calls]
        for call in told:
            call.told = True
        for raw in answer.get("closures") or ():
            call = self.calls[raw["id"]] = Call(raw)
            self.queue.append(call)
        if answer.get("stop") or self.stopping:
            self.stop()
        return told
