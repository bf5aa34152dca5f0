value = c.schedule("wait", key="k")
watch = threading.Timer(20, lambda: os._exit(3))
watch.daemon = True
watch.start()
c.join()
assert value.status is clusterrun.RemoteValueStatus.NOT_READY and value.id == 1
assert c.done()
