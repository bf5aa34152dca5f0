"""Calls of functions in processes of their own: multiprocessing's spawn, where clusterrun
starts the processes."""

import multiprocessing.spawn
import os
import pickle
import sys


def command(path, function, args):
    """The command that calls a function. File and result are beside path."""
    with open(path, "wb") as f:
        preparation = multiprocessing.spawn.get_preparation_data("call")
        del preparation["authkey"]  # multiprocessing keeps it out of files
        pickle.dump(preparation, f)
        pickle.dump((function, args), f)
    return [sys.executable, "-u", os.path.abspath(__file__), path]


def value(path, rank):
    """What the function has returned in the process of that local rank."""
    with open("%s.%d" % (path, rank), "rb") as f:
        return pickle.load(f)


def main(path):
    with open(path, "rb") as f:
        multiprocessing.spawn.prepare(pickle.load(f))
        function, args = pickle.load(f)
    from torch.distributed.elastic.multiprocessing.errors import record

    returned = record(function)(*args)
    with open("%s.%s" % (path, os.environ["LOCAL_RANK"]), "wb") as f:
        pickle.dump(returned, f)


if __name__ == "__main__":
    del sys.path[0]  # the package's, whose modules are no top-level ones
    main(sys.argv[1])
