import gc
def threads():
    return [t for t in threading.enumerate() if t.name == "clusterrun-coordinator"]
value = c.schedule("same", (1,))
assert len(threads()) == 1
del c
assert value.fetch() == 1, "its value keeps it"
before = threads()
del value
gc.collect()
for t in before: t.join(10)
assert not threads(), threads()
for i in range(100):
    clusterrun.ClusterCoordinator().schedule("same", (i,))
clusterrun.ClusterCoordinator().join()
c = clusterrun.ClusterCoordinator()
waits = c.schedule("forever")
ready = c.schedule("same", (7,))
assert ready.fetch() == 7
pid = os.fork()
if pid == 0:
    try:
        assert waits.status is clusterrun.RemoteValueStatus.ABORTED
        assert raised(waits.fetch, clusterrun.CancelledError) == ABORTED
        assert ready.fetch() == 7
        text = raised(lambda: c.schedule("same", (1,)), clusterrun.TaskError)
        assert text == "this coordinator belongs to the parent process; make another one here", text
        mine = clusterrun.ClusterCoordinator()
        assert mine is not c and mine.schedule("same", (8,)).fetch() == 8
        os._exit(0)
    finally:
        os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
assert c.schedule("same", (9,)).fetch() == 9
for i in range(10):
    c.schedule("same", (i,))  # sent, although no task waits
