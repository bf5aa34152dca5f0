"""A program that uses a pool, and others, in the scenarios that its argument lists, one after
the other; the same as main.go. What it prints of itself are lines of JSON."""

import json
import os
import signal
import sys
import threading
import time

import clusterrun

state = 0


@clusterrun.function
def pid():
    return os.getpid()


@clusterrun.function
def nap():
    time.sleep(1)


@clusterrun.function
def noop():
    pass


@clusterrun.function
def fail():
    raise ValueError("This is an error.")


@clusterrun.function
def kind():
    return json.loads(os.environ["TF_CONFIG"])["task"]["type"]


@clusterrun.function
def initialize():
    global state
    state = 1


@clusterrun.function
def broken():
    raise ValueError("no initialization")


@clusterrun.function
def swap(new):
    global state
    old, state = state, new
    return old


@clusterrun.function
def rank_or_none():
    rank = int(os.environ["RANK"])
    return None if rank == 1 else rank


@clusterrun.function
def fail_backwards(dir):
    """worker-1 fails first, then worker-0, and worker-2 ends last."""
    rank = int(os.environ["RANK"])
    before = {1: None, 0: "1", 2: "0"}[rank]
    while before and not os.path.exists(os.path.join(dir, before)):
        time.sleep(0.01)
    open(os.path.join(dir, str(rank)), "w").close()
    if rank != 2:
        raise ValueError("worker-%d fails" % rank)


@clusterrun.function
def leave(how):
    if os.environ["RANK"] == "0":
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        sys.exit(0)


@clusterrun.function
def leave_soon():
    if os.environ["RANK"] == "0":
        threading.Timer(0.1, os._exit, [0]).start()


@clusterrun.function
def nested():
    return [os.getpid(), everywhere.run(pid)]


everywhere = clusterrun.Pool(2)  # At program load


def unregistered():
    pass


def say(**what):
    print(json.dumps(what), flush=True)


def tried(run):
    try:
        return {"values": run()}
    except Exception as e:
        return {"error": str(e), "type": type(e).__name__, "cause": str(e.__cause__ or "")}


def wait_for_go():
    while not os.path.exists("go"):
        time.sleep(0.01)
    os.remove("go")


def main(scenario, pool):
    if scenario == "same":
        say(pids=[pool.run(pid) for _ in range(4)])
    elif scenario == "errors":
        say(before=pool.run(pid), failed=tried(lambda: pool.run(fail)), after=pool.run(pid))
    elif scenario == "kinds":
        say(values=clusterrun.Pool({"chief": 1, "worker": ["localhost:17101", "localhost:17102"]}).run(kind))
    elif scenario == "order":
        with clusterrun.Pool(3) as three:
            failed = tried(lambda: three.run(fail_backwards, args=(os.getcwd(),)))
            say(failed=failed, finished=os.path.exists("2"), values=three.run(rank_or_none))
    elif scenario == "initializer":
        with clusterrun.Pool(2, initializer=initialize) as own:
            say(first=own.run(swap, args=[2]), second=own.run(swap, kwargs={"new": 3}))
    elif scenario == "broken":
        with clusterrun.Pool(2, initializer=broken) as own:
            say(failed=tried(lambda: own.run(pid)))
    elif scenario == "global":
        say(values=everywhere.run(noop))
    elif scenario == "nested":
        say(values=everywhere.run(nested))
    elif scenario == "dies":
        for how in ("kill", "exit"):
            before = pool.run(pid)
            failed = tried(lambda: pool.run(leave, args=(how,)))
            say(how=how, before=before, failed=failed, after=pool.run(pid))
    elif scenario == "leaves":
        before = pool.run(pid)
        pool.run(leave_soon)
        while os.path.exists("/proc/%d/exe" % before[0]):
            time.sleep(0.01)
        say(failed=tried(lambda: pool.run(pid)), after=pool.run(pid))
    elif scenario == "idle":
        say(pids=pool.run(pid))
        wait_for_go()
        say(failed=tried(lambda: pool.run(pid)), after=pool.run(pid))
    elif scenario == "shutdown":
        say(pids=pool.run(pid))
        pool.shutdown()
        pool.shutdown()
        say(down=True)
        wait_for_go()
        say(pids=pool.run(pid))
    elif scenario == "shutdown late":
        say(pids=pool.run(pid))
        wait_for_go()
        pool.shutdown()
        say(down=True)
    elif scenario == "main fails":
        say(pids=pool.run(pid) + everywhere.run(pid))
        raise ValueError("an error of the main program")
    elif scenario == "hangs":
        say(pids=pool.run(pid))
        time.sleep(1000)
    elif scenario == "refused":

        @clusterrun.function
        def only_here():
            pass

        say(
            plain=tried(lambda: pool.run(unregistered)),
            initializer=tried(lambda: clusterrun.Pool(2, initializer=unregistered)),
            chiefs=tried(lambda: clusterrun.Pool({"chief": 2})),
            empty=tried(lambda: clusterrun.Pool({"worker": 0})),
            large=tried(lambda: pool.run(swap, args=("x" * 300000,))),
            odd=tried(lambda: pool.run(swap, args=({1, 2},))),
            after=pool.run(swap, args=(5,)),
            elsewhere=tried(lambda: pool.run(only_here)),
            again=pool.run(swap, args=(6,)),
        )
    elif scenario == "fork":
        ours = pool.run(pid)
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, json.dumps(pool.run(pid)).encode())
            pool.shutdown()
            os._exit(0)
        os.waitpid(child, 0)
        say(ours=ours, theirs=json.loads(os.read(reader, 1000)), after=pool.run(pid))
    elif scenario == "interrupted":
        pids = pool.run(pid)

        def interrupt(*_):
            raise KeyboardInterrupt

        signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        interrupted = False
        try:
            pool.run(nap)
        except KeyboardInterrupt:
            interrupted = True
        say(interrupted=interrupted, before=pids, after=pool.run(pid))
    else:
        raise ValueError(scenario)


if __name__ == "__main__":
    pool = clusterrun.Pool({"worker": 2})
    for scenario in sys.argv[1].split(","):
        main(scenario, pool)
