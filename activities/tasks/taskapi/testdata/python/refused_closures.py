values = [c.schedule("same" if i != 42 else "sam", (i,), detached=True) for i in range(100)]
for i, value in enumerate(values):
    if i != 42:
        assert value.fetch() == i
text = raised(values[42].fetch, clusterrun.ClosureError)
assert text == 'UnknownFunctionError: no task has registered a function "sam"; did you mean "same"? Registered are "same"', text
c.join()
value = c.schedule("nobody")
text = raised(value.fetch, clusterrun.ClosureError)
assert raised(c.join, clusterrun.ClosureError) == text
c.join()
value = c.schedule("same", (1,), task="worker 1")
text = raised(value.fetch, clusterrun.ClosureError)
assert text.startswith('RefusedError: task: "worker 1" is not a task name'), text
raised(c.done, clusterrun.ClosureError)
assert c.done()
