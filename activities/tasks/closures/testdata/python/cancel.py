@clusterrun.function
def sleeps():
    try:
        print("sleeps", flush=True)
        time.sleep(1000)
    finally:
        print(clusterrun.cancelled(), flush=True)
@clusterrun.function
def loops():
    print("loops", flush=True)
    while True:
        pass
@clusterrun.function
def locks():
    lock = threading.Lock()
    lock.acquire()
    try:
        print("locks", flush=True)
        lock.acquire()
    except BaseException as e:
        print(type(e).__name__, clusterrun.cancelled(), flush=True)
    return "all the same"
@clusterrun.function
def asks():
    try:
        print("asks", flush=True)
        while not clusterrun.cancelled():
            time.sleep(0.001)
        time.sleep(1000)
    except clusterrun.CancelledError:
        pass
    raise ValueError("stopped")
@clusterrun.function
def raises():
    raise clusterrun.CancelledError("of its own accord")
@clusterrun.function
def f(): return 1
clusterrun.serve()
