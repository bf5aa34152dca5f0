"""Functions that need the parameter servers of the run; see ps.py."""

import json
import os
import socket
import time

import clusterrun
from notes import DIR, note


def servers():
    return json.loads(os.environ["TF_CONFIG"])["cluster"]["ps"]


def ask(index, name, n):
    """Add to a number that a parameter server has. Returns the sum."""
    host, port = servers()[index].rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=30) as s, s.makefile("rw") as f:
        f.write(json.dumps({"name": name, "add": n}) + "\n")
        f.flush()
        line = f.readline()
    if not line:
        raise ConnectionError("the connection was closed")
    return json.loads(line)


def update(index, name, n):
    try:
        return ask(index, name, n)
    except OSError as e:
        raise clusterrun.UnavailableError("ps-%d at %s: %s" % (index, servers()[index], e), task="ps-%d" % index) from e


@clusterrun.function
def step(name):
    """One update of a number at each parameter server."""
    return [update(i, name, 1) for i in range(len(servers()))]


@clusterrun.function
def steps(name):
    """Updates until the test makes a file of that name."""
    note("steps %s" % name)
    while not os.path.exists(os.path.join(DIR, name)):
        step(name)
        time.sleep(0.01)
    return name


@clusterrun.function
def slot(name):
    """A resource that is made at the parameter servers."""
    return step(name)
