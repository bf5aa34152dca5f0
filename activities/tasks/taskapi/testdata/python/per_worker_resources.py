@clusterrun.function
def load(n): pass
@clusterrun.function
def data(): yield 1
good, bad = c.create_per_worker_resource(load, args=(7,)), c.create_per_worker_resource("broken")
assert c.schedule("same", (good,)).fetch() == 7
c.join()
value = c.schedule("same", (bad,))
print(raised(c.join, clusterrun.InputError))
print(raised(value.fetch, clusterrun.InputError))
c.schedule("same", (good,))
c.join()
print(raised(lambda: c.create_per_worker_resource(lambda: 1), TypeError).split(" <")[0])
print(raised(lambda: c.create_per_worker_dataset(lambda: 1), TypeError).split(" <")[0])
dataset = c.create_per_worker_dataset("load", args=(8,))
first, second = iter(dataset), iter(dataset)
assert first is not second and isinstance(first, clusterrun.PerWorkerValues)
assert c.fetch([c.schedule("same", (first,)), first, c.schedule("same", (second,))]) == [8, first, 8]
print(raised(lambda: next(first), NotImplementedError))
