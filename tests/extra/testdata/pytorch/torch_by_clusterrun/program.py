"""The program clusterrun, and what it says of a run that it has carried out."""

import json
import os
import subprocess


def command(*args):
    """The command line of clusterrun, which is noted for who wants to know that it was used."""
    note = os.environ.get("CLUSTERRUN_CALLS")
    if note:
        with open(note, "a") as f:
            f.write(args[0] + "\n")
    return [os.environ["CLUSTERRUN_BIN"], *args]


def _status(run):
    status = subprocess.run(
        [os.environ["CLUSTERRUN_BIN"], "--json", "status", run], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    return json.loads(status.stdout.decode()) if status.returncode == 0 else {}


def tasks(run):
    """The tasks of a run, as far as there are any yet."""
    return _status(run).get("tasks") or []


def failures(run):
    """The processes that made a run fail, as torch tells of them."""
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

    return {
        task["rank"]: ProcessFailure(
            local_rank=task["rank"],
            pid=task["exit"].get("pid", 0),
            exitcode=task["exit"]["exit_code"],
            error_file=task["exit"].get("error_file", ""),
        )
        for task in _status(run)["result"]["tasks"]
        if task.get("failed")
    }
