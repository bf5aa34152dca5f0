import sys
import threading
import time
import types
import unittest
from unittest import mock

from clusterrun import _event
from clusterrun._event import Event


class Blocked(Exception):
    """A caller would wait now."""


class Lock:
    """A lock that raises Blocked where a caller would wait."""

    def __init__(self):
        self.held = False

    def acquire(self, timeout=None):
        if self.held:
            sys.settrace(None)  # nothing would have happened after this
            raise Blocked
        self.held = True
        return True

    def release(self):
        if not self.held:
            raise RuntimeError
        self.held = False


def interrupted(do, at, handler):
    """Call do, and handler before do's instruction number at, like a signal handler. Return
    whether do has more than at instructions, and whether it would have waited."""
    left = at

    def trace(frame, event, arg):
        nonlocal left
        if frame.f_code.co_filename != _event.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            if left == 0:
                sys.settrace(None)
                handler()
            left -= 1
        return trace

    sys.settrace(trace)
    try:
        do()
        blocked = False
    except Blocked:
        blocked = True
    finally:
        sys.settrace(None)
    return left < 0, blocked


class TestEvent(unittest.TestCase):
    def interrupt(self, do, check):
        """Set an event at each of do's instructions in turn."""
        at, done = 0, True
        with mock.patch.object(_event, "threading", types.SimpleNamespace(Lock=Lock)):
            while done:
                event = Event()
                done, blocked = interrupted(lambda: do(event), at, event.set)
                if done:
                    check(event, blocked, at)
                at += 1
        self.assertGreater(at, 10)

    def test_set_by_a_handler_within_wait(self):
        def check(event, blocked, at):
            self.assertFalse(blocked, "it waits for ever, set at instruction %d" % at)
            self.assertTrue(event.is_set())
            self.assertEqual(len(event._waiters), 0)

        self.interrupt(lambda event: event.wait(), check)

    def test_set_by_a_handler_within_set(self):
        def do(event):
            waiter = Lock()
            waiter.acquire()
            event._waiters.append(waiter)
            event.set()

        self.interrupt(do, lambda event, blocked, at: self.assertFalse(event._waiters[0].held, at))

    def test_as_that_of_threading(self):
        for make in (threading.Event, Event):
            event = make()
            self.assertFalse(event.is_set())
            self.assertFalse(event.wait(0))
            self.assertFalse(event.wait(0.001))
            self.assertFalse(event.wait(-1))
            event.set()
            event.set()
            self.assertTrue(event.is_set())
            self.assertTrue(event.wait())
            event.clear()
            self.assertFalse(event.is_set())
            self.assertFalse(event.wait(0))

    def test_all_are_woken(self):
        event = Event()
        told = []
        threads = [threading.Thread(target=lambda: told.append(event.wait(60))) for _ in range(8)]
        for thread in threads:
            thread.start()
        while len(event._waiters) < 8:
            time.sleep(0.001)
        event.set()
        event.clear()
        for thread in threads:
            thread.join(60)
        self.assertEqual(told, [True] * 8)
        self.assertEqual(len(event._waiters), 0)


if __name__ == "__main__":
    unittest.main()
