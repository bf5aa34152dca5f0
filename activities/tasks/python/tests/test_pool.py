"""Tests of a pool's handling of the main program. No pool is started."""

import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROGRAM = """
import clusterrun, clusterrun._poolprocess as pools, module

@clusterrun.function
def mine():
    pass

def say():
    name, path, _ = pools.main_program()
    try:
        mine_name = pools.pool_function(mine)
    except ValueError as e:
        mine_name = "refused: %s" % e
    print(name, path, pools.pool_function(module.theirs), mine_name, sep="|")

say()
"""
REFUSED = (
    "refused: the function 'mine' belongs to the main program, which the processes of a pool cannot import: %s. "
    "The main program must be a file, or the function in a module"
)
AT_ONCE = "the __main__ of a package, a directory or an archive runs at import"


class MainPrograms(unittest.TestCase):
    def run_as(self, *args, **options):
        """Return what the program prints: its module, file and functions."""
        env = dict(os.environ, PYTHONPATH=PROJECT + os.pathsep + self.dir, PYTHONDONTWRITEBYTECODE="1")
        out = subprocess.run([sys.executable] + list(args), cwd=self.dir, env=env, stdout=subprocess.PIPE, check=True, **options).stdout
        return out.decode().strip().split("|")

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.dir = os.path.realpath(directory.name)
        os.mkdir(os.path.join(self.dir, "package"))
        self.write("module.py", "import clusterrun\n@clusterrun.function\ndef theirs():\n    pass\n")
        for name in ("program.py", "package/__init__.py", "package/part.py", "package/__main__.py"):
            self.write(name, "" if name.endswith("__init__.py") else PROGRAM)
        with zipfile.ZipFile(os.path.join(self.dir, "program.zip"), "w") as z:
            z.writestr("__main__.py", PROGRAM)

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(text)

    def test_a_file(self):
        self.assertEqual(self.run_as("program.py"), ["None", os.path.join(self.dir, "program.py"), "theirs", "mine"])

    def test_a_module(self):
        self.assertEqual(self.run_as("-m", "package.part"), ["package.part", "None", "theirs", "mine"])

    def test_what_cannot_be_imported(self):
        for args in (["-m", "package"], ["package"], ["program.zip"]):
            self.assertEqual(self.run_as(*args), ["None", "None", "theirs", REFUSED % AT_ONCE])
        self.assertEqual(self.run_as("-c", PROGRAM), ["None", "None", "theirs", REFUSED % "it was typed in, or given with -c"])
        *others, mine = self.run_as("-", input=PROGRAM.encode())
        self.assertEqual(others, ["None", "None", "theirs"])
        self.assertRegex(mine, REFUSED.replace(".", "[.]") % "(it was typed in, or given with -c|there is no file .*)")


if __name__ == "__main__":
    unittest.main()
