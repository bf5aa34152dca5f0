"""Tests of clusterrun.run, and of the program it runs, replaced by a script."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import clusterrun
from clusterrun import _binary

PROJECT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The script prints its arguments, and the signal that stopped it.
PROGRAM = """#!%s
import json, os, signal, sys, time
said = {"args": sys.argv[1:]}
if sys.argv[-1] == "-":
    said["spec"] = json.load(sys.stdin)
if "wait" in sys.argv:
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    if "interrupt" in sys.argv:
        os.kill(os.getppid(), signal.SIGINT)
    said["signal"] = signal.sigwait(signals)
    print(json.dumps(said), flush=True)
    sys.exit(128 + said["signal"])
if "read" in sys.argv:
    said["stdin"] = sys.stdin.read()
print(json.dumps(said))
sys.exit(int(os.environ.get("CODE", "0")))
""" % sys.executable


class RunTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.binary = os.path.join(directory.name, "clusterrun")
        with open(self.binary, "w") as f:
            f.write(PROGRAM)
        os.chmod(self.binary, 0o755)
        patch = mock.patch.dict(os.environ, CLUSTERRUN_BIN=self.binary)
        patch.start()
        self.addCleanup(patch.stop)

    def test_the_arguments_are_those_of_the_command(self):
        done = clusterrun.run(["-n", "2", "--", "./program"], capture_output=True, text=True)
        self.assertIsInstance(done, subprocess.CompletedProcess)
        self.assertEqual(done.args, [self.binary, "run", "-n", "2", "--", "./program"])
        self.assertEqual(json.loads(done.stdout), {"args": ["run", "-n", "2", "--", "./program"]})
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_spec_goes_to_stdin(self):
        spec = {"command": ["./program"], "tasks": [{"type": "worker", "count": 2}], "name": "größe"}
        for text in (False, True):
            done = clusterrun.run(spec, capture_output=True, text=text)
            self.assertEqual(json.loads(done.stdout), {"args": ["run", "-"], "spec": spec})

    def test_input(self):
        done = clusterrun.run(["read"], input=b"some", stdout=subprocess.PIPE)
        self.assertEqual(json.loads(done.stdout)["stdin"], "some")

    def test_check(self):
        env = dict(os.environ, CODE="7")
        self.assertEqual(clusterrun.run([], env=env, stdout=subprocess.DEVNULL).returncode, 7)
        with self.assertRaises(subprocess.CalledProcessError) as caught:
            clusterrun.run([], env=env, check=True, capture_output=True)
        self.assertEqual(caught.exception.returncode, 7)
        self.assertEqual(json.loads(caught.exception.stdout), {"args": ["run"]})

    def test_a_timeout_asks_the_run_to_stop(self):
        def block():  # includes the program's startup
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})

        with self.assertRaises(subprocess.TimeoutExpired) as caught:
            clusterrun.run(["wait"], timeout=0.01, capture_output=True, text=True, preexec_fn=block)
        self.assertEqual(json.loads(caught.exception.stdout)["signal"], signal.SIGTERM)

    def test_ctrl_c_asks_the_run_to_stop(self):
        program = "import clusterrun; clusterrun.run(['wait', 'interrupt'])"
        env = dict(os.environ, PYTHONPATH=PROJECT)
        ours = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=False)
        self.assertEqual(json.loads(ours.stdout.decode())["signal"], signal.SIGINT)
        self.assertIn("KeyboardInterrupt", ours.stderr.decode())

    def test_what_is_no_run(self):
        for args, options, says in (
            ("-n 4 ./program", {}, "as a list"),
            (["./program"], {"input": "", "stdin": subprocess.PIPE}, "stdin cannot be used"),
            ({"command": ["./program"]}, {"input": ""}, "so input cannot be used"),
            ({"command": ["./program"]}, {"stdin": subprocess.PIPE}, "stdin cannot be used"),
            (["./program"], {"capture_output": True, "stdout": None}, "cannot be used with capture_output"),
        ):
            with self.assertRaisesRegex((TypeError, ValueError), says):
                clusterrun.run(args, **options)

    def test_which_program_it_is(self):
        self.assertEqual(_binary.find_binary(), self.binary)
        beside = os.path.join(os.path.dirname(self.binary), "bin", "clusterrun")
        os.mkdir(os.path.dirname(beside))
        os.rename(self.binary, beside)  # like pip install --target
        module = os.path.join(os.path.dirname(self.binary), "clusterrun", "_binary.py")
        scripts = mock.patch("sysconfig.get_path", lambda _: "/nowhere")
        with mock.patch.object(_binary, "__file__", module), scripts:
            self.assertEqual(_binary.find_binary(), beside)
            os.chmod(beside, 0o644)
            with mock.patch.dict(os.environ, PATH="/nowhere", PYTHONUSERBASE="/nowhere"), mock.patch("site.USER_BASE", None):
                with self.assertRaisesRegex(RuntimeError, "put it into PATH, or name it with CLUSTERRUN_BIN"):
                    _binary.find_binary()

    def test_the_module_is_the_program(self):
        env = dict(os.environ, PYTHONPATH=PROJECT, CODE="3")
        done = subprocess.run([sys.executable, "-m", "clusterrun", "version"], env=env, stdout=subprocess.PIPE, check=False)
        self.assertEqual((done.returncode, json.loads(done.stdout.decode())), (3, {"args": ["version"]}))


if __name__ == "__main__":
    unittest.main()
