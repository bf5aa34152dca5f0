"""The processes of a pool. They import the pool's program."""

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import types
from typing import Any, Dict, List, Optional, Tuple

from ._binary import find_binary
from .functions import functions, name_of
from .serving import serve

GRACE = 3.0  # seconds for a process to exit on its own
_CALL_GRACE = 1.0  # seconds for a running call to return at shutdown
# Variables of our environment that tasks do not inherit but their pools need.
_ENVIRON = ("CLUSTERRUN_STATE_DIR", "CLUSTERRUN_DEVSERVER")
_MAIN = "__mp_main__"  # the main program's name in tasks, as in multiprocessing
_TOO_EARLY = """a pool was used while a process of a pool imports the main program.

The processes of a pool import the main program, and must not do there what only the
main program is to do. Put that under

    if __name__ == "__main__":
        ...
"""

_importing_main = False


def refuse_while_importing() -> None:
    """Raise RuntimeError in a pool's process that is importing the main program."""
    if _importing_main:
        raise RuntimeError(_TOO_EARLY)


def pool_function(fn: Any) -> str:
    """Return the name of a function that a pool's processes can have."""
    name = name_of(fn)
    if getattr(functions[name], "__module__", None) in ("__main__", _MAIN):
        why = main_program()[2]
        if why and not _importing_main:  # which raises its own error
            raise ValueError(
                "the function %r belongs to the main program, which the processes of a pool cannot import: %s. "
                "The main program must be a file, or the function in a module" % (name, why)
            )
    return name


def main_program() -> Tuple[Optional[str], Optional[str], str]:
    """Return how to import the main program: a module name, a file, or the reason why neither
    is possible."""
    main = sys.modules.get("__main__")
    name = getattr(getattr(main, "__spec__", None), "name", None)
    path = getattr(main, "__file__", None)
    if name is not None:
        if name == "__main__" or name.endswith(".__main__"):
            return None, None, "the __main__ of a package, a directory or an archive runs at import"
        return name, None, ""
    if path is None:
        return None, None, "it was typed in, or given with -c"
    path = os.path.abspath(path)
    if not os.path.isfile(path):
        return None, None, "there is no file %s" % path
    if os.path.splitext(os.path.basename(path))[0] == "ipython":
        return None, None, "it is the program of ipython"
    return None, path, ""


def run_of(groups: List[Dict[str, Any]], initializer: Optional[str]) -> Dict[str, Any]:
    """Return a pool's run spec. A failing task stops all tasks."""
    name, path, _ = main_program()
    knows = {
        "main_name": name, "main_path": path, "path": [p or os.getcwd() for p in sys.path],
        "argv": sys.argv, "initializer": initializer, "environ": dict(
            {name: os.environ[name] for name in _ENVIRON if name in os.environ}, CLUSTERRUN_BIN=find_binary()
        ),
        "modules": sorted({fn.__module__ for fn in functions.values() if getattr(fn, "__module__", None)} - {"__main__", _MAIN}),
    }
    flags: List[str] = getattr(subprocess, "_args_from_interpreter_flags", list)()
    code = "import sys, json; k = json.loads(sys.argv[1]); sys.path[:] = k['path']; import %s; sys.modules[%r].main(k)"
    return {
        "name": "pool", "tasks": groups,
        "command": [sys.executable, *flags, "-c", code % (__name__, __name__), json.dumps(knows)],
        "on_failure": "stop", "stop": {"grace": "%gs" % GRACE}, "chief_grace": "%gs" % GRACE,
        "stop_together": {"grace": "%gs" % _CALL_GRACE, "ignore_live_tasks": True},
    }


def main(knows: Dict[str, Any]) -> None:
    """The main function of a pool's process."""
    signal.signal(signal.SIGTERM, _end)
    os.environ.update(knows["environ"])
    sys.argv[:] = knows["argv"]
    _import_main(knows["main_name"], knows["main_path"])
    for module in knows["modules"]:
        importlib.import_module(module)
    initializer = knows["initializer"]
    if initializer is not None:
        if initializer not in functions:
            raise RuntimeError("the initializer %r is not registered when the main program is only imported" % initializer)
        functions[initializer]()
    serve()


def _end(*_: Any) -> None:
    raise SystemExit(0)


def _import_main(name: Optional[str], path: Optional[str]) -> None:
    """Import the main program like multiprocessing: under another name, and as __main__ for
    code that requires that name."""
    global _importing_main
    if name is None and path is None:
        return
    main = types.ModuleType(_MAIN)
    _importing_main = True
    try:
        if name is not None:
            content = runpy.run_module(name, run_name=_MAIN, alter_sys=True)
        else:
            content = runpy.run_path(str(path), run_name=_MAIN)
    finally:
        _importing_main = False
    main.__dict__.update(content)
    sys.modules["__main__"] = sys.modules[_MAIN] = main
