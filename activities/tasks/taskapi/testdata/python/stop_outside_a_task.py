import clusterrun, threading
assert not clusterrun.should_stop() and not clusterrun.wait_for_stop(0.01)
waits = threading.Thread(target=lambda: print(clusterrun.wait_for_stop()))
waits.start()
clusterrun.request_stop(reason="enough")
waits.join()
assert clusterrun.should_stop()
clusterrun.clear_stop()
assert not clusterrun.should_stop()
tied = clusterrun.Coordinator(run=True)
assert not tied.should_stop()
try:
    raise ValueError("oops")
except ValueError as e:
    tied.request_stop(e)
try:
    tied.join()
except ValueError as e:
    print(clusterrun.should_stop(), "ValueError:", e)
coord = clusterrun.Coordinator()
coord.request_stop()
coord.join()
