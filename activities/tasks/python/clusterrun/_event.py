"""An event that signal handlers can set."""

import collections
import threading
from typing import Deque, Optional


class Event:
    """Like threading.Event, but a signal handler may call set while its own thread is in wait
    or set. threading.Event would then wait forever for a lock held by its thread. This class
    does not use locks. Each step is a single operation of the interpreter."""

    def __init__(self) -> None:
        self._flag = False
        self._waiters: Deque[threading.Lock] = collections.deque()  # each is held until woken

    def is_set(self) -> bool:
        return self._flag

    def set(self) -> None:
        self._flag = True
        for waiter in self._waiters.copy():
            try:
                waiter.release()
            except RuntimeError:
                pass  # woken by another call

    def clear(self) -> None:
        self._flag = False

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Wait until it is set, at most timeout seconds; return whether it was."""
        waiter = threading.Lock()
        waiter.acquire()
        self._waiters.append(waiter)
        try:
            if self._flag:  # perhaps set before the waiter was added
                return True
            return waiter.acquire(timeout=-1 if timeout is None else max(0.0, timeout)) or self._flag
        finally:
            self._waiters.remove(waiter)
