assert c.schedule("same", (1,)).fetch() == 1
print("kept", flush=True)
sys.stdin.readline()
first = c.remote_value(1)
assert first.fetch() == 1 and first.id == 1
assert raised(lambda: c.remote_value(100), ValueError) == "no closure 100; only 1 were scheduled"
waits = c.schedule("forever")
while waits.id is None: time.sleep(0.001)
again = c.remote_value(waits.id)
assert raised(lambda: waits.fetch(timeout=0.01), TimeoutError) == "closure 2 has not ended within 0.01s"
raised(lambda: c.fetch([first, waits], timeout=0.01), TimeoutError)
other = c.schedule("forever")
c.cancel(waits)
assert raised(waits.fetch, clusterrun.CancelledError) == CANCELLED == raised(again.fetch, clusterrun.CancelledError)
assert other.status is clusterrun.RemoteValueStatus.NOT_READY
c.cancel()
assert raised(other.fetch, clusterrun.CancelledError) == CANCELLED
c.join()  # without an error
failed = c.schedule("fails", ("IndexError", "x"))
raised(c.join, IndexError)
assert raised(c.remote_value(failed.id).fetch, IndexError) == "x"
print("ok")
