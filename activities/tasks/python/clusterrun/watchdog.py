"""Writes the stacks of a program without progress."""

import contextlib
import os
import sys
import threading
import time
from typing import Any, Callable, Optional


class WatchDog:
    """Writes the stacks of all threads of this process to a file when no function has ended for
    timeout seconds, and calls on_triggered. TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT overrides
    timeout; without either, or with 0, it does nothing. waits returns whether a call is
    awaited."""

    __module__ = "clusterrun"

    def __init__(
        self,
        timeout: float = -1,
        traceback_file: Any = None,
        on_triggered: Optional[Callable[[], Any]] = None,
        waits: Callable[[], bool] = lambda: True,
    ) -> None:
        said = os.environ.get("TF_CLUSTER_COORDINATOR_WATCH_DOG_TIMEOUT", "")
        self.timeout = float(said) if said.isdigit() else timeout
        self._file = traceback_file
        self._on_triggered = on_triggered
        self._waits = waits
        self._change = threading.Condition()
        self._reported = time.monotonic()
        self._stopped = self.timeout <= 0
        if not self._stopped:
            threading.Thread(target=self._watch, name="clusterrun-watchdog", daemon=True).start()

    def report_closure_done(self) -> None:
        """Restart the timeout."""
        self._reported = time.monotonic()

    def stop(self) -> None:
        """Stop watching."""
        with self._change:
            self._stopped = True
            self._change.notify_all()

    def _watch(self) -> None:
        while True:
            with self._change:
                left = self._reported + self.timeout - time.monotonic()
                if not self._stopped:
                    self._change.wait(max(left, 0.001))
                if self._stopped:
                    return
            if time.monotonic() - self._reported < self.timeout:
                continue
            self._reported = time.monotonic()
            if self._waits():
                self._trigger()

    def _trigger(self) -> None:
        import faulthandler

        file = self._file or sys.stdout
        with contextlib.suppress(Exception):
            file.write("WatchDog: no function has ended for %g seconds. The stacks of this process:\n" % self.timeout)
            file.flush()
            faulthandler.dump_traceback(file)
        if self._on_triggered is not None:
            self._on_triggered()
