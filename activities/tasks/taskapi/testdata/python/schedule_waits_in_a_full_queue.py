values, full = [], threading.Event()
def fill():
    for i in range(500):
        values.append(c.schedule("wait", (i,)))
thread = threading.Thread(target=fill)
thread.start()
sys.stdin.readline()
while len(values) < 10: time.sleep(0.001)
time.sleep(0.1)
assert len(values) == 10, len(values)  # eight are in batches and two are queued
assert c.done() is False
print("full", flush=True)
thread.join()
c.join()
assert c.fetch(values) == [[i] for i in range(500)]
for _ in range(3):
    for i in range(100):
        c.schedule("same", (i,))
    c.schedule("fails", ("ValueError", "no"))
    raised(c.join, ValueError)
    c.join()
print("done")
