@clusterrun.function
def long():
    print("began", flush=True)
    time.sleep(1.5)
    return "done"
@clusterrun.function
def f(n):
    return n
clusterrun.serve()
