"""Tests of the conversion of values to JSON and back."""

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import unittest

import clusterrun
from clusterrun._json import encode, encode_arguments
from clusterrun._values import value_outcome


@dataclasses.dataclass
class Best:
    loss: float
    at: datetime.date
    kind = "not a field"


class Scalar:
    """A scalar like numpy's."""

    def __init__(self, value):
        self.value = value

    def tolist(self):
        return self.value


class Endless:
    def tolist(self):
        return self


class Unreadable:
    def __repr__(self):
        raise RuntimeError("no text")


class Color(enum.Enum):
    RED = 1


class Pretends:
    __class__ = str

    def __repr__(self):
        return "pretends"


class JSONTest(unittest.TestCase):
    def replaced(self, value, **options):
        """Return what is stored for a value, and its warning."""
        with self.assertLogs("clusterrun", "WARNING") as logs:
            raw = encode(value, "the result", **options)
        self.assertEqual(1, len(logs.output))
        return json.loads(raw.decode()), logs.records[0].getMessage()

    def kept(self, value, **options):
        """Return what is stored for a value without any loss."""
        with self.assertRaises(AssertionError):  # assertNoLogs is newer
            with self.assertLogs("clusterrun"):
                raw = encode(value, "the result", **options)
        return json.loads(raw.decode())

    def test_values_that_json_has_words_for(self):
        for value in (None, 7, 1.5, "ü", [1, [True]], {"a": {}}, "", -0.0, 10**300):
            self.assertEqual(self.kept(value), value)
        self.assertEqual(self.kept((1, (2,))), [1, [2]])
        self.assertEqual(self.kept({1: 2, None: 3, True: 4, 1.5: 5}), {"1": 4, "null": 3, "1.5": 5})

    def test_numbers_and_bytes_come_back(self):
        value = {"loss": float("nan"), "most": [float("inf"), -math.inf, 1.0], "raw": b"\0\xff", "empty": bytearray()}
        self.assertEqual(self.kept(value), {
            "loss": {"$clusterrun.number": "NaN"}, "raw": {"$clusterrun.bytes": "AP8="}, "empty": {"$clusterrun.bytes": ""},
            "most": [{"$clusterrun.number": "Infinity"}, {"$clusterrun.number": "-Infinity"}, 1.0],
        })
        back = clusterrun.loads(encode(value, ""))
        self.assertTrue(math.isnan(back.pop("loss")))
        self.assertEqual(back, {"most": [math.inf, -math.inf, 1.0], "raw": b"\0\xff", "empty": b""})

    def test_other_objects_stay_as_they_are(self):
        for text in (
            '{"$clusterrun.number": "seven"}', '{"$clusterrun.number": 7}', '{"$clusterrun.bytes": "?"}', '{"$clusterrun.other": 1}',
            '{"$clusterrun.number": "NaN", "more": 1}', '{"$clusterrun.tuple": 1}', '{"$clusterrun.resource": 1}',
        ):
            self.assertEqual(clusterrun.loads(text), json.loads(text))

    def test_scalars_arrays_sets_and_dataclasses(self):
        value = {"a": Scalar(1.5), "b": Scalar([1, [2]]), "c": {3}}
        self.assertEqual(self.kept(value), {"a": 1.5, "b": [1, [2]], "c": [3]})
        self.assertEqual(self.kept(Scalar(float("nan"))), {"$clusterrun.number": "NaN"})
        self.assertEqual(self.kept(collections.UserDict(a=collections.UserDict(b=1))), {"a": {"b": 1}})
        value, warning = self.replaced([Best(0.5, datetime.date(2024, 2, 29))])
        self.assertEqual(value, [{"loss": 0.5, "at": "2024-02-29"}])
        self.assertIn("the result: [0].at is a date; JSON cannot represent it, so it is stored as text", warning)

    def test_what_is_kept_as_text(self):
        for value, text, said in (
            (datetime.datetime(2024, 2, 29, 1, 2, 3), "2024-02-29T01:02:03", "datetime"),
            (pathlib.PurePosixPath("/x/y"), "/x/y", "PurePosixPath"),
            (decimal.Decimal("0.1"), "0.1", "Decimal"), (1 + 2j, "(1+2j)", "complex"), (Color.RED, "Color.RED", "Color"),
            (int, "<class 'int'>", "type"), (Unreadable(), "<Unreadable that has no readable text>", "Unreadable"),
            (Pretends(), "<Pretends that JSON has no word for>", "Pretends"),
        ):
            with self.subTest(said):
                got, warning = self.replaced(value)
                self.assertEqual(got, text)
                self.assertIn("it is a " + said, warning)
        got, warning = self.replaced(Endless())
        self.assertTrue(got.startswith("<"), got)
        self.assertEqual(self.replaced({(1, 2): {"x": None}})[0], {"(1, 2)": {"x": None}})
        self.assertEqual(self.replaced({b"a": 1, "b'a'": 2})[0], {"b'a'": 1, "b'a''": 2})
        got, warning = self.replaced([object()] * 7)
        self.assertEqual(len(got), 7)
        self.assertIn("[4] is a object and 2 more; JSON", warning)

    def test_circles_and_depth(self):
        circle = {"name": "a", "next": []}
        circle["next"].append(circle)
        got, warning = self.replaced(circle)
        self.assertEqual(got, {"name": "a", "next": ["<dict that contains itself>"]})
        self.assertIn("next[0] is a dict that contains itself", warning)
        shared = [float("nan")]
        self.assertEqual(self.kept([shared, shared]), [[{"$clusterrun.number": "NaN"}]] * 2)
        for more in (None, float("nan")):
            deep = [more]
            for _ in range(100_000):
                deep = [deep]
            got, warning = self.replaced(deep)
            depth = 0
            while isinstance(got, list):
                got, depth = got[0], depth + 1
            self.assertEqual(got, "<list that is nested too deep>")
            self.assertTrue(100 < depth <= 490, depth)
            while deep:  # its parts are separate
                deep = deep.pop() if isinstance(deep, list) else None

    def test_texts_and_large_numbers(self):
        self.assertEqual(self.kept({"\udcff": "\udc80", "nan": float("nan")})["\udcff"], "\udc80")
        huge = 10 ** 5000
        try:
            str(huge)
        except ValueError:  # newer interpreters
            got, warning = self.replaced({"n": huge})
            self.assertIn("n is a int", warning)
        else:
            self.assertEqual(self.kept({"n": huge}), {"n": huge})

    def test_tuples_of_closures(self):
        value = {"a": (1, (float("nan"),)), "b": {frozenset({2})}}
        back = clusterrun.loads(b'{"id":1%s}' % value_outcome("f", value))["value"]
        self.assertEqual((back["a"][0], type(back["a"][1]), back["b"]), (1, tuple, [[2]]))
        self.assertTrue(math.isnan(back["a"][1][0]))

    def test_arguments_are_refused_instead(self):
        def special(value):
            if isinstance(value, Unreadable):
                return 7
            raise TypeError("%s is not JSON" % type(value).__name__)

        value = [float("inf"), b"x", {"a": (1, Unreadable(), Scalar(2))}]
        self.assertEqual(
            encode_arguments(value, special),
            '[{"$clusterrun.number":"Infinity"},{"$clusterrun.bytes":"eA=="},{"a":[1,7,2]}]')
        circle = []
        circle.append(circle)
        for bad in ({1, 2}, object(), [Scalar([1])], Best(1, datetime.date.min), {"d": datetime.date.min}, circle):
            with self.assertRaisesRegex(TypeError, "is not JSON"):
                encode_arguments(bad, special)


if __name__ == "__main__":
    unittest.main()
