import multiprocessing, subprocess, warnings
warnings.simplefilter("ignore")
def child(queue):
    queue.put([os.getpid() != parent, clusterrun.cancelled()])
parent = os.getpid()
@clusterrun.function
def f():
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    value = queue.get()
    process.join()
    assert subprocess.run(["true"]).returncode == 0
    pid = os.fork()
    if pid == 0:
        return "the child returns"
    return value + [os.WEXITSTATUS(os.waitpid(pid, 0)[1])]
@clusterrun.function
def g(): return 1
clusterrun.serve()
