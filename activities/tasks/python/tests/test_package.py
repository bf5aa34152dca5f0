"""Tests of the package as a whole: its public names, and its modules' imports."""

import ast
import importlib
import pathlib
import pkgutil
import subprocess
import sys
import unittest

import clusterrun

HERE = pathlib.Path(clusterrun.__file__).parent
NAMES = """
Barrier BarrierTimeoutError BrokenBarrierError CancelledError ClosureError ClusterCoordinator Coordinator InputError Looper
LooperThread PerWorkerValues Pool RemoteValue RemoteValueStatus StopError TaskError UnavailableError WatchDog
barrier cancelled cluster disable_stacks enable_stacks error function get_barrier handle_parameter_server_failure
info loads main preempted progress record request_stop restart_count result run serve should_stop wait_for_stop
""".split()
# These modules are rules without a host: they do not use sockets, processes or clocks.
PURE = ("_arguments", "_errors", "_event", "_http", "_json", "_pooltasks", "_values", "functions", "remote")
IMPURE = {"os", "select", "signal", "socket", "subprocess", "time", "clusterrun._transport"}


class PackageTest(unittest.TestCase):
    def test_the_public_names(self):
        self.assertEqual(sorted(clusterrun.__all__), NAMES)
        everything = {}
        exec("from clusterrun import *", everything)
        self.assertEqual(sorted(set(everything) - {"__builtins__"}), NAMES)
        self.assertLessEqual(set(NAMES), set(dir(clusterrun)))
        with self.assertRaisesRegex(AttributeError, "module 'clusterrun' has no attribute 'unknown'"):
            clusterrun.unknown  # noqa: B018

    def test_modules_do_not_take_the_place_of_names(self):
        before = {name: getattr(clusterrun, name) for name in NAMES}
        for module in pkgutil.iter_modules([str(HERE)]):
            importlib.import_module("clusterrun." + module.name)
        self.assertEqual(before, {name: getattr(clusterrun, name) for name in NAMES})
        for name, value in before.items():
            self.assertNotEqual(type(value), type(clusterrun), name)
            if isinstance(value, type):
                self.assertEqual(value.__module__, "clusterrun", name)

    def test_what_few_need_is_imported_when_it_is_asked_for(self):
        program = "import sys, clusterrun; print(*sorted(m for m in sys.modules if m.startswith('clusterrun.')))"
        loaded = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, cwd=str(HERE.parent)).stdout
        names = [name.split(".")[1] for name in loaded.decode().split()]
        self.assertEqual(
            names,
            ["_errors", "_event", "_http", "_json", "_stackhook", "_transport"]
            + ["barrier", "coordinator", "functions", "looper", "stacks", "stop", "task"],
        )

    def test_rules_are_apart_from_sockets(self):
        known = {}

        def imports(name):
            """Return what a module imports, directly or through the package's modules."""
            if name not in known:
                known[name] = found = set()
                for node in ast.parse((HERE / (name + ".py")).read_text()).body:
                    if isinstance(node, ast.Import):
                        found.update(alias.name for alias in node.names)
                    elif isinstance(node, ast.ImportFrom) and node.level:
                        found.add("clusterrun." + node.module)
                        found.update(imports(node.module))
                    elif isinstance(node, ast.ImportFrom):
                        found.add(node.module)
            return known[name]

        for name in PURE:
            self.assertEqual(set(), imports(name) & IMPURE, name)


if __name__ == "__main__":
    unittest.main()
