same = c.schedule("same", (1,))
c.join()
for _ in range(9):  # eight execute, and two are queued
    v = c.schedule("forever")
def stopped(name, call):
    text = raised(call, clusterrun.StopError)
    with lock:
        said.append("%s: %s" % (name, text))
lock, said = threading.Lock(), []
waits = {"join": c.join, "schedule": lambda: [c.schedule("forever") for _ in range(9)], "fetch": lambda: c.fetch(v)}
threads = [threading.Thread(target=stopped, args=w) for w in waits.items()]
threads[0].start()
sys.stdin.readline()
threads[1].start()
threads[2].start()
for t in threads:
    t.join()
print("\n".join(sorted(said)), flush=True)
print(raised(lambda: c.fetch(v, timeout=60), clusterrun.StopError))
print(raised(c.join, clusterrun.StopError), c.done(), c.fetch(same))
