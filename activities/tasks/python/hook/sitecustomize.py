BINARY = ""  # the package's program


class Package:
    """Finds the package clusterrun if nothing else does."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "clusterrun":
            return None
        import importlib.util
        import subprocess
        import sys

        sys.meta_path.remove(cls)
        try:
            directory = subprocess.check_output([BINARY, "task", "python", "--dir"], universal_newlines=True)
        except (OSError, subprocess.SubprocessError):
            return None
        sys.path.append(directory.strip())
        return importlib.util.find_spec(name)


def start():
    import os
    import sys

    here = os.path.dirname(__file__)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)
    if sys.version_info >= (3, 8):
        sys.meta_path.append(Package)
        enable(int(os.environ["CLUSTERRUN_STACK_SIGNAL"]))


ourselves = __import__("sys").modules.pop(__name__)  # Python 2 would empty it otherwise
try:
    start()
except Exception:
    pass
import sitecustomize  # the next one, as if this did not exist; if missing, the error says so
