good = c.schedule("same", (1,), key="good")
bad = c.schedule("fails", ("IndexError", "no"), key="bad")
try:
    c.join()
except IndexError as e:
    assert isinstance(e, clusterrun.ClosureError) and (e.task, e.closure) == ("worker-0", bad.id), e
    print(e, e.traceback.strip())
assert good.fetch() == 1 and raised(bad.fetch, IndexError) == "no"
