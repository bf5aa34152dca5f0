"""Writes the stacks of a program when somebody asks what it is doing."""

import atexit
import os
from typing import Optional, Tuple


class _Registration:
    """The handler of this process. Its descriptor must stay open as long as the handler
    exists, because the handler writes without the interpreter."""

    def __init__(self, number: int, base: str) -> None:
        import faulthandler  # not in every interpreter

        self.number = number
        self.base = base
        self.path = "%s.%d" % (base, os.getpid())
        self.fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            self.file = self._identity()
            faulthandler.register(number, file=self.fd, all_threads=True, chain=False)
        except BaseException:
            os.close(self.fd)
            raise

    def _identity(self) -> Tuple[int, int]:
        info = os.fstat(self.fd)
        return info.st_dev, info.st_ino

    def unregister(self) -> None:
        import faulthandler

        faulthandler.unregister(self.number)

    def close(self) -> None:
        """Close the descriptor, unless the program has reused its number."""
        try:
            if self._identity() == self.file:
                os.close(self.fd)
        except OSError:
            pass

    def remove_empty(self) -> None:
        try:
            if os.stat(self.path).st_size == 0:
                os.unlink(self.path)
        except OSError:
            pass


_current: Optional[_Registration] = None
_hooked: bool = False


def enable_stacks(signal: Optional[int] = None, file: Optional[str] = None) -> bool:
    """Write the stacks of all threads when the signal comes. Return False if that is
    impossible.

    The defaults of both come from the environment. The import has called this already; it
    is needed again only after a process has closed all its descriptors.
    """
    global _current, _hooked
    try:
        number = int(os.environ.get("CLUSTERRUN_STACK_SIGNAL", "")) if signal is None else signal
        base = os.environ.get("CLUSTERRUN_STACK_FILE", "") if file is None else file
        if number <= 0 or not base:
            return False
        _remove_abandoned(base)
        old, _current = _current, _Registration(number, base)
        if old is not None:
            if old.number != number:
                old.unregister()
            old.close()
        if not _hooked:
            _hooked = True
            atexit.register(_at_exit)
            os.register_at_fork(after_in_child=_after_fork)
        return True
    except Exception:  # no such environment, no faulthandler, a full disk, ...
        return False


def disable_stacks() -> None:
    """Undo enable_stacks: the process is no longer asked."""
    global _current
    old, _current = _current, None
    if old is not None:
        try:
            old.unregister()
            old.close()
            old.remove_empty()
        except Exception:
            pass


def _after_fork() -> None:
    """Give a child, which inherits the handler with its parent's file, a file of its own."""
    global _current
    if _current is None or enable_stacks(_current.number, _current.base):
        return
    old, _current = _current, None
    try:
        old.unregister()
        old.close()
    except Exception:
        pass


def _at_exit() -> None:
    if _current is not None:
        _current.remove_empty()


def _remove_abandoned(base: str) -> None:
    """Remove the files of processes that have ended and were never asked."""
    directory, name = os.path.split(base)
    try:
        for entry in os.scandir(directory or "."):
            head, _, pid = entry.name.rpartition(".")
            ours = head == name and pid.isdigit() and not os.path.exists("/proc/" + pid)
            if ours and entry.stat().st_size == 0:
                os.unlink(entry.path)
    except OSError:
        pass
