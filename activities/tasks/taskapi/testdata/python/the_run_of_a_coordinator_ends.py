waits = c.schedule("forever")
while waits.id is None: time.sleep(0.001)
print("waits", flush=True)
assert raised(waits.fetch, clusterrun.CancelledError) == "The run has ended: it is"
late = c.schedule("same", (1,))
assert raised(late.fetch, clusterrun.CancelledError) == ABORTED
assert late.status is clusterrun.RemoteValueStatus.ABORTED
print(raised(lambda: c.schedule("same", (1,)), clusterrun.TaskError))
print(raised(c.join, clusterrun.TaskError))
print(raised(c.done, clusterrun.TaskError))
