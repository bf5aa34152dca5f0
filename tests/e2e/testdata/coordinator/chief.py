"""A coordinator that does what the test tells it: the commands in its directory, in their
order. One that was killed begins again with what it has not finished."""

import itertools
import json
import os
import time
import traceback

from scenarios import DIR, SCENARIOS, coordinator


def path(kind, n):
    return os.path.join(DIR, "%s-%d" % (kind, n))


def main():
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
            coordinator().join()
        try:
            said = {"value": SCENARIOS[name](coordinator(), *args)}
        except BaseException:
            said = {"error": traceback.format_exc()}
        with open(path("said", n), "w") as f:
            json.dump(said, f)
        os.rename(path("said", n), path("outcome", n))


main()
