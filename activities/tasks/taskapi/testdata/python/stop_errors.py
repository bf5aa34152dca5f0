import clusterrun, sys
def fails():
    raise ValueError("loss is \udcff")
try:
    fails()
except ValueError as e:
    clusterrun.request_stop(e, reason="diverged")
try:
    next(iter([]))
except StopIteration:
    clusterrun.request_stop(sys.exc_info())
clusterrun.request_stop(RuntimeError("x" * (10 << 20)), reason="ü" * (10 << 20))
clusterrun.request_stop("no exception")
