"""A coordinator that does what the test tells it: the commands in its directory, in their
order. One that was killed begins again with what it has not finished."""

import itertools
import json
import os
import time
import traceback

import clusterrun
from scenarios import DIR, SCENARIOS, coordinator


def path(kind, n):
    return os.path.join(DIR, "%s-%d" % (kind, n))


def main():
    c = coordinator()
    for n in itertools.count():
        if os.path.exists(path("outcome", n)):
            continue
        while not os.path.exists(path("command", n)):
            time.sleep(0.01)
        with open(path("command", n)) as f:
            name, args = json.load(f)
        if name == "return":
            return
        if name == "raise":
            with clusterrun.handle_parameter_server_failure():
                c.join()
        try:
            said = {"value": SCENARIOS[name](c, *args)}
        except BaseException:
            said = {"error": traceback.format_exc()}
        with open(path("said", n), "w") as f:
            json.dump(said, f)
        os.rename(path("said", n), path("outcome", n))


clusterrun.main(main)
