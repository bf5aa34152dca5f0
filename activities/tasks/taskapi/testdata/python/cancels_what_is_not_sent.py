values = []
def fill():
    for _ in range(10):
        values.append(c.schedule("forever"))
thread = threading.Thread(target=fill)
thread.start()
while thread.is_alive():
    c.cancel()
    thread.join(0.01)
c.cancel()
assert len(values) == 10
for value in values:
    assert raised(value.fetch, clusterrun.CancelledError) == CANCELLED
c.join()
