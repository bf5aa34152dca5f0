"""Tests of Coordinator and Looper, named by the numbers of the checked behaviours.

Run them with `python3 -m unittest discover tests` in the parent directory; `go test` there runs
them with every interpreter it finds.
"""

import inspect
import logging
import sys
import threading
import time
import traceback
import unittest
from unittest import mock

import clusterrun
from clusterrun import Coordinator, Looper, LooperThread

# How long a test waits for an event that must happen, in seconds.
PATIENCE = 60


class OutOfRangeError(Exception):
    """The end of an input, under TensorFlow's name."""


class DerivedOutOfRangeError(OutOfRangeError):
    pass


class Case(unittest.TestCase):
    def setUp(self):
        self._release = threading.Event()
        logging.getLogger("clusterrun").addHandler(logging.NullHandler())

    def tearDown(self):
        self._release.set()  # before the clean-ups wait for the threads

    def thread(self, run, name=None):
        t = threading.Thread(target=run, name=name, daemon=True)
        t.start()
        self.addCleanup(t.join, PATIENCE)
        return t

    def stuck(self, name=None):
        """Return a thread that exits with the test."""
        return self.thread(self._release.wait, name)

    def reporting(self, coord, ex, tuples=False):
        """Return a thread that raises ex and reports it."""

        def run():
            try:
                raise ex
            except Exception as e:
                coord.request_stop(sys.exc_info() if tuples else e)

        return self.thread(run)

    def raised(self, call):
        """Return the functions in the first error's traceback. call raises it."""
        try:
            call()
        except RuntimeError as ex:
            self.assertEqual("First", str(ex))
            return [frame.name for frame in traceback.extract_tb(ex.__traceback__)]
        return self.fail("nothing was raised")

    def one_after_the_other(self, report):
        """Return two threads. The second one reports after the first."""
        first_done = threading.Event()

        def first():
            report(RuntimeError("First"))
            first_done.set()

        def second():
            first_done.wait(PATIENCE)
            report(RuntimeError("Too late"))

        return [self.thread(second), self.thread(first)]


class StopTest(Case):
    def test_stop_api(self):
        coord = Coordinator()
        self.assertFalse(coord.should_stop())
        self.assertFalse(coord.wait_for_stop(0.01))
        coord.request_stop()
        self.assertTrue(coord.should_stop())
        self.assertTrue(coord.wait_for_stop(0.01))
        self.assertTrue(coord.wait_for_stop())

    def test_stop_async(self):
        coord = Coordinator()
        ask = threading.Event()
        self.thread(lambda: ask.wait(PATIENCE) and coord.request_stop())
        self.assertFalse(coord.should_stop())
        self.assertFalse(coord.wait_for_stop(0.1))
        self.assertFalse(coord.wait_for_stop(0.01))
        ask.set()
        self.assertTrue(coord.wait_for_stop(PATIENCE))
        self.assertTrue(coord.should_stop())

    def test_wait_for_stop_takes_any_timeout(self):
        coord = Coordinator()
        self.assertFalse(coord.wait_for_stop(-1))
        self.thread(coord.request_stop)
        self.assertTrue(coord.wait_for_stop(float("inf")))

    def test_the_end_of_input_is_a_clean_stop(self):
        """By default, only the end of the input is a clean stop."""
        for ex in (EOFError(), StopIteration(), OutOfRangeError("end"), DerivedOutOfRangeError("end")):
            for tuples in (False, True):
                with self.subTest(ex=ex, tuples=tuples):
                    coord = Coordinator()
                    coord.join([self.reporting(coord, ex, tuples)])
                    self.assertTrue(coord.should_stop())
                    coord.raise_requested_exception()
        coord = Coordinator()
        with self.assertRaises(KeyError):
            coord.join([self.reporting(coord, KeyError("key"))])

    def test_own_clean_stop_types(self):
        """The given types replace the default."""
        for types in ((ValueError,), [KeyError, ValueError]):
            coord = Coordinator(clean_stop_exception_types=types)
            coord.join([self.reporting(coord, UnicodeDecodeError("x", b"", 0, 1, "a kind of ValueError"))])
            self.assertTrue(coord.should_stop())
        for ex in (EOFError(), StopIteration(), OutOfRangeError("end")):
            for types in ((ValueError,), ()):
                coord = Coordinator(types)
                with self.assertRaises(type(ex)):
                    coord.join([self.reporting(coord, ex)])

    def test_an_error_after_a_plain_stop_is_lost(self):
        """The error is logged."""
        coord = Coordinator()
        coord.request_stop()
        with self.assertLogs("clusterrun", "INFO") as logs:
            coord.join([self.reporting(coord, RuntimeError("Too late"))])
        coord.raise_requested_exception()
        self.assertIn("Error reported to Coordinator after the stop; join does not raise it: Too late", logs.output[0])

    def test_what_is_logged(self):
        with self.assertLogs("clusterrun", "INFO") as logs:
            coord = Coordinator()
            self.reporting(coord, RuntimeError("First")).join(PATIENCE)
            coord = Coordinator()
            self.reporting(coord, RuntimeError("First"), tuples=True).join(PATIENCE)
        self.assertEqual(
            "INFO:clusterrun:Error reported to Coordinator: <class 'RuntimeError'>, First", logs.output[0]
        )
        self.assertIn("INFO:clusterrun:Error reported to Coordinator: First\nTraceback", logs.output[1])
        self.assertIn("in run", logs.output[1])

    def test_an_exception_that_nobody_handles(self):
        """D-17: the exception is recorded unchanged."""
        ex = RuntimeError("made here")
        for reported in (ex, (RuntimeError, ex, None)):
            coord = Coordinator()
            coord.request_stop(reported)
            self.assertTrue(coord.should_stop())
            with self.assertRaises(RuntimeError) as raised:
                coord.join()
            self.assertIs(ex, raised.exception)

    def test_what_is_no_exception(self):
        """D-17: join raises a ValueError about it, and all threads stop."""
        for wrong in ((None, None, None), (1, 2), "text", RuntimeError):
            coord = Coordinator()
            coord.request_stop(wrong)
            self.assertTrue(coord.should_stop())
            with self.assertRaises(ValueError) as raised:
                coord.join()
            self.assertEqual(
                "ex must be a tuple or sys.exc_info must return the current exception: %s" % (wrong,),
                str(raised.exception),
            )

    def test_clear_stop_clears_the_exception_too(self):
        """CO-13, SEED-65"""
        coord = Coordinator()
        with self.assertRaisesRegex(RuntimeError, "^First$"):
            coord.join([self.reporting(coord, RuntimeError("First"))])
        self.assertTrue(coord.joined)
        coord.clear_stop()
        self.assertFalse(coord.joined)
        self.assertFalse(coord.should_stop())
        coord.raise_requested_exception()
        with self.assertRaisesRegex(RuntimeError, "^Second$"):
            coord.join([self.reporting(coord, RuntimeError("Second"))])

    def test_request_stop_raises_if_joined(self):
        """CO-14, CO-15, SEED-64"""
        for tuples in (False, True):
            coord = Coordinator()
            coord.join()
            self.assertTrue(coord.joined)

            def report(ex):
                try:
                    raise ex
                except Exception as e:
                    coord.request_stop(sys.exc_info() if tuples else e)

            with self.assertRaisesRegex(RuntimeError, "^Raised$"):
                report(RuntimeError("Raised"))
            self.assertFalse(coord.should_stop())
            report(EOFError())
            self.assertTrue(coord.should_stop(), "a clean stop stops all the same")
            with self.assertRaisesRegex(RuntimeError, "^Raised$"):
                report(RuntimeError("Raised"))
            with self.assertRaisesRegex(ValueError, "^ex must be"):
                coord.request_stop("no exception")

            coord.clear_stop()
            report(RuntimeError("Recorded"))
            with self.assertRaisesRegex(RuntimeError, "^Recorded$"):
                coord.join()

    def test_request_stop_may_come_from_a_signal_handler(self):
        coord = Coordinator()
        with coord._lock:  # like a signal in the middle of a method
            coord.request_stop()
        self.assertTrue(coord.should_stop())


class JoinTest(Case):
    def test_join(self):
        """CO-03"""
        coord = Coordinator()
        threads = [self.thread(lambda d=d: time.sleep(d)) for d in (0.01, 0.02, 0.01)]
        coord.join(threads)
        self.assertFalse(any(t.is_alive() for t in threads))
        self.assertFalse(coord.should_stop())

    def test_join_all_registered(self):
        """CO-04: the threads register themselves."""
        coord = Coordinator()
        registered = threading.Barrier(4)

        def run():
            coord.register_thread(threading.current_thread())
            registered.wait(PATIENCE)
            time.sleep(0.01)

        threads = [self.thread(run) for _ in range(3)]
        registered.wait(PATIENCE)
        coord.join()
        self.assertFalse(any(t.is_alive() for t in threads))

    def test_join_some_registered(self):
        """CO-05: join waits for the union. A thread may be both registered and passed."""
        coord = Coordinator()
        threads = [self.thread(lambda d=d: time.sleep(d)) for d in (0.01, 0.02, 0.03)]
        coord.register_thread(threads[0])
        coord.register_thread(threads[1])
        coord.register_thread(threads[0])
        coord.join(iter([threads[2], threads[2], threads[0]]))
        self.assertFalse(any(t.is_alive() for t in threads))

    def test_join_grace_expires(self):
        for grace in (1e-10, 0.002, 1.0):
            coord = Coordinator()
            coord.request_stop()
            slow = self.stuck("slow")
            coord.register_thread(slow)
            with self.assertRaises(RuntimeError) as raised:
                coord.join(stop_grace_period_secs=grace)
            self.assertEqual("Coordinator stopped with threads still running: slow", str(raised.exception))
            self.assertTrue(coord.joined)
            coord.join()  # no longer registered

    def test_join_ignores_live_threads(self):
        """The message is logged instead of raised."""
        coord = Coordinator()
        coord.request_stop()
        slow = self.stuck("slow")
        with self.assertLogs("clusterrun", "INFO") as logs:
            coord.join([slow], stop_grace_period_secs=1.0, ignore_live_threads=True)
        self.assertTrue(slow.is_alive())
        self.assertEqual(["INFO:clusterrun:Coordinator stopped with threads still running: slow"], logs.output)

    def test_join_without_a_stop_has_no_limit(self):
        """No grace passes before a stop."""
        coord = Coordinator()
        end = threading.Event()
        t = self.thread(lambda: end.wait(PATIENCE))
        joined = self.thread(lambda: coord.join([t], stop_grace_period_secs=-1))
        joined.join(0.3)
        self.assertTrue(joined.is_alive())
        end.set()
        joined.join(PATIENCE)
        self.assertTrue(coord.joined)

    def test_join_does_not_poll(self):
        """The original takes a second for each of these."""
        began = time.monotonic()
        for _ in range(30):
            Coordinator().join([self.thread(lambda: time.sleep(0.02))])
        self.assertLess(time.monotonic() - began, 15)

    def test_a_stop_wakes_join(self):
        """The stop comes while join is already waiting."""
        coord = Coordinator()
        waiting = threading.Event()

        class Watched(threading.Thread):
            def is_alive(self):
                waiting.set()
                return super().is_alive()

        watched = Watched(target=lambda: coord.wait_for_stop(PATIENCE))
        watched.start()
        self.thread(lambda: waiting.wait(PATIENCE) and coord.request_stop())
        with self.assertRaisesRegex(RuntimeError, "still running: stuck$"):
            coord.join([watched, self.stuck("stuck")], stop_grace_period_secs=1.0)

    def test_the_default_grace(self):
        """The grace is 120 s. The thread records how long join would wait, and join does not
        wait."""
        coord = Coordinator()
        coord.request_stop()
        slow = NotingThread()
        with self.assertRaisesRegex(RuntimeError, "still running: noting$"):
            coord.join([slow])
        self.assertAlmostEqual(120, slow.waits[0], delta=30)

    def test_no_grace(self):
        """A grace of 0 means a millisecond, and a negative one means no wait."""
        for grace, waits in ((0, 1), (-1, 0)):
            coord = Coordinator()
            coord.request_stop()
            slow = NotingThread()
            with mock.patch.object(time, "monotonic", return_value=1.0):
                with self.assertRaisesRegex(RuntimeError, "still running"):
                    coord.join([slow], stop_grace_period_secs=grace)
            self.assertEqual(waits, len(slow.waits))
            for wait in slow.waits:
                self.assertAlmostEqual(0.001, wait)

    def test_one_grace_for_all(self):
        """The threads share one grace."""
        coord = Coordinator()
        coord.request_stop()
        now = [100.0]
        threads = [NotingThread(lambda wait: now.__setitem__(0, now[0] + wait / 2)) for _ in range(3)]
        with mock.patch.object(time, "monotonic", side_effect=lambda: now[0]):
            with self.assertRaises(RuntimeError):
                coord.join(threads, stop_grace_period_secs=8)
        self.assertEqual([[8.0], [4.0], [2.0]], [t.waits for t in threads])

    def test_endless_grace(self):
        coord = Coordinator()
        coord.request_stop()
        coord.join([self.thread(lambda: time.sleep(0.01))], stop_grace_period_secs=float("inf"))

    def test_stragglers_are_named_in_order(self):
        """Registered threads come first, then the call's, each in order."""
        coord = Coordinator()
        coord.request_stop()
        names = ["t%02d" % i for i in range(12)]
        threads = [self.stuck(name) for name in names]
        for t in threads[:6]:
            coord.register_thread(t)
        with self.assertRaises(RuntimeError) as raised:
            coord.join(threads[6:] + threads[:6], stop_grace_period_secs=0)
        self.assertEqual("Coordinator stopped with threads still running: " + " ".join(names), str(raised.exception))

    def test_the_error_counts_more_than_stragglers(self):
        for ignore in (False, True):
            coord = Coordinator()
            self.reporting(coord, KeyError("First")).join(PATIENCE)
            with self.assertRaises(KeyError):
                coord.join([self.stuck()], stop_grace_period_secs=0.01, ignore_live_threads=ignore)

    def test_join_raises_the_first_exc_info(self):
        coord = Coordinator()

        def report(ex):
            try:
                raise ex
            except RuntimeError:
                coord.request_stop(sys.exc_info())

        with self.assertRaisesRegex(RuntimeError, "^First$"):
            coord.join(self.one_after_the_other(report))

    def test_join_raises_the_first_exception(self):
        """With its thread's traceback."""
        coord = Coordinator()

        def report(ex):
            try:
                raise ex
            except RuntimeError as e:
                coord.request_stop(e)

        self.assertIn("report", self.raised(lambda: coord.join(self.one_after_the_other(report))))

    def test_join_raises_what_a_scope_caught(self):
        """CO-12: the exception stops in its thread's scope."""
        coord = Coordinator()
        went_on = []

        def report(ex):
            with coord.stop_on_exception():
                raise ex
            went_on.append(str(ex))

        with self.assertRaisesRegex(RuntimeError, "^First$"):
            coord.join(self.one_after_the_other(report))
        self.assertEqual(["First", "Too late"], went_on)

    def test_the_scope_takes_everything(self):
        """SEED-67: the scope also catches exit requests."""
        for ex in (SystemExit(3), KeyboardInterrupt(), GeneratorExit()):
            coord = Coordinator()
            with coord.stop_on_exception():
                raise ex
            self.assertTrue(coord.should_stop())
            with self.assertRaises(type(ex)):
                coord.join()
        for ex in (StopIteration(), EOFError()):
            coord = Coordinator()
            with coord.stop_on_exception():
                raise ex
            coord.join()
        coord = Coordinator()
        with coord.stop_on_exception():
            pass
        self.assertFalse(coord.should_stop())

    def test_the_scope_after_join(self):
        """The scope does not catch the exception."""
        coord = Coordinator(())
        coord.join()
        for ex in (KeyError("key"), StopIteration(), SystemExit()):
            with self.assertRaises(type(ex)) as raised:
                with coord.stop_on_exception():
                    raise ex
            self.assertIs(ex, raised.exception)

    def test_threads_registered_during_join(self):
        """The threads are not joined, and are forgotten."""
        coord = Coordinator()
        go = threading.Event()

        def parent():
            go.wait(PATIENCE)
            coord.register_thread(self.stuck())

        t = self.thread(parent)
        threading.Timer(0.05, go.set).start()
        coord.join([t])
        coord.request_stop()
        coord.join(stop_grace_period_secs=0)

    def test_the_exception_is_raised_until_cleared(self):
        """SEED-66"""
        coord = Coordinator()
        self.reporting(coord, RuntimeError("First")).join(PATIENCE)
        first = self.raised(coord.raise_requested_exception)
        self.assertEqual(["raised", "raise_requested_exception", "run"], first)
        for _ in range(3):
            self.raised(coord.join)
        self.assertEqual(first, self.raised(coord.raise_requested_exception), "the traceback does not grow")
        coord.clear_stop()
        coord.raise_requested_exception()
        coord.join()

    def test_a_thread_that_was_not_started(self):
        """Like the original, join does not wait for such a thread."""
        coord = Coordinator()
        coord.join([threading.Thread(), self.thread(lambda: time.sleep(0.01))])
        coord.request_stop()
        coord.join([threading.Thread()])

    def test_a_thread_that_joins_itself(self):
        coord = Coordinator()
        coord.request_stop()
        coord.register_thread(threading.current_thread())
        with self.assertRaisesRegex(RuntimeError, "^Coordinator stopped with threads still running: "):
            coord.join(stop_grace_period_secs=PATIENCE)

    def test_join_where_no_thread_can_be_started(self):
        """This is the state of an exiting interpreter, when functions called at exit join."""
        coord = Coordinator()
        t = self.thread(lambda: time.sleep(0.1))
        with mock.patch.object(threading.Thread, "start", side_effect=RuntimeError("can't start")):
            coord.join([t])
        self.assertFalse(t.is_alive())

    def test_signatures(self):
        """The names are the original names."""
        parameters = inspect.signature(Coordinator.join).parameters
        self.assertEqual(["self", "threads", "stop_grace_period_secs", "ignore_live_threads"], list(parameters))
        self.assertEqual([None, 120, False], [p.default for p in list(parameters.values())[1:]])
        self.assertEqual(
            ["self", "coord", "timer_interval_secs", "target", "args", "kwargs"],
            list(inspect.signature(Looper.__init__).parameters),
        )
        self.assertEqual(
            ["coord", "timer_interval_secs", "target", "args", "kwargs"],
            list(inspect.signature(Looper.loop).parameters),
        )


class NotingThread(threading.Thread):
    """A thread that never exits, and records how long its joiner waits."""

    def __init__(self, on_wait=lambda wait: None):
        super().__init__(name="noting")
        self.waits = []
        self._on_wait = on_wait

    def is_alive(self):
        return True

    def join(self, timeout=None):
        self.waits.append(timeout)
        self._on_wait(timeout)


class FakeTime(Coordinator):
    """A coordinator with a fake clock and immediate waits."""

    def __init__(self):
        super().__init__()
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def time(self):
        raise AssertionError("the wall clock was asked")

    def wait_for_stop(self, timeout=None):
        self.now += max(timeout, 0)
        return self.should_stop()


class Recorder(Looper):
    """A looper that records its actions."""

    def __init__(self, coord, interval=None, fails=None):
        super().__init__(coord, interval)
        self.log = []
        self._fails = fails

    def start_loop(self):
        self.log.append("start")

    def run_loop(self):
        self.log.append("run")
        if self._fails:
            raise self._fails
        self._coord.request_stop()

    def stop_loop(self):
        self.log.append("stop")


class LooperTest(Case):
    def count_down(self, args=None, kwargs=None, interval=0):
        coord = Coordinator()
        counts = []

        def target(start, step=1):
            counts.append(counts[-1] - step if counts else start - step)
            if counts[-1] == 0:
                coord.request_stop()

        t = Looper.loop(coord, interval, target, args=args, kwargs=kwargs)
        coord.join([t])
        self.assertFalse(t.is_alive())
        self.assertEqual([2, 1, 0], counts)

    def test_target_args(self):
        """CO-16"""
        self.count_down(args=(3,))
        self.count_down(args=[3, 1])
        self.count_down(args=(3,), interval=0.001)
        self.count_down(args=(3,), interval=None)

    def test_target_kwargs(self):
        """CO-17"""
        self.count_down(kwargs={"start": 3, "step": 1})

    def test_target_mixed_args(self):
        """CO-18"""
        self.count_down(args=(3,), kwargs={"step": 1})

    def test_arguments(self):
        """SEED-68"""
        for wrong in (None, "coord", (1, 2)):
            with self.assertRaises(ValueError) as raised:
                Looper(wrong, 1)
            self.assertEqual("'coord' argument must be a Coordinator: %s" % (wrong,), str(raised.exception))
        for given in ({"args": (1,)}, {"kwargs": {"a": 1}}):
            with self.assertRaises(ValueError) as raised:
                Looper(Coordinator(), 1, **given)
            self.assertEqual(
                "'args' and 'kwargs' argument require that you also pass 'target'", str(raised.exception)
            )
        Looper(Coordinator(), 1, args=(), kwargs={})
        self.assertIs(Looper, LooperThread)

    def test_it_is_a_daemon_that_registers_itself(self):
        coord = Coordinator()
        release = threading.Event()
        looper = Looper(coord, None, target=release.wait)
        looper.name = "looper"
        self.assertTrue(looper.daemon)
        looper.start()
        coord.request_stop()
        with self.assertRaisesRegex(RuntimeError, "still running: looper$"):
            coord.join(stop_grace_period_secs=0)
        release.set()
        looper.join(PATIENCE)

    def test_loop_makes_loopers_of_its_class(self):
        coord = Coordinator()

        class Own(Looper):
            pass

        self.assertIsInstance(Own.loop(coord, None, coord.request_stop), Own)
        coord.join()

    def schedule(self, interval, calls, durations):
        coord = FakeTime()
        at = []

        def target():
            at.append(round(coord.now - 1000, 6))
            coord.now += durations.get(len(at), 0)
            if len(at) == calls:
                coord.request_stop()

        with mock.patch.object(clusterrun.looper, "time", coord):
            Looper(coord, interval, target=target).run()
        coord.raise_requested_exception()
        return at

    def test_schedule(self):
        """Calls are at fixed times from the start, and missed ones are made up."""
        self.assertEqual([0, 0.1, 0.45, 0.45, 0.45, 0.5, 0.6], self.schedule(0.1, 7, {2: 0.35}))
        self.assertEqual([0, 0.1, 0.2], self.schedule(0.1, 3, {1: 0.099, 2: 0.1}))
        self.assertEqual([0, 7, 7], self.schedule(0, 3, {1: 7}))

    def test_no_interval_is_back_to_back(self):
        """SEED-69: the looper does not even read the clock."""
        self.assertEqual([0, 7, 7], self.schedule(None, 3, {1: 7}))

    def test_a_stop_ends_the_wait_for_the_next_call(self):
        coord = Coordinator()
        called = threading.Event()
        looper = Looper.loop(coord, 3600, called.set)
        self.assertTrue(called.wait(PATIENCE))
        coord.request_stop()
        coord.join(stop_grace_period_secs=PATIENCE)
        self.assertFalse(looper.is_alive())

    def test_hooks(self):
        """The order is start, calls, stop, and there is no stop after a call that raised."""

        def hooks(fails=None, interval=None):
            coord = Coordinator()
            looper = Recorder(coord, interval, fails)
            looper.start()
            try:
                coord.join()
            except BaseException as ex:
                self.assertIs(fails, ex)
            else:
                self.assertNotIsInstance(fails, (RuntimeError, SystemExit))
            return looper.log

        for interval in (None, 0, 3600):
            self.assertEqual(["start", "run", "stop"], hooks(interval=interval))
            for ex in (RuntimeError("First"), SystemExit(), EOFError()):
                self.assertEqual(["start", "run"], hooks(ex, interval))

    def test_a_looper_started_after_the_stop(self):
        """SEED-70: the looper calls nothing."""
        for interval in (None, 0, 1):
            coord = Coordinator()
            coord.request_stop()
            looper = Recorder(coord, interval)
            looper.start()
            coord.join()
            self.assertEqual(["start", "stop"], looper.log)

    def test_a_looper_that_fails_stops_the_others(self):
        coord = Coordinator()
        other = Looper.loop(coord, 3600, lambda: None)

        def fail():
            raise RuntimeError("First")

        Looper.loop(coord, None, fail)
        with self.assertRaisesRegex(RuntimeError, "^First$"):
            coord.join(stop_grace_period_secs=PATIENCE)
        self.assertFalse(other.is_alive())


if __name__ == "__main__":
    unittest.main()
