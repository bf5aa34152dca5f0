"""Barriers among the tasks of a run."""

import json
import time
from typing import Any, Dict, Optional, Sequence

from ._errors import BarrierTimeoutError
from ._http import MAX_NAME
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
            raise ValueError("the name of a barrier has 1 to %d bytes, not %d" % (MAX_NAME, size))
        if isinstance(participants, str):
            raise TypeError("participants is a list of names, not one name")
        self.name = name
        self.timeout = timeout
        arrival: Dict[str, Any] = {"name": name}
        if local:
            arrival["local"] = True
        if participants:
            arrival["participants"] = list(participants)
        self._head = json.dumps(arrival)[:-1]

    def wait(self, timeout: Optional[float] = None) -> int:
        """Wait until all participants have arrived. Return the place of this task among
        them, from 0. Raise BrokenBarrierError if the barrier breaks."""
        if timeout is None:
            timeout = self.timeout
        host = get_host()
        key = host.new_key()
        if timeout is None:
            raw = ('%s,"key":"%s"}\n' % (self._head, key)).encode()
            index = _arrive(host, raw)
            # If sent again, it is the same arrival.
            return _index(host.exchange(None, lambda: raw, None)) if index is None else index
        end = time.monotonic() + max(0.0, timeout)

        def body() -> bytes:  # a repeated arrival has less time left
            left = max(0.0, end - time.monotonic())
            return ('%s,"timeout":"%.6fs","key":"%s"}\n' % (self._head, left, key)).encode()

        try:
            return _index(host.exchange(None, body, end + _ANSWER_SLACK))
        except Away as e:
            raise BarrierTimeoutError(
                "barrier %r: the host did not answer within %gs: %s" % (self.name, timeout, e)
            ) from None


def _index(release: Dict[str, Any]) -> int:
    index: int = release["index"]
    return index


def _arrive(host: Host, line: bytes) -> Optional[int]:
    """The fast path of an arrival: one send and one receive on an idle connection. Return
    None without such a connection, or if the answer is not the usual one."""
    try:
        connection = host.lines.pop()
    except IndexError:
        return None
    try:
        if connection.gettimeout() is not None:
            connection.settimeout(None)
        connection.sendall(line)
        answer = connection.recv(4096)
    except OSError:
        close(connection)
        return None
    except BaseException:  # KeyboardInterrupt withdraws the arrival
        close(connection)
        raise
    start = answer.find(b'"index":') + 8
    end = answer.find(b",", start)
    if answer.startswith(b'{"error":') or not answer.endswith(b"}\n") or start < 8 or end < 0:
        close(connection)
        return None
    host.lines.append(connection)
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
    local lets the host release it by itself, within microseconds: all participants must be on
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
    """Wait at a barrier; see get_barrier and Barrier.wait. A process that is not a task is the
    only participant, and does not wait."""
    if find_host() is None:
        return 0
    return Barrier(name, timeout, participants, local).wait()
