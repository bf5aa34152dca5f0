"""The sockets that connect a task to its host."""

import contextlib
import itertools
import json
import os
import socket
import time
from typing import Any, Callable, Dict, List, Optional

from ._errors import TaskError, refusal
from ._http import FIRST_RETRY, FOREVER, LAST_RETRY, Answer, NotUnderstoodError, head, parse, request
from ._json import loads

_NOT_A_TASK = (
    "barrier is not defined. It is likely because you are calling get_barrier() in the "
    "main process. get_barrier() can only be called in the subprocesses. "
    "(CLUSTERRUN_SOCKET is not set: clusterrun did not start this process.)"
)
PATIENCE = 60.0  # seconds to wait for an absent host


class Away(Exception):
    """The host did not answer in time."""


def body_of(answer: Answer) -> bytes:
    """Return an answer's body, or raise the error if the host refuses the request."""
    if answer.status == 200:
        return answer.body
    raise refusal(answer.status, json.loads(answer.body.decode()).get("error", {}))


class Host:
    """The task's host. Each request has its own connection, which is kept for the next one."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.idle: List[socket.socket] = []
        self.key = "%x.%s." % (os.getpid(), os.urandom(8).hex())
        # Locks are not used, because a signal handler may make a request while its thread holds
        # one.
        self.keys = itertools.count(1)
        self.progress_sent = -1.0

    def new_key(self) -> str:
        return self.key + str(next(self.keys))

    def call(self, method: str, path: str, raw: bytes, patience: float) -> Dict[str, Any]:
        return self.exchange(head(method, path), lambda: raw, time.monotonic() + patience)

    def exchange(self, head: bytes, body: Callable[[], bytes], deadline: Optional[float]) -> Dict[str, Any]:
        """Send a request until it is answered; Away on timeout."""
        delay = FIRST_RETRY
        while True:
            reused = False
            raw = body()
            try:
                try:
                    connection, reused = self.idle.pop(), True
                except IndexError:
                    connection = self.connect(deadline)
                try:
                    answer = exchange(connection, request(head, raw), deadline)
                except BaseException:  # including KeyboardInterrupt, which withdraws an arrival
                    close(connection)
                    raise
            except socket.timeout:
                raise Away("it did not answer in time") from None
            except (ConnectionError, FileNotFoundError, BlockingIOError) as e:
                # The host worker is restarting or busy.
                if reused:
                    continue
                if deadline is not None and time.monotonic() + delay >= deadline:
                    raise Away(str(e)) from None
                time.sleep(delay)
                delay = min(2 * delay, LAST_RETRY)
                continue
            except OSError:
                if reused:  # the program has closed all descriptors, including ours
                    continue
                raise
            if answer.keep and len(self.idle) < 4:
                self.idle.append(connection)
            else:
                close(connection)
            said: Dict[str, Any] = loads(body_of(answer))
            return said

    def connect(self, deadline: Optional[float]) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            set_timeout(connection, deadline)
            connection.connect(self.path)
        except BaseException:
            close(connection)
            raise
        return connection


def close(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the program closed its descriptor
        connection.close()


def set_timeout(connection: socket.socket, deadline: Optional[float]) -> None:
    # Setting it is a system call, and so is each wait that uses one.
    if deadline is not None:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
    elif connection.gettimeout() is not None:
        connection.settimeout(None)


def exchange(connection: socket.socket, raw: bytes, deadline: Optional[float]) -> Answer:
    """Send a request and return its answer."""
    set_timeout(connection, deadline)
    sent = True
    try:
        connection.sendall(raw)
    except (BrokenPipeError, ConnectionResetError):
        sent = False  # the host may have refused the request before reading it
    data = bytearray()
    while True:
        if deadline is not None:
            set_timeout(connection, deadline)
        received = connection.recv(65536)
        if not received:
            raise ConnectionResetError("the host closed the connection")
        data += received
        try:
            answer = parse(data)
        except NotUnderstoodError as e:
            raise ConnectionResetError(str(e)) from None
        if answer is not None:
            return answer._replace(keep=answer.keep and sent)


_host: Optional[Host] = None


def find_host() -> Optional[Host]:
    """Return the host, or None outside a task."""
    global _host
    path = os.environ.get("CLUSTERRUN_SOCKET", "")
    if path and (_host is None or _host.path != path):
        _host = Host(path)
    return _host if path else None


def get_host() -> Host:
    """Return the host. Raise ValueError outside a task."""
    host = find_host()
    if host is None:
        raise ValueError(_NOT_A_TASK)
    return host


def in_forked_children(call: Callable[[], None]) -> Callable[[], None]:
    """A decorator for a function that forked children must call first."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)
    return call


@in_forked_children
def _forget_host() -> None:
    global _host
    _host = None  # its connections belong to the parent


def ask(method: str, path: str, body: str = "", patience: float = PATIENCE) -> Dict[str, Any]:
    host = get_host()
    try:
        return host.call(method, path, body.encode(), patience)
    except Away as e:
        raise TaskError("the host does not answer: %s" % e, "away") from None
