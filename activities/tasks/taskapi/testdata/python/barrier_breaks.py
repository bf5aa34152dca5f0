import clusterrun
try:
    clusterrun.barrier("x")
except clusterrun.BarrierTimeoutError:
    print("wrong")
except clusterrun.BrokenBarrierError as e:
    print(e)
