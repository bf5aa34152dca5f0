"""The errors of requests to the host, and descriptions of the program's own errors."""

import threading
from types import TracebackType
from typing import Any, Dict, Optional, Sequence, Tuple, Type, Union

ExcInfo = Tuple[Type[BaseException], BaseException, Optional[TracebackType]]

MAX_MESSAGE, MAX_TRACEBACK = 64 << 10, 256 << 10


class TaskError(RuntimeError):
    """The host refuses a request, or does not answer. code is for programs, such as
    "too_large"; field is the invalid field of the request, if any."""

    __module__ = "clusterrun"

    def __init__(self, message: str, code: str = "", field: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.field = field


class BrokenBarrierError(threading.BrokenBarrierError):
    """A barrier broke; all its waiting participants get this error. missing lists the
    participants that had not arrived, and arrived those that had."""

    __module__ = "clusterrun"

    def __init__(self, message: str, arrived: Sequence[str] = (), missing: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.arrived = list(arrived)
        self.missing = list(missing)


class BarrierTimeoutError(BrokenBarrierError, TimeoutError):
    """A barrier broke because a participant's timeout expired."""

    __module__ = "clusterrun"


class CancelledError(BaseException):
    """Raised in a function when its call is cancelled, at the next line of Python that it
    executes. In the main thread it also interrupts a wait, such as time.sleep. It is not an
    Exception, so handlers of Exception do not catch it."""

    __module__ = "clusterrun"


class UnavailableError(RuntimeError):
    """Raised by a function that cannot work because another task, such as a parameter server,
    does not answer. The function is retried, and the coordinator gets the error only if that
    happens too often. task is the task that does not answer."""

    __module__ = "clusterrun"

    def __init__(self, message: str = "", task: str = "") -> None:
        super().__init__(message or (task + " does not answer" if task else "a task does not answer"))
        self.task = task


class ResourceError(Exception):
    """A resource could not be built."""

    def __init__(self, original: BaseException) -> None:
        super().__init__("Input has an error, the original exception is %r, error message is %s." % (original, original))


class OwnError(Exception):
    """An error with one of our kinds."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def refusal(status: int, problem: Dict[str, Any]) -> Exception:
    message = problem.get("message") or "the host answered with status %d" % status
    code = problem.get("code", "")
    standing = problem.get("barrier") or {}
    arrived, missing = standing.get("arrived", ()), standing.get("missing", ())
    if code == "barrier_timeout":
        return BarrierTimeoutError(message, arrived, missing)
    if code in ("barrier_broken", "barrier_withdrawn"):
        return BrokenBarrierError(message, arrived, missing)
    return TaskError(message, code, problem.get("field", ""))


def describe(what: Union[BaseException, str]) -> Tuple[str, str, str]:
    """Return an error's kind, message and traceback."""
    if not isinstance(what, BaseException):
        return "", printable(what[:MAX_MESSAGE]), ""
    return type(what).__name__, printable(message_of(what)[:MAX_MESSAGE]), printable(traceback_of(what, what.__traceback__, MAX_TRACEBACK))


def message_of(e: Any) -> str:
    try:
        return str(e)
    except BaseException:  # anything: it is not the program's error
        return "the %s has no readable text" % ("error" if isinstance(e, BaseException) else type(e).__name__)


def traceback_of(e: BaseException, frames: Optional[TracebackType], most: int) -> str:
    """Return an error's traceback. Long messages do not displace its frames."""
    import traceback

    return _shorten("".join(_shorten(part, most // 8) for part in traceback.format_exception(type(e), e, frames)), most)


def _shorten(text: str, most: int) -> str:
    """Shorten the middle of a string that is too long."""
    if len(text) <= most:
        return text
    return "%s\n… %d characters are left out …\n%s" % (text[:most // 2 - 32], len(text) - most + 64, text[32 - most // 2:])


def printable(text: str) -> str:
    # A surrogate, for example from a file name, must not lose the report.
    return text.encode("utf-8", "replace").decode()


class RemoteTraceback(Exception):
    """A remote error's traceback, shown when the error is printed."""

    def __str__(self) -> str:
        return "\n" + str(self.args[0])


def exc_info(ex: Any) -> ExcInfo:
    """Return an exception's type, value and traceback; if ex is not an exception, use a new
    exception that reports this."""
    if isinstance(ex, BaseException):
        return type(ex), ex, ex.__traceback__
    if isinstance(ex, tuple) and len(ex) == 3 and isinstance(ex[1], BaseException):
        return ex[0], ex[1], ex[2]
    wrong = ValueError("ex must be a tuple or sys.exc_info must return the current exception: %s" % (ex,))
    return ValueError, wrong, None


def number(name: str, value: Any, want: str = "a number") -> float:
    """Return the value of a numeric argument of any type, such as NumPy's."""
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
    except (TypeError, ValueError):
        pass
    raise TypeError("%s is %r; want %s" % (name, value, want))


def seconds(name: str, value: Any) -> float:
    return number(name, value, "a number of seconds")
