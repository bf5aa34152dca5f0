"""Stops a program's threads together."""

import contextlib
import threading
import time
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Tuple, Type, Union

from ._errors import ExcInfo, exc_info
from ._event import Event
from .stop import StopError, ask_to_stop, bounded, keep_watching, listen, stop_error


class Coordinator:
    """Stops a program's threads together; also works without clusterrun.

        coord = clusterrun.Coordinator()
        threads = [threading.Thread(target=work, args=(coord,)) for _ in range(4)]
        for t in threads:
            t.start()
        coord.join(threads)  # raises the exception that stopped them

        def work(coord):
            with coord.stop_on_exception():
                while not coord.should_stop():
                    ...

    The first thread that fails, or reaches the end of its input, stops the rest, and join
    raises the reason. Threads then have a grace of two minutes to exit; join names those that
    take longer.

    With run=True it is tied to all the run's tasks that use such a coordinator or
    clusterrun.should_stop. What stops the threads stops the run, and stopping the run, from any
    process, stops the threads. join raises the first exception anywhere, as a StopError if it
    comes from another process. request_stop and join return when the run has recorded the stop,
    which is final.

    It is tf.train.Coordinator, with the same arguments and messages. The differences are: join
    returns as soon as the last thread has exited, while the original checks once a second; it
    names threads in order of registration; and request_stop accepts any exception, not only the
    exception being handled.
    """

    __module__ = "clusterrun"

    def __init__(
        self,
        clean_stop_exception_types: Optional[Iterable[Type[BaseException]]] = None,
        *,
        run: bool = False,
    ) -> None:
        """Make a coordinator without a stop. With run it is tied to the run; this raises
        ValueError outside a task.

        An exception of one of the given types stops the threads like request_stop(None), and is
        not raised. By default the types are EOFError, StopIteration, and every class named
        OutOfRangeError, which TensorFlow raises at the end of an input. Given types replace
        these. Such a stop reaches the run without an exception; the run judges other exceptions
        by their kind.
        """
        self._clean_names: Tuple[str, ...] = ()
        if clean_stop_exception_types is None:
            clean_stop_exception_types = (EOFError, StopIteration)
            self._clean_names = ("OutOfRangeError",)
        self._clean_stop_exception_types = tuple(clean_stop_exception_types)
        # A signal handler may need the lock while its thread holds it.
        self._lock = threading.RLock()
        self._stop_event = Event()
        self._wakers: List[Event] = []  # one for each waiting join
        self._exc_info_to_raise: Optional[ExcInfo] = None
        self._joined = False
        self._registered_threads: Dict[threading.Thread, None] = {}  # in the order of registration
        self._run = run
        self._told: Optional[Event] = None  # set when this coordinator's stop has been passed on
        if run:
            self._hear(listen(self, Coordinator._hear, Coordinator._forked).said)

    def _is_clean(self, exception: BaseException) -> bool:
        if isinstance(exception, self._clean_stop_exception_types):
            return True
        return any(kind.__name__ in self._clean_names for kind in type(exception).__mro__)

    def request_stop(self, ex: Union[BaseException, ExcInfo, None] = None) -> None:
        """Ask all threads to stop, because of ex if it is given.

        ex is an exception, or a tuple of sys.exc_info(). The first request since the
        coordinator was created or cleared decides what join raises; a later exception is only
        logged. After join, when no caller would see it, an exception is raised immediately,
        unless it is a clean stop.
        """
        reported = info = None if ex is None else exc_info(ex)
        if info is not None and self._is_clean(info[1]):
            info = None
        told = None
        with self._lock:
            if self._joined and info is not None:
                raise info[1].with_traceback(info[2])
            first = not self._stop_event.is_set()
            if first:
                self._set_stop(info)
                if self._run:
                    told = self._told = Event()
        try:
            self._log_stop(ex, info, first)
        finally:
            if told is not None:
                self._tell(told, reported, info)

    def _set_stop(self, info: Optional[ExcInfo]) -> None:
        self._exc_info_to_raise = info
        self._stop_event.set()
        for waker in self._wakers:
            waker.set()

    def _log_stop(self, ex: Union[BaseException, ExcInfo, None], info: Optional[ExcInfo], first: bool) -> None:
        if info is None:
            return
        if not first:
            _log("Error reported to Coordinator after the stop; join does not raise it: %s", info[1], exc_info=info)
        elif isinstance(ex, tuple):
            _log("Error reported to Coordinator: %s", info[1], exc_info=info)
        else:
            _log("Error reported to Coordinator: %s, %s", info[0], info[1])

    def clear_stop(self) -> None:
        """Clear the stop, its exception, and the record of join's call. With run=True, raise
        RuntimeError if there is a stop, because the run's stop is final."""
        with self._lock:
            if self._run and self._stop_event.is_set():
                raise RuntimeError("the run's stop cannot be cleared")
            self._joined = False
            self._exc_info_to_raise = None
            self._stop_event.clear()

    def _tell(self, told: Event, reported: Optional[ExcInfo], info: Optional[ExcInfo]) -> None:
        """Forward a stop to the run. If that fails, join raises the failure."""
        ex = None if info is None else info[1]
        reason = None if reported is None or ex is not None else "%s: %s" % (type(reported[1]).__name__, reported[1])
        try:
            ask_to_stop(ex, reason)
        except Exception as e:
            _log("A stop of the Coordinator could not be passed on: %s", e)
            with self._lock:
                if self._exc_info_to_raise is None:
                    self._exc_info_to_raise = exc_info(e)
        finally:
            told.set()

    def _hear(self, said: Dict[str, Any]) -> None:
        """Handle a state from the run."""
        with self._lock:
            if said["stop"] and not self._stop_event.is_set():
                ex = stop_error(said)
                self._set_stop(None if ex is None else (StopError, ex, None))

    def _forked(self) -> None:
        self._lock = threading.RLock()

    def should_stop(self) -> bool:
        """Return whether a stop was requested."""
        if self._run:
            keep_watching()
        return self._stop_event.is_set()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """Turn every exception in the body into a stop request, including SystemExit and
        KeyboardInterrupt. The exception does not leave the body, except after join."""
        try:
            yield
        except BaseException as ex:
            self.request_stop((type(ex), ex, ex.__traceback__))

    def wait_for_stop(self, timeout: Optional[float] = None) -> bool:
        """Wait until a stop is requested, at most timeout seconds; return whether it was."""
        if self._run:
            keep_watching()
        return self._stop_event.wait(bounded(timeout))

    def register_thread(self, thread: threading.Thread) -> None:
        """Make join wait for the thread."""
        with self._lock:
            self._registered_threads[thread] = None

    def join(
        self,
        threads: Optional[Iterable[threading.Thread]] = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Wait until the registered and the given threads have exited.

        Without a stop it waits without limit. Once a stop is requested, the threads have the
        grace, counted from the stop or from this call, if later: 0 is a millisecond, and a
        negative value is no time.

        Then the stop's exception is raised, if any, and again by each later join; otherwise, if
        threads are still running, a RuntimeError that names them, registered ones first. With
        ignore_live_threads they are only logged.

        Afterwards no thread is registered. Join does not wait for threads registered while it
        was waiting.
        """
        if self._run:
            keep_watching()
        wake = Event()
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
        told = self._told
        if told is not None:
            told.wait()  # the caller may exit after join
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
        """Whether join has returned since the coordinator was created or cleared."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raise the exception that stopped the threads, if any."""
        with self._lock:
            info = self._exc_info_to_raise
        if info is not None:
            raise info[1].with_traceback(info[2])


def _await_end(threads: List[threading.Thread], wake: Event) -> None:
    """Wait until all threads have exited, or wake is set.

    Python can wait for only one thread or one event at a time, so another thread waits
    for the threads.
    """

    def watch() -> None:
        while _any_alive(threads):
            for t in threads:
                if t.is_alive():  # an unstarted thread cannot be joined
                    t.join()
        wake.set()

    if not _any_alive(threads):
        return
    try:
        threading.Thread(target=watch, name="clusterrun-join", daemon=True).start()
    except RuntimeError:  # an exiting interpreter cannot start threads
        while _any_alive(threads) and not wake.wait(0.05):
            pass
    else:
        wake.wait()


def _join_all(threads: List[threading.Thread], timeout: float) -> None:
    """Wait until all threads have exited, at most timeout seconds."""
    deadline = time.monotonic() + timeout
    for t in threads:
        if t is not threading.current_thread() and t.is_alive():
            t.join(bounded(max(deadline - time.monotonic(), 0)))


def _any_alive(threads: List[threading.Thread]) -> bool:
    return any(t.is_alive() for t in threads)


def _log(text: str, *args: Any, exc_info: Optional[ExcInfo] = None) -> None:
    import logging  # imported late: most programs never log

    logging.getLogger("clusterrun").info(text, *args, exc_info=exc_info)
