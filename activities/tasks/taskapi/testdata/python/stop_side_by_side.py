import clusterrun, threading, time
coord = clusterrun.Coordinator(run=True)
def work():
    for i in range(20):
        clusterrun.request_stop(ValueError(i))
        coord.should_stop()
        coord.request_stop()
        clusterrun.clear_stop()
        coord.clear_stop()
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print("done", flush=True)
while clusterrun.stop._watch.said.get("by") != "ps-0":
    time.sleep(0.001)
print(coord.wait_for_stop(60), clusterrun.should_stop())
