"""Starts runs like subprocess.run starts commands."""

import json
import signal
import subprocess
from typing import Any, Mapping, Optional, Sequence, Union

from ._binary import find_binary


def run(
    args: Union[Sequence[str], Mapping[str, Any]],
    *,
    input: Any = None,  # noqa: A002 - as with subprocess.run
    capture_output: bool = False,
    timeout: Optional[float] = None,
    check: bool = False,
    **options: Any,
) -> "subprocess.CompletedProcess[Any]":
    """Run a cluster and wait for it to finish.

        clusterrun.run(["-n", "4", "--", "python3", "train.py"], check=True)
        clusterrun.run({"command": ["python3", "train.py"], "tasks": [{"type": "worker", "count": 4}]})

    args are the arguments of the command `clusterrun run`, or a run spec. Everything else is
    like subprocess.run, including its options and the CompletedProcess it returns. returncode
    is the root cause's exit code, and with check CalledProcessError is raised if that is not 0.
    On timeout or Ctrl-C, the tasks are stopped as their spec defines, with their grace, before
    the exception is raised.
    """
    if isinstance(args, (str, bytes)):
        raise TypeError('args is %r; pass the arguments of `clusterrun run` as a list, such as ["-n", "4", "--", "./program"]' % args)
    command = [find_binary(), "run"]
    if isinstance(args, Mapping):
        if input is not None:
            raise ValueError("a run spec is passed through the stdin of `clusterrun run`, so input cannot be used")
        text = any(options.get(name) for name in ("text", "encoding", "errors", "universal_newlines"))
        input = json.dumps(args) if text else json.dumps(args).encode()
        command.append("-")
    else:
        command.extend(args)
    if input is not None:
        if "stdin" in options:
            raise ValueError("stdin cannot be used with input or a run spec")
        options["stdin"] = subprocess.PIPE
    if capture_output:
        if "stdout" in options or "stderr" in options:
            raise ValueError("stdout and stderr cannot be used with capture_output")
        options["stdout"] = options["stderr"] = subprocess.PIPE
    with subprocess.Popen(command, **options) as process:
        # The signal below must be sent immediately: right after the terminal's it counts as the
        # same one, but later as a request to kill.
        process._sigint_wait_secs = 0.0  # type: ignore[attr-defined]
        try:
            stdout, stderr = process.communicate(input, timeout=timeout)
        except BaseException as e:
            process.send_signal(signal.SIGINT if isinstance(e, KeyboardInterrupt) else signal.SIGTERM)
            stdout, stderr = process.communicate()
            if isinstance(e, subprocess.TimeoutExpired):
                e.stdout, e.stderr = stdout, stderr
            raise
    if check and process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args, stdout, stderr)
    return subprocess.CompletedProcess(process.args, process.returncode, stdout, stderr)
