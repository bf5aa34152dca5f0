import clusterrun, threading
coord = clusterrun.Coordinator(run=True)
def work():
    for i in range(20):
        clusterrun.request_stop(ValueError(i))
        coord.should_stop()
        coord.request_stop()
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(coord.wait_for_stop(60), clusterrun.should_stop(), clusterrun.stop._watch.said["seq"])
