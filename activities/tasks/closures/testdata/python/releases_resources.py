@clusterrun.function
def load(n):
    try:
        while True:
            yield n
    finally:
        if threading.current_thread().name != "clusterrun-closures":
            print("ends", n, flush=True)
@clusterrun.function
def fails():
    raise OSError("disk is gone")
@clusterrun.function
def use(d, wait=None):
    if wait:
        print("holds", flush=True)
        open(wait).read()
    return next(d)
clusterrun.serve(
