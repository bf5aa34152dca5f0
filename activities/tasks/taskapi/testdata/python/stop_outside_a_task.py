import clusterrun, threading
assert not clusterrun.should_stop() and not clusterrun.wait_for_stop(0.01)
tied = clusterrun.Coordinator(run=True)
assert not tied.should_stop()
waits = threading.Thread(target=lambda: print(clusterrun.wait_for_stop()))
waits.start()
try:
    raise ValueError("oops")
except ValueError as e:
    tied.request_stop(e)
waits.join()
try:
    tied.join()
except ValueError as e:
    print(clusterrun.should_stop(), "ValueError:", e)
coord = clusterrun.Coordinator()
coord.request_stop()
coord.join()
