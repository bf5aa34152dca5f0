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
import sitecustomize  # the next one, as if this did not exist; if there is none, the error says so
