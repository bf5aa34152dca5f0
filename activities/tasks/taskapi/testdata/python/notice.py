import clusterrun
assert clusterrun.preempted() is None
print("ready", flush=True)
while clusterrun.preempted() is None:
    pass
first = clusterrun.preempted()
print(50 < first <= 60 and clusterrun.preempted() <= first, clusterrun.should_stop(), flush=True)
while clusterrun.preempted() is not None:
    pass
print("over")
