"""A thread that repeats a call."""

import threading
import time
from typing import Any, Callable, Iterable, Mapping, Optional

from .coordinator import Coordinator


class Looper(threading.Thread):
    """A thread that repeats a call until its coordinator stops.

    It calls target, or a subclass's method run_loop. An exception stops the coordinator. It is
    a daemon, registers itself, and must still be started. LooperThread is an alias.

    Calls happen at fixed times counted from the first, regardless of how long each takes;
    missed calls are made up, back to back. Setting the machine's clock does not matter. Without
    an interval all calls are back to back.
    """

    __module__ = "clusterrun"

    def __init__(
        self,
        coord: Coordinator,
        timer_interval_secs: Optional[float],
        target: Optional[Callable[..., Any]] = None,
        args: Optional[Iterable[Any]] = None,
        kwargs: Optional[Mapping[str, Any]] = None,
    ) -> None:
        if not isinstance(coord, Coordinator):
            raise ValueError("'coord' argument must be a Coordinator: %s" % (coord,))
        if not target and (args or kwargs):
            raise ValueError("'args' and 'kwargs' argument require that you also pass 'target'")
        super().__init__(daemon=True)
        self._coord = coord
        self._timer_interval_secs = timer_interval_secs
        self._call = (target, tuple(args or ()), dict(kwargs or {}))
        coord.register_thread(self)

    @classmethod
    def loop(
        cls,
        coord: Coordinator,
        timer_interval_secs: Optional[float],
        target: Callable[..., Any],
        args: Optional[Iterable[Any]] = None,
        kwargs: Optional[Mapping[str, Any]] = None,
    ) -> "Looper":
        """Make a looper and start it."""
        looper = cls(coord, timer_interval_secs, target=target, args=args, kwargs=kwargs)
        looper.start()
        return looper

    def run(self) -> None:
        with self._coord.stop_on_exception():
            self.start_loop()
            if self._timer_interval_secs is None:
                while not self._coord.should_stop():
                    self.run_loop()
            else:
                due = time.monotonic()
                while not self._coord.wait_for_stop(due - time.monotonic()):
                    due += self._timer_interval_secs
                    self.run_loop()
            self.stop_loop()

    def start_loop(self) -> None:
        """Called once, before the first call."""

    def stop_loop(self) -> None:
        """Called once, after the last call, unless a call has failed."""

    def run_loop(self) -> None:
        """The repeated call."""
        target, args, kwargs = self._call
        if target:
            target(*args, **kwargs)


LooperThread = Looper
