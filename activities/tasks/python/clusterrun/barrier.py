"""Barriers among the tasks of a run."""

import json
import time
from typing import Any, Dict, Optional, Sequence

from ._errors import BarrierTimeoutError, seconds
from ._http import MAX_NAME, head
from ._transport import Away, find_host, get_host

_ANSWER_SLACK = 5.0  # seconds that the host may answer after the timeout

class Barrier:
    """A reusable barrier among tasks; see get_barrier."""

    __module__ = "clusterrun"

    def __init__(
        self,
        name: str = "default",
        timeout: Optional[float] = None,
        participants: Optional[Sequence[str]] = None,
        local: bool = False,
    ) -> None:
        get_host()
        raw = name.encode()
        if not 0 < len(raw) <= MAX_NAME:
            raise ValueError("a barrier's name must have 1 to %d bytes, not %d" % (MAX_NAME, len(raw)))
        if isinstance(participants, str):
            raise TypeError("participants is a list of names, not one name")
        self.name = name
        self.timeout = None if timeout is None else seconds("timeout", timeout)
        self._head = head("POST", "/v1/barriers/" + "".join("%%%02X" % byte for byte in raw))
        self._arrival: Dict[str, Any] = {}
        if local:
            self._arrival["local"] = True
        if participants:
            self._arrival["participants"] = list(participants)

    def wait(self, timeout: Optional[float] = None) -> int:
        """Wait until all participants have arrived. Return this task's position among them,
        from 0. Raise BrokenBarrierError if the barrier breaks."""
        if timeout is None:
            timeout = self.timeout
        else:
            timeout = seconds("timeout", timeout)
        host = get_host()
        key = host.new_key()
        end = None if timeout is None else time.monotonic() + max(0.0, timeout)

        def body() -> bytes:  # a repeated arrival has less time left
            arrival = dict(self._arrival, key=key)
            if end is not None:
                arrival["timeout"] = "%.6fs" % max(0.0, end - time.monotonic())
            return json.dumps(arrival).encode()

        try:
            release = host.exchange(self._head, body, None if end is None else end + _ANSWER_SLACK)
        except Away as e:
            raise BarrierTimeoutError(
                "barrier %r: the host did not answer within %gs: %s" % (self.name, timeout or 0.0, e)
            ) from None
        index: int = release["index"]
        return index


def get_barrier(
    name: str = "default",
    timeout: Optional[float] = None,
    participants: Optional[Sequence[str]] = None,
    local: bool = False,
) -> Barrier:
    """Return a barrier among all tasks of the run, or among the participants: task names such
    as "worker-0", and types such as "worker" for all their tasks. All participants must name
    the same ones. timeout is in seconds; None waits without limit. local lets the host release
    it on its own, within microseconds. All participants must be on it.

    Raise ValueError outside a task.
    """
    return Barrier(name, timeout, participants, local)


def barrier(
    name: str = "default",
    timeout: Optional[float] = None,
    participants: Optional[Sequence[str]] = None,
    local: bool = False,
) -> int:
    """Wait at a barrier; see get_barrier and Barrier.wait. Outside a task, the process is the
    only participant, and does not wait."""
    if find_host() is None:
        return 0
    return Barrier(name, timeout, participants, local).wait()
