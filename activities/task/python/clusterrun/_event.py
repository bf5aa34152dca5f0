"""An event that handlers of signals may set."""

import collections
import threading
from typing import Deque, Optional


class Event:
    """A threading.Event whose set may be called by a handler of a signal that came while its own
    thread was in wait or set: that of threading.Event waits for ever then, for a lock that
    its thread holds. Nothing here holds one: each step is a single one of the interpreter."""

    def __init__(self) -> None:
        self._flag = False
        self._waiters: Deque[threading.Lock] = collections.deque()  # each is held until it is woken

    def is_set(self) -> bool:
        return self._flag

    def set(self) -> None:
        self._flag = True
        for waiter in self._waiters.copy():
            try:
                waiter.release()
            except RuntimeError:
                pass  # somebody else has woken it

    def clear(self) -> None:
        self._flag = False

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is set, for at most so many seconds; whether it was."""
        waiter = threading.Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        try:
            if self._flag:  # perhaps since before the waiter could be seen
                return True
            return waiter.acquire(timeout=-1 if timeout is None else max(0.0, timeout)) or self._flag
        finally:
            self._waiters.remove(waiter)
