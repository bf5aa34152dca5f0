"""Closure outcomes as JSON."""

import json
from typing import Any, Dict, List, Optional

from ._errors import CancelledError, OwnError, ResourceError, UnavailableError, message_of, traceback_of
from ._http import MAX_NAME
from ._json import ATOMS, encode, to_json

_MAX_VALUE = 256 << 10  # bytes of JSON
_MAX_CLOSURE_ERROR, _MAX_CLOSURE_TRACEBACK, _MAX_ERROR_ARGS = 8 << 10, 16 << 10, 1 << 10
RESOURCE = "$clusterrun.resource"


def value_outcome(function: str, value: Any) -> bytes:
    """Return the outcome of a call that returned a value."""
    raw = encode(value, "the value of " + function, tuples=True)
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
    return error_outcome(kind, name, message, stack, task, _built_from(e) if kind == "error" else None)


def _built_from(e: BaseException) -> Optional[List[Any]]:
    """Return a built-in exception's arguments, so that it can be recreated elsewhere; None if
    they are too long or not JSON."""
    if type(e).__module__ != "builtins":
        return None
    args = list(e.args)
    if isinstance(e, OSError) and e.filename is not None:
        args += [e.filename] if e.filename2 is None else [e.filename, None, e.filename2]
    if not ATOMS.issuperset(map(type, args)):
        return None
    try:
        return args if len(to_json(args).encode()) <= _MAX_ERROR_ARGS else None
    except ValueError:  # NaN, or half a surrogate pair
        return None


def error_outcome(
    kind: str, name: str, message: str, stack: str, task: str = "", args: Optional[List[Any]] = None
) -> bytes:
    # Everything is limited because an oversized request would never be answered.
    said: Dict[str, Any] = {
        "kind": name[:MAX_NAME], "message": message[:_MAX_CLOSURE_ERROR], "traceback": stack, "task": str(task)[:MAX_NAME],
    }
    if args is not None:
        said["args"] = args
    return b',"kind":"%s","error":%s' % (kind.encode(), json.dumps(said).encode())
