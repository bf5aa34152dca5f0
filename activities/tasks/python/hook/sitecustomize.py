

def note():
    """Write the interpreter and its search path to the directory of the process: the host finds
    the packages by them, for the record of the run. The first program of a task does so."""
    import os
    import sys

    lines = ["%d.%d.%d" % sys.version_info[:3], sys.executable] + sys.path
    text = "\n".join(line for line in lines if "\n" not in line) + "\n"
    if not isinstance(text, bytes):
        text = text.encode("utf-8", "surrogateescape")
    path = os.path.join(os.environ["CLUSTERRUN_LOG_DIR"], "python.paths")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, text)
    finally:
        os.close(fd)


def start():
    import os
    import sys

    here = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    if sys.version_info >= (3, 8):
        enable(int(os.environ["CLUSTERRUN_STACK_SIGNAL"]))


ourselves = __import__("sys").modules.pop(__name__)  # Python 2 would empty it otherwise
try:
    start()
except Exception:
    pass
try:
    note()
except Exception:
    pass
import sitecustomize  # the next one, as if this did not exist; if there is none, the error says so
