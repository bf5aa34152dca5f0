"""A rank of a program that hangs: hang.py WAIT DEED GUILTY. The guilty rank does the deed, and
the others wait for it. Each prints "waiting" when only that is left to do."""

import ctypes
import fcntl
import multiprocessing
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

wait, deed, guilty = sys.argv[1], sys.argv[2], int(sys.argv[3])
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def load_batch_slowly():
    time.sleep(1000)


def takes_a_lock_twice():
    lock = threading.Lock()
    with lock:
        with lock:
            pass


def waits_for_an_empty_queue():
    queue.Queue().get()


def waits_for_a_queue_of_processes():
    multiprocessing.Queue().get()


def waits_for_a_process():
    subprocess.run(["sleep", "1000"], check=True)


def waits_for_a_child():
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(1000,))
    child.start()
    child.join()


def waits_for_a_thread():
    thread = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
    thread.start()
    thread.join()


def waits_for_a_future():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(time.sleep, 1000).result()


def waits_for_a_socket():
    here, there = socket.socketpair()
    here.recv(1), there


def reads_a_pipe():
    here, there = os.pipe()
    os.read(here, 1), there


def locks_a_file():
    name = os.path.join(os.path.dirname(__file__), "lock")
    with open(name, "w") as one, open(name, "w") as other:
        fcntl.flock(one, fcntl.LOCK_EX)
        fcntl.flock(other, fcntl.LOCK_EX)


def pauses_in_c():
    while True:  # a signal ends it
        ctypes.CDLL(None).pause()


def computes():
    n = 1
    while True:
        n = n * 3 % 1000003


def runs_another_thread_after_its_error():
    threading.Thread(target=time.sleep, args=(1000,)).start()
    sys.excepthook = lambda *args: None
    raise ValueError("shard 3 is corrupt")


def loads_with_a_stuck_worker():
    from torch.utils.data import DataLoader

    class Shards(list):
        def __getitem__(self, i):
            time.sleep(1000)

    for _ in DataLoader(Shards(range(8)), num_workers=1, multiprocessing_context="fork"):
        pass


def loads_with_a_stuck_collate():
    from torch.utils.data import DataLoader

    def collate(samples):
        threading.Event().wait()

    for _ in DataLoader(range(8), collate_fn=collate):
        pass


def is_slower(step):
    while True:
        time.sleep(0.7)
        step()


def goes_to_another_collective():
    import torch.distributed as dist

    dist.barrier()


deeds = {f.__name__: f for f in list(globals().values()) if callable(f) and getattr(f, "__module__", "") == __name__}


def main():
    if wait == "python":
        step = step_of_plain_python
    else:
        import torch
        import torch.distributed as dist

        dist.init_process_group("gloo")
        x = torch.ones(4)
        target = guilty if guilty >= 0 else 0

        def all_reduce():
            dist.all_reduce(x)

        def barrier():
            dist.barrier()

        def broadcast():
            dist.broadcast(x, target)

        def all_gather():
            dist.all_gather([torch.ones(4) for _ in range(size)], x)

        def reduce():
            dist.reduce(x, target)

        def recv():
            if guilty < 0:  # all receive first
                dist.recv(x, (rank - 1) % size)
            for peer in range(size):
                if peer != guilty:
                    dist.recv(x, guilty) if rank == peer else dist.send(x, peer) if rank == guilty else None

        def send():
            for peer in range(size):
                if peer != guilty:
                    dist.send(x, guilty) if rank == peer else dist.recv(x, peer) if rank == guilty else None

        def async_all_reduce():
            dist.all_reduce(x, async_op=True).wait()

        def all_gather_object():
            dist.all_gather_object([None] * size, {"rank": rank})

        def backward():
            loss = model(torch.ones(2, 4)).sum()
            loss.backward()

        if wait == "backward":
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
        step = locals()[wait]
        if wait not in ("recv", "send"):
            step()  # all connect
    print("waiting", flush=True)
    train(step)


def step_of_plain_python():
    queue.Queue().get()


def train(step):
    if rank == guilty:
        what = deeds[deed]
        what(step) if deed == "is_slower" else what()
    while True:
        step()


main()
