import clusterrun, os
for _ in range(3):
    clusterrun.barrier("x", local=True)
    clusterrun.info()
    os.closerange(3, 1000)
    clusterrun.result(1)
    os.closerange(3, 1000)
print("done")
