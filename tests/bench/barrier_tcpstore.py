"""A barrier like torch.distributed.elastic's: each process adds, the last sets a key, all wait for it."""
import multiprocessing, datetime, statistics, sys, time
from torch.distributed import TCPStore
def worker(port, rank, n, count, out):
    store = TCPStore("127.0.0.1", port, n, False, datetime.timedelta(seconds=60))
    took = []
    for i in range(100 + count):
        started = time.perf_counter_ns()
        if store.add("n%d" % i, 1) == n:
            store.set("last%d" % i, "1")
        store.wait(["last%d" % i])
        if i >= 100:
            took.append(time.perf_counter_ns() - started)
    out.put(statistics.median_low(took))
    store.add("done", 1)
if __name__ == "__main__":
    n, count = int(sys.argv[1]), int(sys.argv[2])
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    server = TCPStore("127.0.0.1", 0, n + 1, True, datetime.timedelta(seconds=60), False)
    workers = [context.Process(target=worker, args=(server.port, r, n, count, out)) for r in range(n)]
    for w in workers: w.start()
    all = sorted(out.get() for _ in workers)
    for w in workers: w.join()
    print(all[len(all) // 2])
