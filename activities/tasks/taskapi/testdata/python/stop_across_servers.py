import clusterrun, sys, threading, time
assert not clusterrun.should_stop()
told = []
threads = [threading.Thread(target=lambda: told.append(clusterrun.wait_for_stop())) for _ in range(20)]
for t in threads: t.start()
print("ready", flush=True)
while not clusterrun.should_stop():
    time.sleep(0.001)
for t in threads: t.join()
print(told == [True] * 20, flush=True)
sys.stdin.readline()
print(clusterrun.should_stop(), clusterrun.wait_for_stop(0))
