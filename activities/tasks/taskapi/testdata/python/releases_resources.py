import copy, gc, pickle
def steps(*names):
    for name in names:
        print(name, flush=True)
        sys.stdin.readline()
dataset = c.create_per_worker_dataset("load", args=(8,))
kept = c.create_per_worker_resource("load", args=(7,))
copies = [copy.copy(kept), copy.deepcopy([kept])[0]]
assert copies[0] is kept and copies[1] is kept
named = pickle.loads(pickle.dumps(kept))
assert type(named) is clusterrun.PerWorkerValues and c.schedule("same", (named,)).fetch() == 7
del named
assert type(pickle.loads(pickle.dumps(iter(dataset)))) is type(iter(dataset))
for i in range(200):
    it = iter(dataset)
    assert c.schedule("same", (it,)).fetch() == 8
steps("one of 200 is left")
del it
steps("none is left")
it = iter(dataset)
steps("away")
values = [c.schedule("same", (it,)) for i in range(10)]
del it
steps("unsent")
assert c.fetch(values) == [8] * 10
steps("gone")
named = pickle.loads(pickle.dumps(kept))
del kept, copies
steps("released")
value = c.schedule("same", (named,))
text = raised(value.fetch, clusterrun.ClosureError)
assert text.startswith("RefusedError: resources: resource 1 was released by the client that created it"), text
assert raised(c.join, clusterrun.ClosureError) == text
more = [iter(dataset) for i in range(20)]
assert c.fetch([c.schedule("same", (it,)) for it in more]) == [8] * 20
print("ends")
