"""Finds the program clusterrun, which this package executes."""

import os
import shutil
import site
import sysconfig

PATH = ""  # this package's program; "" if unknown


def find_binary() -> str:
    """Return the program's path: the program named by CLUSTERRUN_BIN, this package's program,
    one that pip installed with it, or the first one in PATH."""
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    scripts = [sysconfig.get_path("scripts"), os.path.join(site.getuserbase(), "bin"), os.path.join(beside, "bin")]
    installed = [os.path.join(directory, "clusterrun") for directory in scripts]
    for path in [os.environ.get("CLUSTERRUN_BIN"), PATH, *installed, shutil.which("clusterrun")]:
        if path and os.access(path, os.X_OK):
            return path
    raise RuntimeError("the program clusterrun was not found; put it into PATH, or name it with CLUSTERRUN_BIN")
