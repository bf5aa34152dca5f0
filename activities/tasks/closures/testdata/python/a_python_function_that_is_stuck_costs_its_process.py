@clusterrun.function
def stuck():
    print("stuck", flush=True)
    while True:
        try:
            time.sleep(1000)
        except BaseException:
            pass
clusterrun.serve()
