"""Tests of the exceptions that a function's errors raise in its caller."""

import copy
import json
import pickle
import unittest
from unittest import mock

import clusterrun
from clusterrun._errors import OwnError, describe, number, seconds
from clusterrun._values import failure_outcome
from clusterrun.remote import closure_error
from clusterrun.stop import bounded


def happened(e, kind=None):
    """Return what is raised for a function's exception."""
    try:
        raise e
    except BaseException as raised:
        said = json.loads(b'{"id":1%s}' % failure_outcome(raised))["error"]
    return closure_error(dict(said, closure=7, task="worker-0"))


def copies(e):
    pickled = [pickle.loads(pickle.dumps(e, protocol)) for protocol in range(3, pickle.HIGHEST_PROTOCOL + 1)]
    return [*pickled, copy.copy(e), copy.deepcopy(e)]


class Own(ValueError):
    pass


class Arguments(unittest.TestCase):
    def test_what_is_no_number(self):
        for call, said in (
            (lambda: number("current", "a"), "current is 'a'; want a number"),
            (lambda: seconds("timeout", "1"), "timeout is '1'; want a number of seconds"),
            (lambda: seconds("timeout", [1]), "timeout is [1]; want a number of seconds"),
            (lambda: bounded("1"), "timeout is '1'; want a number of seconds"),
            (lambda: clusterrun.Pool(1).run(abs, 5), "args is 5; use a tuple of arguments, such as (5,)"),
            (lambda: clusterrun.Pool(1).run(abs, (), 5), "kwargs is 5; use a dict of arguments by name"),
        ):
            with mock.patch("clusterrun.pool.pool_function", return_value="abs_of"), self.assertRaises(TypeError) as raised:
                call()
            self.assertEqual(str(raised.exception), said)
        self.assertEqual(number("current", 10**400), float("inf"))


class Errors(unittest.TestCase):
    def test_errors_of_built_in_kinds(self):
        for e in (
            KeyError("no"), ValueError("v"), ValueError(), ZeroDivisionError("by zero"), StopIteration(3), AssertionError(),
            FileNotFoundError(2, "No such file", "/x"), TimeoutError("late"), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
        ):
            with self.subTest(repr(e)):
                raised = happened(e)
                for got in [raised] + copies(raised):
                    self.assertIsInstance(got, type(e))
                    self.assertIs(type(got), type(raised))
                    self.assertEqual(str(got), str(e))
                    self.assertEqual((got.closure, got.task, got.kind), (7, "worker-0", type(e).__name__))
                    self.assertIn("Traceback", str(got.__cause__))

    def test_errors_of_other_kinds(self):
        for e in (Own("own"), OwnError("QuarantinedError", "no more")):
            raised = happened(e)
            for got in [raised] + copies(raised):
                self.assertIs(type(got), clusterrun.ClosureError)
                self.assertEqual(str(got), str(raised))

    def test_other_errors_can_be_pickled(self):
        for e in (
            closure_error({"kind": "CancelledError", "message": "c"}), closure_error({"kind": "InputError", "message": "i"}),
            clusterrun.UnavailableError(task="ps-0"),
            clusterrun.TaskError("no", "over", "field"),
            clusterrun.StopError("s", "worker-0", "K"),
            clusterrun.BarrierTimeoutError("b", ["a"], ["m"]),
        ):
            for got in copies(e):
                self.assertIs(type(got), type(e))
                self.assertEqual(str(got), str(e))
                self.assertEqual(vars(got), vars(e))

    def test_long_words_leave_the_frames(self):
        def inner():
            raise ValueError("x" * 40000)

        def recurse(n):
            recurse(n - 1) if n else other(n)

        def other(n):
            recurse(n - 1) if n > 0 else inner()

        for call, has in ((inner, ["inner"]), (lambda: other(3), ["recurse", "other", "inner"])):
            try:
                call()
            except ValueError as e:
                raised = happened(e)
                _, message, stack = describe(e)
            self.assertEqual(len(message), 40000)
            for text in (raised.traceback, stack):
                self.assertTrue(text.startswith("Traceback"))
                self.assertTrue(text.rstrip().endswith("xxx"))
                for name in has:
                    self.assertIn("in %s" % name, text)
            self.assertLessEqual(len(raised.traceback), 16 << 10)


if __name__ == "__main__":
    unittest.main()
