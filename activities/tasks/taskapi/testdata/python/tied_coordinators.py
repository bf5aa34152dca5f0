import clusterrun, sys, threading, traceback
coord = clusterrun.Coordinator(run=True)
looper = clusterrun.LooperThread.loop(coord, 0.001, lambda: None)
print("ready", flush=True)
try:
    coord.join()
except clusterrun.StopError as e:
    print(e, "|", e.by, e.kind, e.message, "in fails" in e.traceback, coord.should_stop(), looper.is_alive())
    print("in fails\n" in traceback.format_exc())
