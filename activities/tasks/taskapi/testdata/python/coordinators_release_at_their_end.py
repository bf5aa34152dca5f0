import gc
def threads():
    return [t for t in threading.enumerate() if t.name in ("clusterrun-schedule", "clusterrun-outcomes")]
values = clusterrun.ClusterCoordinator().create_per_worker_resource("load", args=(7,))
assert clusterrun.ClusterCoordinator() is values._coordinator, "they keep it"
pid = os.fork()
if pid == 0:
    del values
    gc.collect()
    sys.exit()
assert os.waitpid(pid, 0)[1] == 0
assert clusterrun.ClusterCoordinator().schedule("same", (values,)).fetch() == 7
ending = threads()
assert len(ending) == 2
del values
gc.collect()
for t in ending: t.join(60)
assert not threads(), threads()
print("ended", flush=True)
sys.stdin.readline()
