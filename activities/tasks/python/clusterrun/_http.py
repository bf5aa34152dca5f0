"""HTTP/1.1 as the host uses it, without the sockets."""

from typing import NamedTuple, Optional, Union

from ._errors import TaskError

MAX_NAME = 200  # bytes, of a barrier or a function
FIRST_RETRY, LAST_RETRY = 0.005, 0.2  # seconds between retries of a request
FOREVER = float("inf")
MAX_WAIT = 20  # seconds that a request for closures may wait
COORDINATOR = "/v1/coordinator"  # the path of coordinators


class Answer(NamedTuple):
    """The host's answer. keep reports whether its connection can be reused, and size is its
    number of bytes."""

    status: int
    body: bytes
    keep: bool
    size: int


class NotUnderstoodError(TaskError):
    """The answer is not from the API: the host does not understand the request."""

    def __init__(self, status: int) -> None:
        super().__init__("the host could not parse the request (status %d)" % status)


def head(method: str, path: str) -> bytes:
    """Return the start of a request, up to its body's length."""
    return ("%s %s HTTP/1.1\r\nHost: task\r\nContent-Length: " % (method, path)).encode()


def request(head: bytes, body: bytes) -> bytes:
    """Return a request with its body."""
    return b"%s%d\r\n\r\n%s" % (head, len(body), body)


def parse(data: Union[bytes, bytearray]) -> Optional[Answer]:
    """Return the answer at the start of data, or None if it is incomplete."""
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
    size = start + length
    return Answer(status, bytes(data[start:size]), keep, size) if len(data) >= size else None
