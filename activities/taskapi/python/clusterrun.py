"""What a program that clusterrun runs can ask of it.

Importing this module inside a task makes the program answer when somebody asks
what it is doing: with `clusterrun stacks RUN`, or when the timeout of the run has
passed. The capture then has the Python stacks of all its threads, also while it is
stuck in native code or waits for a lock. Forked children answer for themselves.
Outside of a task the import does nothing.

Programs find the module with

    PYTHONPATH=$(clusterrun task python --dir) clusterrun run -n 4 -- python3 train.py

It needs Python 3.8 or later, and nothing else. No set-up in here ever fails: a
program that cannot answer runs as it would without this module.

How it works, for other languages: the environment names a signal and a file,

    CLUSTERRUN_STACK_SIGNAL   the number of the signal
    CLUSTERRUN_STACK_FILE     the file, to which a dot and the process ID are added

A process that has this file open for appending and handles the signal is sent
it, and is to append text to the file, promptly.
"""

import atexit
import contextlib
import os
import threading
import time
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Type, Union

__all__ = ["Coordinator", "Looper", "LooperThread", "disable_stacks", "enable_stacks"]


class _Registration:
    """The handler of this process. Its descriptor has to stay open as long as it
    is there, because it writes without asking the interpreter for anything."""

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
        """Close the descriptor, unless somebody else has and uses its number."""
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
    """Answer the signal with the stacks of all threads; False where that cannot be.

    Both are by default what the environment says. The import has done this
    already; it is needed again only after a process has closed all its descriptors.
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
    """Undo enable_stacks: the process is not asked any more."""
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
    """A child has the handler with its parent's file, and gets one of its own."""
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


enable_stacks()


# ---- Coordinator and Looper: the threads of a program stop together ----------------

_ExcInfo = Tuple[Type[BaseException], BaseException, Optional[TracebackType]]


class Coordinator:
    """Stops the threads of a program together; works without clusterrun, too.

        coord = clusterrun.Coordinator()
        threads = [threading.Thread(target=work, args=(coord,)) for _ in range(4)]
        for t in threads:
            t.start()
        coord.join(threads)  # raises the exception that stopped them

        def work(coord):
            with coord.stop_on_exception():
                while not coord.should_stop():
                    ...

    The first thread that fails, or finds the end of its input, stops the others, and
    whoever waits for them is told the reason. Threads may take a grace of two
    minutes to end after that; join names those that take longer.

    It is tf.train.Coordinator, with the same arguments and texts. What differs:
    join returns as soon as the last thread has ended, where the original looks once
    a second; it names threads in the order in which they were registered; and
    request_stop takes any exception, not only the one that is being handled.
    """

    def __init__(self, clean_stop_exception_types: Optional[Iterable[Type[BaseException]]] = None) -> None:
        """Make a coordinator that nobody has told to stop.

        An exception of one of the given types stops the threads as
        request_stop(None) does, and is not raised. Without types these are EOFError,
        StopIteration, and every class with the name OutOfRangeError, by which
        TensorFlow says that an input has ended. Types that are given replace them.
        """
        self._clean_names: Tuple[str, ...] = ()
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (EOFError, StopIteration)
            self._clean_names = ("OutOfRangeError",)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        # A handler of a signal may come here while its thread holds the lock.
        self._lock = threading.RLock()
        self._stop_event = threading.Event()
        self._wakers: List[threading.Event] = []  # of joins that wait
        self._exc_info_to_raise: Optional[_ExcInfo] = None
        self._joined = False
        self._registered_threads: Dict[threading.Thread, None] = {}  # in their order

    def _is_clean(self, exception: BaseException) -> bool:
        if isinstance(exception, self._clean_stop_exception_types):
            return True
        return any(kind.__name__ in self._clean_names for kind in type(exception).__mro__)

    def request_stop(self, ex: Union[None, BaseException, _ExcInfo] = None) -> None:
        """Ask all threads to stop, because of ex if it is given.

        ex is an exception, or a tuple of sys.exc_info(). The first request since the
        coordinator was made, or cleared, decides what join raises: an exception that
        comes with a later one is only logged. After join, where nobody would hear of
        it, an exception is raised here, unless it is a clean stop.
        """
        info = None if ex is None else _exc_info(ex)
        if info is not None and self._is_clean(info[1]):
            info = None
        with self._lock:
            if self._joined and info is not None:
                raise info[1].with_traceback(info[2])
            first = not self._stop_event.is_set()
            if first:
                self._exc_info_to_raise = info
                self._stop_event.set()
                for waker in self._wakers:
                    waker.set()
        if info is None:
            return
        if not first:
            _log("Error reported to Coordinator after the stop; join does not raise it: %s", info[1], exc_info=info)
        elif isinstance(ex, tuple):
            _log("Error reported to Coordinator: %s", info[1], exc_info=info)
        else:
            _log("Error reported to Coordinator: %s, %s", info[0], info[1])

    def clear_stop(self) -> None:
        """Forget the stop, its exception, and that join was called."""
        with self._lock:
            self._joined = False
            self._exc_info_to_raise = None
            self._stop_event.clear()

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Turn every exception of the body into a stop request, SystemExit and
        KeyboardInterrupt too. It does not leave the body, except after join."""
        try:
            yield
        except BaseException as ex:
            self.request_stop((type(ex), ex, ex.__traceback__))

    def wait_for_stop(self, timeout: Optional[float] = None) -> bool:
        """Wait until a stop is requested, for at most so many seconds; whether it was."""
        return self._stop_event.wait(_bounded(timeout))

    def register_thread(self, thread: threading.Thread) -> None:
        """Have join wait for the thread."""
        with self._lock:
            self._registered_threads[thread] = None

    def join(
        self,
        threads: Optional[Iterable[threading.Thread]] = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until the registered threads and those given have ended.

        Without a stop it waits without limit. Once a stop is requested they have the
        grace, counted from the stop, or from this call where that is later: 0 is a
        millisecond, and less is nothing.

        Then the exception of the stop is raised, if there is one, and by each later
        join again; otherwise, if threads are still running, a RuntimeError that
        names them, registered ones first. With ignore_live_threads it is logged only.

        No thread is registered afterwards; those that were registered while join
        was waiting are not waited for.
        """
        wake = threading.Event()
        with self._lock:
            together = dict(self._registered_threads)
            together.update(dict.fromkeys(threads or ()))
            self._wakers.append(wake)
            if self._stop_event.is_set():
                wake.set()
        waiting = list(together)
        try:
            if not wake.is_set():
                _await_end(waiting, wake)
        finally:
            with self._lock:
                self._wakers.remove(wake)
        if stop_grace_period_secs >= 0:
            _join_all(waiting, max(stop_grace_period_secs, 0.001))
        stragglers = [t.name for t in waiting if t.is_alive()]
        with self._lock:
            self._joined = True
            self._registered_threads = {}
        self.raise_requested_exception()
        if stragglers:
            text = "Coordinator stopped with threads still running: %s" % " ".join(stragglers)
            if not ignore_live_threads:
                raise RuntimeError(text)
            _log("%s", text)

    @property
    def joined(self) -> bool:
        """Whether join has been called since the coordinator was made, or cleared."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raise the exception that stopped the threads, if there is one."""
        with self._lock:
            info = self._exc_info_to_raise
        if info is not None:
            raise info[1].with_traceback(info[2])


class Looper(threading.Thread):
    """A thread that does something again and again until its coordinator stops.

    It calls target, or a subclass has a method run_loop. What it raises stops the
    coordinator. It is a daemon, registers itself, and still has to be started.
    LooperThread is another name for it.

    Calls come at fixed times counted from the first, however long one takes; those
    that were missed meanwhile are made up, back to back. Setting the clock of the
    machine changes nothing. Without an interval all calls are back to back.
    """

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
        """Called once, after the last call, unless one has failed."""

    def run_loop(self) -> None:
        """The call."""
        target, args, kwargs = self._call
        if target:
            target(*args, **kwargs)


LooperThread = Looper


def _exc_info(ex: Any) -> _ExcInfo:
    """What is known of an exception; that it is none is an exception, too."""
    if isinstance(ex, BaseException):
        return type(ex), ex, ex.__traceback__
    if isinstance(ex, tuple) and len(ex) == 3 and isinstance(ex[1], BaseException):
        return ex
    wrong = ValueError("ex must be a tuple or sys.exc_info must return the current exception: %s" % (ex,))
    return ValueError, wrong, None


def _await_end(threads: List[threading.Thread], wake: threading.Event) -> None:
    """Wait until all threads have ended, or somebody sets wake.

    Python can wait for one thread or for one event at a time; so another thread
    waits for the threads.
    """

    def watch() -> None:
        while _any_alive(threads):
            for t in threads:
                if t.is_alive():  # one that was not started yet cannot be joined
                    t.join()
        wake.set()

    if not _any_alive(threads):
        return
    try:
        threading.Thread(target=watch, name="clusterrun-join", daemon=True).start()
    except RuntimeError:  # while the interpreter ends it starts no thread
        while _any_alive(threads) and not wake.wait(0.05):
            pass
    else:
        wake.wait()


def _join_all(threads: List[threading.Thread], timeout: float) -> None:
    """Wait until all threads have ended, for at most so many seconds."""
    deadline = time.monotonic() + timeout
    for t in threads:
        if t is not threading.current_thread() and t.is_alive():
            t.join(_bounded(max(deadline - time.monotonic(), 0)))


def _any_alive(threads: List[threading.Thread]) -> bool:
    return any(t.is_alive() for t in threads)


def _bounded(timeout: Optional[float]) -> Optional[float]:
    return None if timeout is None else min(timeout, threading.TIMEOUT_MAX)


def _log(text: str, *args: Any, exc_info: Optional[_ExcInfo] = None) -> None:
    import logging  # most programs never get here, and all of them import this module

    logging.getLogger("clusterrun").info(text, *args, exc_info=exc_info)
