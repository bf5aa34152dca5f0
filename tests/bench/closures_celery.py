"""Celery calls on Redis: calls per second, and the median time of a single call."""
import os, subprocess, sys, time
from celery import Celery
port = int(os.environ.get("PEER_REDIS_PORT", "46379"))
app = Celery("closures_celery", broker="redis://127.0.0.1:%d/0" % port, backend="redis://127.0.0.1:%d/1" % port)
app.conf.worker_prefetch_multiplier = 64

@app.task(name="f")
def f(n):
    return n

if __name__ == "__main__":
    redis = subprocess.Popen(["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"], stdout=subprocess.DEVNULL)
    worker = subprocess.Popen([sys.executable, "-m", "celery", "-A", "closures_celery", "worker", "-c", "4", "-l", "ERROR", "--without-gossip", "--without-mingle", "--without-heartbeat"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, C_FORCE_ROOT="1"))
    try:
        time.sleep(1)
        f.delay(0).get(timeout=60)
        for i in range(100):
            f.delay(i).get(timeout=60)
        took = []
        for i in range(200):
            started = time.perf_counter()
            f.delay(i).get(timeout=60)
            took.append(time.perf_counter() - started)
        count = 5000
        started = time.perf_counter()
        values = [f.delay(i) for i in range(count)]
        for i, v in enumerate(values):
            assert v.get(timeout=120) == i
        print(count / (time.perf_counter() - started), sorted(took)[100])
    finally:
        worker.terminate(); worker.wait()
        redis.terminate(); redis.wait()
