import atexit, clusterrun, signal
coord = clusterrun.Coordinator(run=True)
signal.signal(signal.SIGTERM, lambda *_: coord.request_stop())
atexit.register(lambda: print(clusterrun.should_stop(), clusterrun.wait_for_stop(0.1)))
print("ready", flush=True)
coord.wait_for_stop()
coord.join()
