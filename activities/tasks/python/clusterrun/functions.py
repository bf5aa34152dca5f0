"""The functions that a program offers."""

import functools
from typing import Any, Callable, Dict, Optional, Tuple

from ._errors import OwnError
from ._http import MAX_NAME

functions: Dict[str, Callable[..., Any]] = {}


def function(fn: Any = None, *, name: Optional[str] = None) -> Any:
    """A decorator that registers a function for serve. Its name is the function's name,
    or the given name: @clusterrun.function(name="train")."""
    if fn is None:
        return functools.partial(function, name=name)
    if isinstance(fn, str):
        raise TypeError("write @clusterrun.function(name=%r)" % fn)
    if not callable(fn):
        raise TypeError("only a function can be registered, not %r" % (fn,))
    known = str(name or getattr(fn, "__name__", ""))
    _check(known)
    code = getattr(fn, "__code__", None)
    if code is not None and code.co_flags & 0x80:  # inspect.CO_COROUTINE
        raise TypeError("%s is a coroutine function: register one that calls asyncio.run" % known)
    old = functions.get(known)
    if old is not None and _origin(old) != _origin(fn):
        raise ValueError("function %r is already registered" % known)
    functions[known] = fn
    return fn


def _check(name: str) -> None:
    if not 0 < len(name.encode("utf-8", "replace")) <= MAX_NAME or not name.isprintable():
        raise ValueError("%r is not a name for a function: want 1 to %d printable bytes" % (name, MAX_NAME))


def _origin(fn: Any) -> Tuple[Any, Any]:
    """Return a function's origin, which survives a reload of its module."""
    return getattr(fn, "__module__", None), getattr(fn, "__qualname__", id(fn))


def name_of(fn: Any) -> str:
    """Return a function's registered name."""
    if isinstance(fn, str) and fn in functions:
        return fn
    for name, known in functions.items():
        if known is fn:
            return name
    raise TypeError("only registered functions are accepted: decorate %r with @clusterrun.function" % (fn,))


def name_to_schedule(fn: Any) -> str:
    """Return a function's name. A name may be registered only in other tasks."""
    if isinstance(fn, str):
        _check(fn)
        return fn
    name = getattr(fn, "__name__", None)
    if isinstance(name, str) and functions.get(name) is fn:
        return name
    return name_of(fn)


def unknown_function(name: str) -> OwnError:
    return OwnError("UnknownFunctionError", "function %r is not registered here; registered are %s" % (name, ", ".join(sorted(functions))))
