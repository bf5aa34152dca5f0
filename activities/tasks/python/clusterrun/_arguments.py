"""Encodes scheduled functions in the form that the queue accepts."""

from typing import Any, Dict, Mapping, Tuple

from ._json import encode_arguments, to_json
from ._values import RESOURCE
from .remote import PerWorkerDataset, PerWorkerValues, RemoteValue

_MAX_ARGUMENTS = 256 << 10  # bytes of JSON
_MAX_RESOURCES = 100


def arguments(name: str, args: Any, kwargs: Any) -> Tuple[str, Dict[int, bytes]]:
    """Return a function's arguments as members of an object, and the definitions of the
    per-worker resources among them, by ID."""
    if args is None:
        args = ()
    elif not isinstance(args, (tuple, list)):
        raise TypeError("args is %r; use a tuple of arguments, such as (%r,)" % (args, args))
    if kwargs is None:
        kwargs = {}
    elif not isinstance(kwargs, Mapping) or not all(isinstance(k, str) for k in kwargs):
        raise TypeError("kwargs is %r; use a dict of arguments by name" % (kwargs,))
    resources: Dict[int, bytes] = {}

    def special(value: Any) -> Any:
        if isinstance(value, PerWorkerValues):
            resources[value._id] = value._definition
            return {RESOURCE: value._id}
        if isinstance(value, RemoteValue):
            raise ValueError("a RemoteValue is not supported as an argument of a scheduled function; fetch it first")
        if isinstance(value, PerWorkerDataset):
            raise TypeError("a per-worker dataset cannot be an argument; pass its iterator: iter(dataset)")
        raise TypeError("%r is not JSON" % (value,))

    try:
        raw = ',"args":' + encode_arguments(args, special) if args else ""
        if kwargs:
            raw += ',"kwargs":' + encode_arguments(dict(kwargs), special)
    except RecursionError as e:
        raise ValueError("the arguments of %s are not JSON: %s" % (name, e)) from None
    except (TypeError, ValueError) as e:
        raise type(e)("the arguments of %s: %s" % (name, e)) from None
    if len(raw) > _MAX_ARGUMENTS:
        raise ValueError(
            "the arguments of %s have %d bytes of JSON; the limit is %d: put large data into files" % (name, len(raw), _MAX_ARGUMENTS)
        )
    if len(resources) > _MAX_RESOURCES or sum(map(len, resources.values())) > _MAX_ARGUMENTS:
        raise ValueError("the arguments of %s have too many resources: put several into one" % name)
    if resources:
        raw += ',"resources":' + to_json(list(resources))
    return raw, resources
