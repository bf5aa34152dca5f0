import clusterrun, os, threading
clusterrun.info()  # a connection that a child must not use
done = []
def ask():
    for _ in range(50):
        assert clusterrun.info()["task"] == "worker-0"
    done.append(1)
threads = [threading.Thread(target=ask) for _ in range(8)]
for t in threads: t.start()
pid = os.fork()
if pid == 0:
    print("child", clusterrun.barrier("all"), flush=True)
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
for t in threads: t.join()
print("parent", len(done))
