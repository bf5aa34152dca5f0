"""A thread's connection to the host."""

import contextlib
import math
import os
import select
import socket
import time
from typing import Optional

from ._errors import TaskError
from ._http import FIRST_RETRY, FOREVER, LAST_RETRY, Answer, head, parse, request
from ._transport import body_of

_AWAY = (ConnectionError, FileNotFoundError, BlockingIOError, socket.timeout)  # the host worker is restarting


class Line:
    """A connection for one thread, which reopens it when the host worker restarts. Other threads
    can wake that thread."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.connection: Optional[socket.socket] = None
        self.delay = FIRST_RETRY
        self.awake, self.waker = os.pipe()
        os.set_blocking(self.waker, False)

    def wake(self) -> None:
        with contextlib.suppress(OSError):  # it is about to wake up, or has ended
            os.write(self.waker, b"\0")

    def forget(self) -> None:
        """Forget being woken, before a request is composed."""
        poll = select.poll()
        poll.register(self.awake, select.POLLIN)
        if poll.poll(0):
            os.read(self.awake, 4096)

    def ask(self, path: str, raw: bytes, end: float = FOREVER) -> Optional[bytes]:
        """Send a request. Return None if there is no answer before a time, before the thread is
        woken, or because the host is away."""
        reused = self.connection is not None
        try:
            answer = self.exchange(request(head("POST", path), raw), end)
            body = None if answer is None else body_of(answer)
            if answer is None or not answer.keep:
                self.hang_up()
        except (OSError, TaskError) as e:
            self.hang_up()
            away = e.code == "closures_away" if isinstance(e, TaskError) else isinstance(e, _AWAY)
            if not away:
                raise e if isinstance(e, TaskError) else TaskError("cannot ask the host: %s" % e, "away")
            if not reused:
                self.wait(None, time.monotonic() + self.delay)
                self.delay = min(2 * self.delay, LAST_RETRY)
            return None
        self.delay = FIRST_RETRY
        return body

    def exchange(self, raw: bytes, end: float) -> Optional[Answer]:
        if self.connection is None:
            self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.connection.settimeout(30)
            self.connection.connect(self.path)
        self.connection.sendall(raw)
        data = bytearray()
        while self.wait(self.connection, end):
            received = self.connection.recv(1 << 18)
            if not received:
                raise ConnectionResetError("the host closed the connection")
            data += received
            answer = parse(data)
            if answer is not None:
                return answer
        return None

    def wait(self, connection: Optional[socket.socket], end: float) -> bool:
        """Wait until the connection is readable. Return False if the thread is woken or time is
        up."""
        poll = select.poll()
        poll.register(self.awake, select.POLLIN)
        if connection is not None:
            poll.register(connection, select.POLLIN)
        left = end - time.monotonic()
        ready = poll.poll(None if left == FOREVER else max(0, math.ceil(left * 1000)))
        return any(fd != self.awake for fd, _ in ready)

    def hang_up(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            with contextlib.suppress(OSError):  # the program closed its descriptor
                connection.close()

    def close(self) -> None:
        """Close the descriptors once, because their numbers may later belong to other files."""
        self.hang_up()
        for fd in {self.awake, self.waker} - {-1}:
            os.close(fd)
        self.awake = self.waker = -1
