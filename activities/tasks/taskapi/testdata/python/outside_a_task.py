import clusterrun
try:
    clusterrun.get_barrier()
except ValueError as e:
    print(str(e).split(" (CLUSTERRUN")[0])
for call in (lambda: clusterrun.result(1), lambda: clusterrun.progress(1, float("nan")), lambda: clusterrun.error("x")):
    assert call() is None
assert clusterrun.barrier("loaded", timeout=1, participants=["ps"]) == 0
info = clusterrun.info()
assert (info["rank"], info["world_size"], info["local_rank"], info["local_world_size"]) == (0, 1, 0, 1)
assert [m["rank"] for m in clusterrun.cluster()] == [0]
assert clusterrun.main(lambda: {7}) == {7}
assert clusterrun.restart_count() == 0
@clusterrun.record
def fails():
    raise KeyError("x")
try:
    fails()
except KeyError:
    pass
