import copy, gc, pickle
kept = c.create_per_worker_resource("load", args=(7,))
copies = [copy.copy(kept), copy.deepcopy([kept])[0]]
assert copies[0] is kept and copies[1] is kept
named = pickle.loads(pickle.dumps(kept))
assert type(named) is clusterrun.PerWorkerValues and c.schedule("same", (named,)).fetch() == 7
dataset = c.create_per_worker_dataset("load", args=(8,))
assert type(pickle.loads(pickle.dumps(iter(dataset)))) is type(iter(dataset))
for i in range(20):
    it = iter(dataset)
    assert c.schedule("same", (it,)).fetch() == 8
values = [c.schedule("same", (it,)) for i in range(10)]
del it
assert c.fetch(values) == [8] * 10
time.sleep(0.2)  # releases are gathered
assert c.schedule("same", (kept,)).fetch() == 7
print("one is left", flush=True)
sys.stdin.readline()
