values = []
for i in range(100):
    try:
        values.append(c.schedule("same" if i != 42 else "sam", (i,)))
    except clusterrun.ClosureError:
        values.append(c.schedule("same", (i,)))
for i, value in enumerate(values):
    if i != 42:
        assert value.fetch() == i
text = raised(values[42].fetch, clusterrun.ClosureError)
assert text == 'UnknownFunctionError: no task has registered a function "sam"; did you mean "same"? Registered are "same"', text
try:
    c.join()
except clusterrun.ClosureError as e:
    assert str(e) == text, e
value = c.schedule("nobody")
text = raised(value.fetch, clusterrun.ClosureError)
assert raised(c.join, clusterrun.ClosureError) == text
c.join()
