import clusterrun
coord = clusterrun.Coordinator((ValueError,), run=True)
coord.request_stop(ValueError("no more"))
coord.join()
print("joined")
try:
    coord.clear_stop()
except RuntimeError as e:
    print(e)
assert coord.should_stop() and clusterrun.should_stop()
