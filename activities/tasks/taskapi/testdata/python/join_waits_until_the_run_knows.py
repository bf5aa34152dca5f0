import clusterrun, os, threading
coord = clusterrun.Coordinator(run=True)
threading.Thread(target=coord.request_stop, daemon=True).start()
coord.wait_for_stop()
print("stopped", flush=True)
coord.join()
os._exit(0)
