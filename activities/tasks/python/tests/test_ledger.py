"""Tests of the requests that a serving process sends to its host, without a host."""

import json
import unittest

from clusterrun._ledger import Ledger


def closure(key, call=1):
    return {"id": key, "call": call, "function": "f"}


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger("p", 1, dict)

    def ask(self, now):
        """Return the next request, and its decoded body."""
        request, _ = self.ledger.next(now)
        self.assertIsNotNone(request)
        return request, json.loads(request.body.decode())

    def begin(self):
        """Receive closures 7 and 8, and begin to call the first."""
        request, says = self.ask(1.0)
        self.assertEqual(says["process"], "p")
        self.ledger.answered(request, {"news": 1, "closures": [closure(7), closure(8)]}, 1.0)
        return self.ledger.begin(99, 1.0)

    def test_news_are_taken_once(self):
        self.begin()
        request, says = self.ask(2.0)
        self.assertEqual((says["got"], sorted(says["held"])), (1, [7, 8]))
        self.ledger.answered(request, {"news": 1, "closures": [closure(9)]}, 2.0)
        self.assertNotIn(9, self.ledger.calls)

    def test_an_outcome_that_was_not_answered_is_sent_again(self):
        call = self.begin()
        self.ledger.ended(call, b',"value":1', 1.0)
        first, says = self.ask(1.1)
        self.assertEqual(says["done"], [{"id": 7, "call": 1, "value": 1}])
        self.ledger.failed(first, 1.1, again=False)
        self.assertEqual(self.ledger.next(1.1)[0], None, "not at once")
        second, says = self.ask(2.0)
        self.assertEqual(says["done"], [{"id": 7, "call": 1, "value": 1}])
        self.ledger.answered(second, {}, 2.0)
        self.assertEqual((self.ledger.done, self.ledger.unanswered), ([], {}))

    def test_what_waits_behind_a_call_is_handed_back(self):
        self.begin()
        _, says = self.ask(1.05)
        self.assertEqual((sorted(says["held"]), says["returned"]), ([7, 8], []))
        self.ledger.hand_back()
        _, says = self.ask(1.2)
        self.assertEqual(says["returned"], [8])
        self.assertFalse(self.ledger.queue)

    def test_what_was_released_may_be_used_anew(self):
        request, _ = self.ask(1.0)
        self.ledger.answered(request, {"news": 1, "resources": [{"id": 5}], "closures": [closure(7)]}, 1.0)
        old = self.ledger.resources[5]
        request, _ = self.ask(2.0)
        released = [{"first": 1, "last": 9}]
        self.ledger.answered(request, {"news": 2, "released": released, "resources": [{"id": 5}], "closures": [closure(8)]}, 2.0)
        self.assertEqual(self.ledger.dropped, [old])
        self.assertIn(5, self.ledger.resources, "the release came before the closure that is in the same answer")

    def test_cancelled_calls(self):
        self.begin()
        request, _ = self.ask(1.05)
        told = self.ledger.answered(request, {"cancel": [7, 8, 9]}, 1.05)
        self.assertEqual([call.id for call in told], [7], "which is being made")
        _, says = self.ask(1.2)
        self.assertEqual([(o["id"], o["kind"]) for o in says["done"]], [(8, "cancelled")])

    def test_a_process_that_has_nothing_left_says_so_in_its_farewell_alone(self):
        call = self.begin()
        request, _ = self.ask(1.05)
        self.ledger.answered(request, {"stop": True}, 1.05)
        request, says = self.ask(1.1)
        self.assertEqual((says["slots"], says["returned"]), (0, [8]))
        self.ledger.ended(call, b',"value":1', 1.2)
        last, says = self.ask(1.3)
        self.assertEqual((says["slots"], says["done"]), (0, [{"id": 7, "call": 1, "value": 1}]))
        self.ledger.answered(request, {}, 1.3)
        self.ledger.answered(last, {}, 1.3)
        self.assertEqual(self.ledger.next(9.0), (None, None), "for its host it has ended")

    def test_no_call_begins_once_the_tasks_stop(self):
        call = self.begin()
        request, _ = self.ask(1.05)
        self.ledger.answered(request, {"stop": True}, 1.05)
        _, says = self.ask(1.06)
        self.assertEqual((says["slots"], says["returned"], says["held"]), (0, [8], [call.id]))


if __name__ == "__main__":
    unittest.main()
