@clusterrun.function
def dies():
    os._exit(1)
@clusterrun.function
def pid():
    return os.getpid()
for _ in range(2):
    if os.fork() == 0:
        clusterrun.serve()
print(os.getpid(), flush=True)
time.sleep(1000)
