"""The closures of a serving process, and what it reports to the host about them."""

import json
from typing import Any, Callable, Dict, List, Tuple

_MAX_DONE = 512 << 10  # bytes of outcomes in one request


class Call:
    """A closure that this process is calling."""

    __slots__ = ("id", "function", "args", "kwargs", "resources", "thread", "told", "inside", "interrupted", "wakes")

    def __init__(self, raw: Dict[str, Any]) -> None:
        self.id: int = raw["id"]
        self.function: str = raw["function"]
        self.args: List[Any] = raw.get("args") or []
        self.kwargs: Dict[str, Any] = raw.get("kwargs") or {}
        self.resources: bool = bool(raw.get("resources"))
        self.thread = 0  # calls it
        self.told = False  # it must end
        self.inside = False  # the code that catches CancelledError
        self.interrupted = False  # CancelledError was sent
        self.wakes: List[float] = []  # when to wake its thread up again


class Ledger:
    """A serving process's state, all of which is in each request. It uses only the answer to
    its newest request. A ledger may be used by one thread at a time.

    resource turns the host's definition of a resource into an object."""

    def __init__(self, name: str, slots: int, resource: Callable[[Dict[str, Any]], Any]) -> None:
        self.name = name
        self.slots = slots
        self.resource = resource
        self.calls: Dict[int, Call] = {}  # all closures of this process
        self.queue: List[Call] = []  # not assigned to a thread yet
        self.running: Dict[int, Call] = {}  # by thread
        self.done: List[Tuple[int, bytes]] = []  # the host may lack these outcomes
        self.seq = 0
        self.stopping = False  # no more calls start
        self.resources: Dict[int, Any] = {}
        self.dropped: List[Any] = []  # resources that are no longer needed

    def begin(self, thread: int) -> Call:
        """Take the queue's first call for a thread."""
        call = self.queue.pop(0)
        call.thread = thread
        self.running[thread] = call
        return call

    def ended(self, call: Call, outcome: bytes) -> None:
        """Store a call's outcome for the next request."""
        self.running.pop(call.thread, None)
        del self.calls[call.id]
        self.done.append((call.id, b'{"id":%d%s}' % (call.id, outcome)))

    def stop(self) -> None:
        """Start no more calls. The next request omits those that wait."""
        self.stopping = True
        while self.queue:
            del self.calls[self.queue.pop().id]

    def compose(self, wait: int) -> Tuple[bytes, int]:
        """Return a request with the process's state, and the number of outcomes in it."""
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
        """Handle the answer to a request with sent outcomes. Return the calls that it
        cancels."""
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
