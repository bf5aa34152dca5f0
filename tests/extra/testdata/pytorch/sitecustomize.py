"""Python imports this module at its start where its directory is in PYTHONPATH: in the
tests, in the processes that they start, and in those that clusterrun starts for them."""

import os
import sys

import torch_by_clusterrun

torch_by_clusterrun.install()
# Last, so that what is installed comes first.
sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fallback"))
