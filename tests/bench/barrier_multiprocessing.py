"""A round of the barrier of a multiprocessing manager."""
import multiprocessing, statistics, sys, time
def worker(barrier, count, out):
    took = []
    for i in range(100 + count):
        started = time.perf_counter_ns()
        barrier.wait()
        if i >= 100:
            took.append(time.perf_counter_ns() - started)
    out.put(statistics.median_low(took))
if __name__ == "__main__":
    n, count = int(sys.argv[1]), int(sys.argv[2])
    context = multiprocessing.get_context("fork")
    with context.Manager() as manager:
        barrier, out = manager.Barrier(n), context.Queue()
        workers = [context.Process(target=worker, args=(barrier, count, out)) for _ in range(n)]
        for w in workers: w.start()
        all = sorted(out.get() for _ in workers)
        for w in workers: w.join()
        print(all[len(all) // 2])
