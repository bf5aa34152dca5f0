"""Python values as JSON, including those that JSON cannot express.

NaN and the infinities are {"$clusterrun.number": "NaN"}, "Infinity" or "-Infinity", and bytes
are {"$clusterrun.bytes": BASE64}. Both survive a round trip. Scalars and arrays of numpy and
the like are numbers and lists, sets are lists, and dataclasses are objects. Anything else is
stored as text, and a warning names its field.
"""

import base64
import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Set, Union

MAX_DEPTH = 490  # of lists and objects; hosts accept 500
_MAX_TEXT = 1000  # characters of a value stored as text
_MAX_NAMED = 5  # fields that a warning names
_PREFIX = "$clusterrun."
TUPLE, _NUMBER, _BYTES = _PREFIX + "tuple", _PREFIX + "number", _PREFIX + "bytes"
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
ATOMS = frozenset((str, int, float, bool, type(None)))
to_json = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode
_ascii = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


def encode(value: Any, what: str, tuples: bool = False) -> bytes:
    """Return the JSON of a program's value; what names the value in a warning. It always
    succeeds. With tuples, these differ from lists."""
    try:
        marked = mark_tuples(value)
        raw = marked if tuples else value
        text = to_json(raw)
    except Exception:  # whatever the methods of the values raise
        plain = _Plain(tuples)
        try:
            raw = plain.of(value, "", 0)
            text = to_json(raw)
        except Exception:  # such as those of a fake string
            raw = plain.text(value, "", "that JSON has no word for")
            text = to_json(raw)
        plain.warn(what)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a surrogate, for example from a file name
        return _ascii(raw).encode()


def encode_arguments(value: Any, special: Callable[[Any], Any]) -> str:
    """Return the JSON of arguments, without any lossy replacement: special returns the
    replacement for an unknown value, or raises TypeError."""
    try:
        text = _ascii(value)
    except (TypeError, ValueError):
        text = _ascii(_Plain(False, special).of(value, "", 0))
    return escape(text)


def escape(text: str) -> str:
    """Return JSON as the run's history stores it, because its size is limited."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, "\\u%04x" % ord(character))
    return text


def loads(raw: Union[bytes, str]) -> Any:
    """Parse clusterrun's JSON, such as a result printed by `clusterrun show --json` or stored
    in a value file: NaN, the infinities and bytes are restored."""
    text = raw.decode() if isinstance(raw, bytes) else raw
    return json.loads(text, object_hook=_original if _PREFIX in text else None)


def _original(value: Dict[str, Any]) -> Any:
    if len(value) != 1:
        return value
    (key, inner), = value.items()
    if key == TUPLE and isinstance(inner, list):
        return tuple(inner)
    if key == _NUMBER and isinstance(inner, str):
        return _NUMBERS.get(inner, value)
    if key == _BYTES and isinstance(inner, str):
        try:
            return base64.b64decode(inner, validate=True)
        except ValueError:
            pass
    return value


def _number(value: float) -> Any:
    if value != value:
        return {_NUMBER: "NaN"}
    if value in (_NUMBERS["Infinity"], _NUMBERS["-Infinity"]):
        return {_NUMBER: "Infinity" if value > 0 else "-Infinity"}
    return value


def mark_tuples(value: Any, depth: int = 0) -> Any:
    """Replace tuples with objects, which Python coordinators turn back into tuples, and others
    into lists. A value without tuples is returned unchanged."""
    if type(value) in ATOMS:
        return value
    if depth >= MAX_DEPTH:
        raise ValueError("it is nested too deeply")
    if isinstance(value, tuple):
        return {TUPLE: [mark_tuples(v, depth + 2) for v in value]}
    if isinstance(value, list):
        if ATOMS.issuperset(map(type, value)):
            return value
        elements = [mark_tuples(v, depth + 1) for v in value]
        return value if all(a is b for a, b in zip(elements, value)) else elements
    if isinstance(value, dict):
        if ATOMS.issuperset(map(type, value.values())):
            return value
        members = {k: mark_tuples(v, depth + 1) for k, v in value.items()}
        return value if all(a is b for a, b in zip(members.values(), value.values())) else members
    return value


class _Plain:
    """Replaces values that JSON cannot express, and remembers what is stored only as text,
    unless special returns a replacement."""

    def __init__(self, tuples: bool, special: Optional[Callable[[Any], Any]] = None) -> None:
        self.tuples = tuples
        self.special = special
        self.around: Set[int] = set()  # the IDs of a value's containers
        self.replaced: List[str] = []
        self.count = 0

    def of(self, value: Any, field: str, depth: int) -> Any:
        """Return a value that JSON can express. It takes one frame per level."""
        if isinstance(value, float):
            return _number(float(value))
        if value is None or isinstance(value, (str, bool)):
            return value
        if id(value) in self.around:
            return self.text(value, field, "that contains itself")
        if depth >= MAX_DEPTH:
            return self.text(value, field, "that is nested too deep")
        self.around.add(id(value))
        try:
            if isinstance(value, int):
                str(int(value))  # which rejects thousands of digits
                return int(value)
            if isinstance(value, (bytes, bytearray, memoryview)):
                return {_BYTES: base64.b64encode(value).decode()}
            if isinstance(value, (list, tuple)) or self.special is None and isinstance(value, (set, frozenset)):
                mark = self.tuples and isinstance(value, tuple)
                elements = []
                for i, v in enumerate(value):
                    elements.append(self.of(v, "%s[%d]" % (field, i), depth + 1 + mark))
                return {TUPLE: elements} if mark else elements
            members: Dict[str, Any] = {}
            if isinstance(value, dict) or self.special is None and isinstance(value, Mapping):
                for k, v in value.items():
                    name = self.key(k, field, members)
                    members[name] = self.of(v, _inside(field, name), depth + 1)
                return members
            kind = type(value)
            if self.special is None and hasattr(kind, "__dataclass_fields__"):
                import dataclasses

                for known in dataclasses.fields(value):
                    members[known.name] = self.of(getattr(value, known.name), _inside(field, known.name), depth + 1)
                return members
            if callable(getattr(kind, "tolist", None)):  # numpy, torch, jax
                simple = value.tolist()
                if type(simple) is not kind and (self.special is None or not isinstance(simple, list)):
                    return self.of(simple, field, depth)
        except Exception:  # from a method of the value, or the stack is full
            if self.special is not None:
                raise
        finally:
            self.around.discard(id(value))
        return self.text(value, field, "")

    def key(self, key: Any, field: str, others: Mapping[str, Any]) -> str:
        """Return a member's name, like Python's json module if possible."""
        if isinstance(key, str):
            name = str.__str__(key)
        elif key is None or isinstance(key, (bool, int)):
            name = json.dumps(key)
        else:
            name = _text_of(key)
            if not isinstance(key, float):
                self.note(_inside(field, name), key, " as a key")
        while name in others:
            name += "'"
        return name

    def text(self, value: Any, field: str, why: str) -> Any:
        if self.special is not None:
            return self.special(value)
        self.note(field or "it", value, " " + why if why else "")
        return "<%s %s>" % (type(value).__name__, why) if why else _text_of(value)

    def note(self, field: str, value: Any, why: str) -> None:
        self.count += 1
        if self.count <= _MAX_NAMED:
            self.replaced.append("%s is a %s%s" % (field[:200], type(value).__name__, why))

    def warn(self, what: str) -> None:
        if not self.count:
            return
        import logging

        more = " and %d more" % (self.count - _MAX_NAMED) if self.count > _MAX_NAMED else ""
        message = "clusterrun: %s: %s%s; JSON cannot represent it, so it is stored as text" % (what, ", ".join(self.replaced), more)
        logging.getLogger("clusterrun").warning("%s", message.encode("utf-8", "replace").decode())


def _inside(field: str, name: str) -> str:
    return "%s.%s" % (field, name) if field else name


def _text_of(value: Any) -> str:
    try:
        form = getattr(value, "isoformat", None)
        text = str(form() if callable(form) else value)
    except Exception:
        return "<%s that has no readable text>" % type(value).__name__
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT] + "…"
