waits = c.schedule("forever")
while not waits._id: time.sleep(0.001)
print("waits", flush=True)
assert raised(waits.fetch, clusterrun.CancelledError) == ABORTED
assert waits.status is clusterrun.RemoteValueStatus.ABORTED
print(raised(lambda: c.schedule("same", (1,)), clusterrun.TaskError))
print(raised(c.join, clusterrun.TaskError))
print(raised(c.done, clusterrun.TaskError))
