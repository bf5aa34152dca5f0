"""What the host understands and answers: HTTP/1.1, without the sockets it goes through."""

from typing import NamedTuple, Optional, Union

from ._errors import TaskError

MAX_NAME = 200  # bytes, of a barrier, a function or a key
FIRST_RETRY, LAST_RETRY = 0.005, 0.2  # seconds after which a request is sent again
FOREVER = float("inf")
MAX_WAIT = 20  # seconds for which a request of closures may wait


class Answer(NamedTuple):
    """An answer of the host. keep says that its connection can be used again."""

    status: int
    body: bytes
    keep: bool


class NotUnderstoodError(TaskError):
    """The answer is not of the host's own making: the request is none that it understands."""

    def __init__(self, status: int) -> None:
        super().__init__("the request is none the host understands (status %d)" % status)


def head(method: str, path: str) -> bytes:
    """The beginning of a request, up to the length of its body."""
    return ("%s %s HTTP/1.1\r\nHost: task\r\nContent-Length: " % (method, path)).encode()


def request(head: bytes, body: bytes) -> bytes:
    """A request with its body."""
    return b"%s%d\r\n\r\n%s" % (head, len(body), body)


def parse(data: Union[bytes, bytearray]) -> Optional[Answer]:
    """The answer that data begins with. None: there is more to come."""
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return None
    first, *lines = bytes(data[:end]).lower().split(b"\r\n")
    status, length, keep = int(first.split(b" ", 2)[1]), -1, True
    for line in lines:
        name, _, value = line.partition(b":")
        if name == b"content-length":
            length = int(value)
        elif name == b"connection" and value.strip() == b"close":
            keep = False
    if length < 0:
        raise NotUnderstoodError(status)
    start = end + 4
    return Answer(status, bytes(data[start:start + length]), keep) if len(data) >= start + length else None
