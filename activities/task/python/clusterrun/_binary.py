"""The program clusterrun, which does what this package has it do."""

import os
import shutil
import site
import sysconfig

PATH = ""  # of the program that this package came from; "" where it is not known


def find_binary() -> str:
    """The program: the one that is named, that this package came from, that was installed
    with it by pip, or the first in PATH."""
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    scripts = [sysconfig.get_path("scripts"), os.path.join(site.getuserbase(), "bin"), os.path.join(beside, "bin")]
    installed = [os.path.join(directory, "clusterrun") for directory in scripts]
    for path in [os.environ.get("CLUSTERRUN_BIN"), PATH, *installed, shutil.which("clusterrun")]:
        if path and os.access(path, os.X_OK):
            return path
    raise RuntimeError("the program clusterrun is not found; put it into PATH, or name it with CLUSTERRUN_BIN")
