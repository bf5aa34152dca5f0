"""Writes a program's stacks when a user asks what it is doing."""

import os
from typing import List

from . import _stackhook

def _files() -> List[int]:
    """The descriptors of this process's answer file."""
    name = "/memfd:clusterrun-stacks.%d (deleted)" % os.getpid()
    found = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            if os.readlink("/proc/self/fd/" + entry) == name:
                found.append(int(entry))
        except OSError:
            pass
    return found


def enable_stacks() -> bool:
    """Let the host see the stacks of all threads of this process. Return False if that is
    impossible.

    In tasks this is already enabled when Python starts, or, if the run has set python_stacks to
    false or the interpreter ignores its environment, when this package is imported. It must be
    repeated only after a process has closed all its descriptors.
    """
    try:
        if _files():
            return True
        _stackhook.enable(int(os.environ["CLUSTERRUN_STACK_SIGNAL"]))
        return True
    except Exception:  # no such environment, no faulthandler, ...
        return False


def disable_stacks() -> None:
    """Undo enable_stacks. The host no longer asks."""
    try:
        import faulthandler

        faulthandler.unregister(int(os.environ["CLUSTERRUN_STACK_SIGNAL"]))
        for fd in _files():
            os.close(fd)
    except Exception:
        pass
