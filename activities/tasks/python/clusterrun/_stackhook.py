# Shows the host where this program is; see `clusterrun help hangs`. This file is part of the
# package, and of a sitecustomize that every Python program of a task executes first. So it
# imports nothing slow, is silent about failures, and is readable by Python 2.


def open_file(high):  # type: (int) -> int
    """Return a descriptor of an in-memory file named for this process. The host reads it
    through /proc. The descriptor is a high one if that is free: a program may rely on its first
    file to be number 3."""
    import os

    name = "clusterrun-stacks.%d" % os.getpid()
    try:
        fd = os.memfd_create(name)
    except OSError:  # vm.memfd_noexec asks for MFD_NOEXEC_SEAL
        fd = os.memfd_create(name, 1 | 8)
    try:
        os.fstat(high)
    except OSError:
        try:
            os.dup2(fd, high, False)
        except OSError:  # above the limit
            return fd
        os.close(fd)
        return high
    return fd


def enable(number):  # type: (int) -> None
    """Write all threads' stacks to such a file on the signal: of many threads, the newest
    hundred."""
    import os
    import sys

    known = "faulthandler" in sys.modules
    import faulthandler

    if not known:
        del sys.modules["faulthandler"]
    import _signal  # type: ignore[import]

    fd = open_file(1000)
    info = os.fstat(fd)
    state = {"file": (info.st_dev, info.st_ino)}

    def is_open():  # type: () -> bool
        try:  # the program may have closed and reused the descriptor
            info = os.fstat(fd)
        except OSError:
            return False
        return (info.st_dev, info.st_ino) == state.get("file")

    def give_up():  # type: () -> None
        faulthandler.unregister(number)
        if is_open():
            os.close(fd)
        state.clear()

    def after_fork():  # type: () -> None
        if not state:
            return
        try:  # the file is the parent's
            if not is_open():
                return give_up()
            new = open_file(fd)
            os.dup2(new, fd, False)
            os.close(new)
            info = os.fstat(fd)
            state["file"] = (info.st_dev, info.st_ino)
        except Exception:
            pass

    try:
        faulthandler.register(number, file=fd, all_threads=True, chain=False)
    except BaseException:
        os.close(fd)
        raise
    os.register_at_fork(after_in_child=after_fork)
    register = _signal.signal

    def signal(*args):  # type: ignore # a program that uses the signal itself keeps it
        if state and args and args[0] == number:
            give_up()
        return register(*args)

    _signal.signal = signal
