values = [c.schedule("forever")]
def free_room():
    threading.Timer(0.01, c.cancel, values[-1:]).start()
free_room()
for _ in goes_on(lambda: values.append(c.schedule("forever"))):
    raised(values[-1].fetch, clusterrun.CancelledError)
    c.join()
    values.append(c.schedule("forever"))
    free_room()
c.cancel(values)
c.join()
