def fail(kind="ValueError"):
    return c.schedule("fails", (kind, "Some error."))
def good(n=1):
    return [c.schedule("add", (1,)) for _ in range(n)]

good(3)
value = fail()
text = raised(c.join, ValueError)
assert text == "Some error.", text
try:
    value.fetch()
except clusterrun.ClosureError as e:
    assert (e.kind, e.message, e.task, e.traceback) == ("ValueError", "Some error.", "worker-0", "Traceback: in fails\n"), vars(e)
    assert e.closure == value._id and "in fails" in str(e.__cause__)
raised(value.fetch, ValueError)
good(3)
c.join()

fail("KeyError")
try:
    while True:
        good()
except KeyError as e:
    assert str(e) == "Some error."
c.join()

try:
    while True:
        last = fail()
except ValueError:
    pass
c.join()
raised(last.fetch, ValueError, clusterrun.CancelledError)

fail()
raised(c.join, ValueError)
good(3)
fail("Odd")
assert raised(c.join, clusterrun.ClosureError) == "Odd: Some error."

good(3)
long = c.schedule("forever")
while c.metrics()["closure_execution"] < 10: time.sleep(0.001)
fail()
assert raised(c.join, ValueError) == "Some error."
assert raised(long.fetch, clusterrun.CancelledError) == CANCELLED
raised(long.fetch, clusterrun.ClosureError)
good(3)
c.join()

# Done raises, and before that it is not.
long = c.schedule("forever")
assert c.done() is False
raised(fail().fetch, ValueError)
assert raised(c.done, ValueError) == "Some error."
assert c.done() is True
assert raised(long.fetch, clusterrun.CancelledError) == CANCELLED
