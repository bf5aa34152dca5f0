"""Closure outcomes as JSON."""

import json
from typing import Any, Dict

from ._errors import CancelledError, OwnError, ResourceError, UnavailableError, message_of, traceback_of
from ._http import MAX_NAME
from ._json import encode, escape

_MAX_VALUE = 256 << 10  # bytes of JSON
_MAX_CLOSURE_ERROR, _MAX_CLOSURE_TRACEBACK = 8 << 10, 16 << 10
RESOURCE = "$clusterrun.resource"


def value_outcome(function: str, value: Any) -> bytes:
    """Return the outcome of a call that returned a value."""
    raw = escape(encode(value, "the value of " + function, tuples=True).decode()).encode()
    if len(raw) > _MAX_VALUE:
        raise OwnError(
            "ValueTooLargeError",
            "the value of %s has %d bytes of JSON; the limit is %d: write it to a file and return the file's path"
            % (function, len(raw), _MAX_VALUE),
        )
    return b',"value":' + raw


def failure_outcome(e: BaseException) -> bytes:
    """Return the outcome of a call that raised an exception."""
    kind, stack = "error", ""
    name = type(e).__name__
    message = message_of(e)
    if isinstance(e, OwnError):
        name = e.kind
    elif isinstance(e, ResourceError):
        kind, name = "input", "InputError"
        e = e.__cause__ or e
    elif isinstance(e, CancelledError):
        kind = "cancelled"
    elif isinstance(e, UnavailableError):
        kind = "unavailable"
    if not isinstance(e, OwnError):
        # This package's frames are omitted.
        frames = e.__traceback__
        while frames is not None and frames.tb_frame.f_globals.get("__package__") == __package__ and frames.tb_next is not None:
            frames = frames.tb_next
        stack = traceback_of(e, frames, _MAX_CLOSURE_TRACEBACK)
    task = getattr(e, "task", "") if kind == "unavailable" else ""
    return error_outcome(kind, name, message, stack, task)


def error_outcome(kind: str, name: str, message: str, stack: str, task: str = "") -> bytes:
    # Everything is limited because an oversized request would never be answered.
    said: Dict[str, Any] = {
        "kind": name[:MAX_NAME], "message": message[:_MAX_CLOSURE_ERROR], "traceback": stack, "task": str(task)[:MAX_NAME],
    }
    return b',"kind":"%s","error":%s' % (kind.encode(), json.dumps(said).encode())
