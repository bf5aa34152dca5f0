import clusterrun, threading
coord = clusterrun.Coordinator(run=True)
def fails():
    raise RuntimeError("First")
def run(body):
    with coord.stop_on_exception():
        body()
threads = [threading.Thread(target=run, args=(body,)) for body in (fails, coord.wait_for_stop)]
for t in threads: t.start()
try:
    coord.join(threads)
except RuntimeError as e:
    print(e, clusterrun.should_stop())
