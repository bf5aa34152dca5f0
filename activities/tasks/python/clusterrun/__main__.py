"""python -m clusterrun runs the program clusterrun."""

import os
import sys

from ._binary import find_binary

if __name__ == "__main__":
    program = find_binary()
    os.execv(program, [program, *sys.argv[1:]])
