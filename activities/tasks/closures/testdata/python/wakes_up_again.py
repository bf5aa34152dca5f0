import signal
send, lost = signal.pthread_kill, []
def lose(*signal):
    lost.append(signal)
    if len(lost) > 1:
        send(*signal)
signal.pthread_kill = lose
@clusterrun.function
def sleeps():
    print("sleeps", flush=True)
    time.sleep(1000)
@clusterrun.function
def f(): return len(lost)
clusterrun.serve()
