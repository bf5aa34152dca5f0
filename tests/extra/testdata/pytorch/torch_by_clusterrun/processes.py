"""torch.distributed.elastic.multiprocessing.start_processes, by clusterrun run."""

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
import uuid

from . import call, program


def start_processes(name, entrypoint, args, envs, *logs, **options):
    """Both signatures: with log_dir, redirects and tee, as until torch 2.2, and with
    logs_specs. A start method has no meaning: each process is a separate program."""
    from torch.distributed.elastic import multiprocessing

    if hasattr(multiprocessing, "LogsSpecs"):
        specs = options.get("logs_specs") or logs[0]
        masks = specs._redirects, specs._tee
        dest = specs.reify(envs)
        files = dest.stdouts, dest.stderrs, dest.error_files
    else:
        log_dir = options.get("log_dir") or logs[0]
        masks = options.get("redirects", 0), options.get("tee", 0)
        files = _files(log_dir, len(args), *masks)
    context = Processes(name, entrypoint, args, envs, masks, *files)
    try:
        context.start()
    except BaseException:
        context.close()
        raise
    return context


def _of_rank(mask, rank):
    return int(mask.get(rank, 0) if isinstance(mask, dict) else mask)


def _files(log_dir, size, redirects, tee):
    """The files of the processes, as torch has them below log_dir."""
    stdouts, stderrs, error_files = {}, {}, {}
    for rank in range(size):
        directory = os.path.join(log_dir, str(rank))
        os.mkdir(directory)
        mask = _of_rank(redirects, rank) | _of_rank(tee, rank)
        stdouts[rank] = os.path.join(directory, "stdout.log") if mask & 1 else ""
        stderrs[rank] = os.path.join(directory, "stderr.log") if mask & 2 else ""
        error_files[rank] = os.path.join(directory, "error.json")
    return stdouts, stderrs, error_files


class Processes:
    """torch's PContext: processes that are started, waited for, and ended together."""

    def __init__(self, name, entrypoint, args, envs, masks, stdouts, stderrs, error_files):
        self.name, self.nprocs = name, len(args)
        self.stdouts, self.stderrs, self.error_files = stdouts, stderrs, error_files
        self._directory = tempfile.TemporaryDirectory()
        self._functions = not isinstance(entrypoint, str)
        self._id = "processes-" + uuid.uuid4().hex[:12]
        overrides = {}
        for rank in range(self.nprocs):
            arguments = args[rank] if isinstance(args[rank], tuple) else (args[rank],)
            if self._functions:
                command = call.command(self._path(rank), entrypoint, arguments)
            else:
                command = [entrypoint] + [str(argument) for argument in arguments]
            env = {key: value for key, value in envs[rank].items() if key != "TORCHELASTIC_ERROR_FILE"}
            overrides[str(rank)] = {"command": command, "env": env}
        redirects, tee = (",".join("%d:%d" % (r, _of_rank(m, r)) for r in range(self.nprocs)) for m in masks)
        self._spec = {
            "tasks": [{"type": "worker", "count": self.nprocs, "overrides": overrides}],
            "env_profiles": ["torch"],
            "logs": {"redirects": redirects, "tee": tee},
        }
        self._process = None
        self._pids = {}
        self._stdout_tail = self._stderr_tail = self

    def _path(self, rank):
        return os.path.join(self._directory.name, "call-%d" % rank)

    def start(self):
        """Start the processes, and return when all of them have been."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
                signal.signal(number, _raise_signal)
        with open(os.path.join(self._directory.name, "spec.json"), "w") as f:
            json.dump(self._spec, f)
        self._process = subprocess.Popen(program.command("run", "--id", self._id, f.name), stdin=subprocess.DEVNULL)
        stopped = False
        while len(self._pids) < self.nprocs and not stopped:
            stopped = self.stopped()
            self._learn()
        if self._process.poll() in (126, 127):
            raise FileNotFoundError(self.name)

    def _learn(self):
        """Learn what is known of the processes, and have their files where torch has them."""
        for task in program.tasks(self._id):
            rank = task["rank"]
            if rank not in self._pids and task.get("pid"):
                self._pids[rank] = task["pid"]
                for path in (self.stdouts[rank], self.stderrs[rank], self.error_files[rank]):
                    if path:
                        os.symlink(os.path.join(task["log_dir"], os.path.basename(path)), path)

    def pids(self):
        return dict(self._pids)

    def stopped(self):
        """Report whether no more output is shown."""
        return self._process.poll() is not None

    def wait(self, timeout=-1, period=1):
        """Return how the processes have ended; None: they have not within timeout seconds."""
        from torch.distributed.elastic.multiprocessing import ProcessFailure, RunProcsResult

        deadline = time.monotonic() + timeout
        while not self.stopped():
            if 0 <= timeout and deadline < time.monotonic():
                return None
            time.sleep(period)
        failures = {
            rank: ProcessFailure(rank, failure.pid, failure.exitcode, self.error_files[rank])
            for rank, failure in program.failures(self._id).items()
        }
        if self._process.returncode != 0 and not failures:
            raise RuntimeError("clusterrun exited with exit code %d" % self._process.returncode)
        values = {}
        if not failures:
            values = {rank: call.value(self._path(rank), rank) if self._functions else None for rank in range(self.nprocs)}
        return RunProcsResult(values, failures, self.stdouts, self.stderrs)

    def close(self, death_sig=signal.SIGTERM):
        """Stop the processes, and return when they have ended."""
        if self._process is not None:
            if self._process.poll() is None:
                self._process.send_signal(death_sig)
            self._process.wait()


def _raise_signal(number, frame):
    from torch.distributed.elastic.multiprocessing import SignalException

    raise SignalException("process %d got signal %d" % (os.getpid(), number), signal.Signals(number))
