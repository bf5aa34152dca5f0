import clusterrun
assert clusterrun.restart_count() == 2
assert clusterrun.info()["task"] == "worker-0"
assert [m["task"] for m in clusterrun.cluster()] == ["worker-0", "ps-0"]
assert clusterrun.get_barrier().wait() == 0
assert clusterrun.barrier("ü/..", timeout=30, participants=["worker"], local=True) == 0
for i in range(10001):
    clusterrun.progress(i, 10000, "loss 0.1")
clusterrun.result({"ü": [None, 1.5]})
for call in (lambda: clusterrun.result("x" * (256 << 10)), lambda: clusterrun.result("x" * (8 << 20)),
             lambda: clusterrun.barrier("x", participants=["nobody"])):
    try:
        call()
    except clusterrun.TaskError as e:
        print(e.code, e.field, e)
for call in (lambda: clusterrun.barrier("x" * (10 << 20)), lambda: clusterrun.barrier("")):
    try:
        call()
    except ValueError as e:
        print(e)
