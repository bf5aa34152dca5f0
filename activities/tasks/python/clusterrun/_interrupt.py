"""Interrupts other threads."""

import signal
import threading
from typing import Any

from ._errors import CancelledError


def interrupt(thread: int) -> bool:
    """Raise CancelledError in a thread, at the next line of Python that it executes. A harmless
    signal wakes the main thread from a wait for that."""
    try:
        import ctypes

        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(CancelledError))
    except Exception:  # another interpreter, where functions can only check cancelled()
        return False
    wake_thread(thread)
    return True


def wake_thread(thread: int) -> None:
    if thread == threading.main_thread().ident and _woken:
        try:
            signal.pthread_kill(thread, signal.SIGURG)
        except Exception:
            pass


def forget_interrupt(thread: int) -> None:
    import ctypes

    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), None)


_woken = False


def wake_main_thread() -> Any:
    """Make SIGURG, which is otherwise ignored, interrupt the main thread's wait."""
    global _woken
    try:
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGURG) == signal.SIG_DFL:
            previous = signal.signal(signal.SIGURG, lambda *_: None)
            _woken = True
            return previous
    except (ValueError, OSError, AttributeError):
        pass
    return None


def leave_main_thread(previous: Any) -> None:
    global _woken
    if _woken and previous is not None:
        _woken = False
        signal.signal(signal.SIGURG, previous)
