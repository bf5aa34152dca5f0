import clusterrun, os, threading
coord = clusterrun.Coordinator(run=True)
assert not clusterrun.should_stop()
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    assert not coord.should_stop() and not clusterrun.should_stop()
    os.write(write, b"x")
    print("child", coord.wait_for_stop(60), clusterrun.wait_for_stop(60), coord.should_stop(), flush=True)
    clusterrun.request_stop()
    os._exit(0)
os.read(read, 1)
clusterrun.request_stop()
assert os.waitpid(pid, 0)[1] == 0
print("parent", coord.wait_for_stop(60), clusterrun.should_stop())
