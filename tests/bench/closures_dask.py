"""The same with Dask."""
import sys, time
def f(n):
    return n
if __name__ == "__main__":
    from distributed import Client, LocalCluster
    with LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.submit(f, -1).result()
        took = []
        for i in range(200):
            started = time.perf_counter()
            client.submit(f, i, pure=False).result()
            took.append(time.perf_counter() - started)
        count = 5000
        started = time.perf_counter()
        values = client.map(f, range(count), pure=False)
        assert client.gather(values) == list(range(count))
        print(count / (time.perf_counter() - started), sorted(took)[100])
