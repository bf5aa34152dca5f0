@clusterrun.function
def f(n):
    while 2 < n < 3 + %d and not os.path.exists(os.environ["FLAG"]):
        time.sleep(0.01)
    return [n, os.environ["WHO"]]
clusterrun.serve(%d)
