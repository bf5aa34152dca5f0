values = []
for i in range(5000):
    if i % 500 == 0:
        print("ready", flush=True)
        sys.stdin.readline()
    c.schedule("add", (1,))
    values.append(c.schedule("same", (i,)))
c.join()
assert c.fetch(values) == list(range(5000))
assert c.done() is True
print(c.metrics())
