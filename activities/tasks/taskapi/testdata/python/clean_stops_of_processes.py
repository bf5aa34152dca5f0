import clusterrun
coord = clusterrun.Coordinator((ValueError,), run=True)
coord.request_stop(ValueError("no more"))
coord.join()
print("joined")
coord.clear_stop()
assert not clusterrun.should_stop()
coord.request_stop(StopIteration())
try:
    coord.join()
except StopIteration as e:
    print("raised", repr(e))
