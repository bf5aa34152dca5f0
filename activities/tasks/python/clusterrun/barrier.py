"""Barriers among the tasks of a run."""

import json
import time
from typing import Any, Dict, Optional, Sequence

from ._errors import BarrierTimeoutError
from ._http import MAX_NAME, head, request
from ._transport import Away, Host, close, find_host, get_host

_ANSWER_SLACK = 5.0  # seconds that the host may answer later than the timeout

class Barrier:
    """A barrier among tasks, which can be used repeatedly; see get_barrier."""

    __module__ = "clusterrun"

    def __init__(
        self,
        name: str = "default",
        timeout: Optional[float] = None,
        participants: Optional[Sequence[str]] = None,
        local: bool = False,
    ) -> None:
        get_host()
        size = len(name.encode())
        if not 0 < size <= MAX_NAME:
            raise ValueError("the name of a barrier has 1 to %d bytes; this one has %d" % (MAX_NAME, size))
        if isinstance(participants, str):
            raise TypeError("participants is a list of names, not one name")
        from urllib.parse import quote  # imported late: most programs have no barrier

        self.name = name
        self.timeout = timeout
        self._path = "/v1/barriers/" + quote(name, safe="")
        self._head = head("POST", self._path)
        self._more = ""
        if local:
            self._more += ',"local":true'
        if participants:
            self._more += ',"participants":' + json.dumps(list(participants))

    def wait(self, timeout: Optional[float] = None) -> int:
        """Wait until all participants have arrived. Return the place of this task among
        them, from 0. Raise BrokenBarrierError if the barrier breaks."""
        if timeout is None:
            timeout = self.timeout
        host = get_host()
        key = host.new_key()
        if timeout is None:
            raw = ('{"key":"%s"%s}' % (key, self._more)).encode()
            index = _arrive(host, request(self._head, raw))
            # If sent again, it is the same arrival.
            return _index(host.exchange(self._head, lambda: raw, None)) if index is None else index
        end = time.monotonic() + max(0.0, timeout)

        def body() -> bytes:  # a repeated arrival has less time left
            left = max(0.0, end - time.monotonic())
            return ('{"key":"%s","timeout":"%.6fs"%s}' % (key, left, self._more)).encode()

        try:
            return _index(host.exchange(self._head, body, end + _ANSWER_SLACK))
        except Away as e:
            raise BarrierTimeoutError(
                "barrier %r: the host did not answer within %gs: %s" % (self.name, timeout, e)
            ) from None


def _index(release: Dict[str, Any]) -> int:
    index: int = release["index"]
    return index


def _arrive(host: Host, request: bytes) -> Optional[int]:
    """The fast path of an arrival: one send and one receive on an idle connection. Return
    None if there is none, or if the answer is not the usual one."""
    try:
        connection = host.idle.pop()
    except IndexError:
        return None
    try:
        if connection.gettimeout() is not None:
            connection.settimeout(None)
        connection.sendall(request)
        answer = connection.recv(4096)
    except OSError:
        close(connection)
        return None
    except BaseException:  # KeyboardInterrupt withdraws the arrival
        close(connection)
        raise
    start = answer.find(b'"index":') + 8
    end = answer.find(b",", start)
    if not answer.startswith(b"HTTP/1.1 200 ") or not answer.endswith(b"}\n") or start < 8 or end < 0:
        close(connection)
        return None
    host.idle.append(connection)
    return int(answer[start:end])


def get_barrier(
    name: str = "default",
    timeout: Optional[float] = None,
    participants: Optional[Sequence[str]] = None,
    local: bool = False,
) -> Barrier:
    """Return a barrier among all tasks of the run, or among the participants: names of
    tasks such as "worker-0", and types such as "worker" for all their tasks. All
    participants must name the same ones. timeout is in seconds; None waits without limit.
    local lets the host release it alone, within microseconds: all participants must be on
    it.

    Raise ValueError in a process that is not a task.
    """
    return Barrier(name, timeout, participants, local)


def barrier(
    name: str = "default",
    timeout: Optional[float] = None,
    participants: Optional[Sequence[str]] = None,
    local: bool = False,
) -> int:
    """Wait at a barrier; see get_barrier and Barrier.wait. A process that is not a task is
    alone, and does not wait."""
    if find_host() is None:
        return 0
    return Barrier(name, timeout, participants, local).wait()
