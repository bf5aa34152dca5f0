"""Tests of a serving process's requests to its host, without a host."""

import json
import unittest

from clusterrun._ledger import Ledger


def closure(key):
    return {"id": key, "function": "f"}


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger("p", 2, dict)

    def ask(self):
        """Return the next request, and its number of outcomes."""
        body, sent = self.ledger.compose(20)
        return json.loads(body.decode()), sent

    def begin(self):
        """Receive closures 7 and 8, and start calling the first."""
        says, sent = self.ask()
        self.assertEqual((says["process"], says["slots"], says["free"]), ("p", 2, 2))
        self.ledger.answered({"closures": [closure(7), closure(8)]}, sent)
        return self.ledger.begin(99)

    def test_an_outcome_is_sent_until_it_is_answered(self):
        call = self.begin()
        self.ledger.ended(call, b',"value":1')
        for _ in range(2):
            says, sent = self.ask()
            self.assertEqual((says["held"], says["free"]), ([8], 1))
            self.assertEqual(says["done"], [{"id": 7, "value": 1}])
        self.ledger.ended(self.ledger.begin(99), b',"value":2')
        self.ledger.answered({}, sent)
        self.assertEqual(self.ask()[0]["done"], [{"id": 8, "value": 2}], "which was in no request")

    def test_many_outcomes_take_several_requests(self):
        call = self.begin()
        self.ledger.ended(call, b',"value":"%s"' % (b"x" * (512 << 10)))
        self.ledger.ended(self.ledger.begin(99), b',"value":2')
        says, sent = self.ask()
        self.assertEqual(([o["id"] for o in says["done"]], says["held"], says["wait"]), ([7], [8], 0))
        self.ledger.answered({}, sent)
        self.assertEqual([o["id"] for o in self.ask()[0]["done"]], [8])

    def test_resources(self):
        self.ledger.answered({"resources": [{"id": 5}, {"id": 6}]}, 0)
        old = self.ledger.resources[5]
        self.assertEqual(self.ask()[0]["resources"], [5, 6])
        self.ledger.answered({"released": [5, 9]}, 0)
        self.assertEqual((self.ledger.dropped, self.ask()[0]["resources"]), ([old], [6]))

    def test_cancelled_calls(self):
        self.begin()
        told = self.ledger.answered({"cancel": [7, 8, 9]}, 0)
        self.assertEqual([call.id for call in told], [7, 8])
        says, _ = self.ask()
        self.assertEqual((says["held"], says["ending"]), ([7, 8], [7, 8]))

    def test_no_call_begins_once_the_tasks_stop(self):
        call = self.begin()
        self.ledger.answered({"stop": True, "closures": [closure(9)]}, 0)
        says, _ = self.ask()
        self.assertEqual((says["slots"], says["free"], says["held"]), (0, 0, [call.id]))


if __name__ == "__main__":
    unittest.main()
