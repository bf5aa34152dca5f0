tries = 0
@clusterrun.function
def load(n):
    print("loads", flush=True)
    return {n}
@clusterrun.function
def fails():
    print("fails", flush=True)
    raise OSError("disk is gone")
@clusterrun.function
def flaky():
    global tries
    tries += 1
    if tries == 1:
        raise clusterrun.UnavailableError(task="ps-1")
    return {7}
@clusterrun.function
def use(d, n=0, **more):
    return [max(d), n, [max(d) for d in more.get("list", [])]]
@clusterrun.function
def same(x):
    return x
clusterrun.serve()
