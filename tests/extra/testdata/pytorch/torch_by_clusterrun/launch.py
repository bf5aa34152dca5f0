"""torchrun, and torch's functions that do the same."""

import os
import re
import subprocess
import sys
import tempfile

from . import call, program


def torchrun(args=None):
    """torch.distributed.run.main"""
    _execute(sys.argv[1:] if args is None else args)


def launch(args=None):
    """torch.distributed.launch.main, whose scripts have their local rank as an argument."""
    from torch.distributed import launch

    args = list(sys.argv[1:] if args is None else args)
    parsed = launch.parse_args(args)
    script = len(args) - len(parsed.training_script_args)
    flags = [arg for arg in args[: script - 1] if arg not in ("--use_env", "--use-env")]
    local_rank = [] if parsed.use_env else ["--local_rank=${local_rank}"]
    _execute(flags + [parsed.training_script] + local_rank + parsed.training_script_args)


class ElasticLaunch:
    """torch.distributed.launcher.api.elastic_launch"""

    def __init__(self, config, entrypoint):
        self._config, self._entrypoint = config, entrypoint

    def __call__(self, *args):
        return launch_agent(self._config, self._entrypoint, list(args))


def launch_agent(config, entrypoint, args):
    """torch.distributed.launcher.api.launch_agent, for the fields of the configuration that a
    flag of torchrun has, and for one agent."""
    conf = dict(config.rdzv_configs)
    flags = [
        "--nnodes=%d:%d" % (config.min_nodes, config.max_nodes),
        "--nproc-per-node=%d" % config.nproc_per_node,
        "--rdzv-backend=" + config.rdzv_backend,
        "--rdzv-endpoint=" + config.rdzv_endpoint,
        "--rdzv-id=" + (config.run_id or "none"),
        "--max-restarts=%d" % config.max_restarts,
        "--monitor-interval=%g" % config.monitor_interval,
        "--start-method=" + config.start_method,
        "--role=" + config.role,
        "--no-python",
    ]
    if "rank" in conf:
        flags.append("--node-rank=%d" % conf.pop("rank"))
    if conf:
        flags.append("--rdzv-conf=" + ",".join("%s=%s" % item for item in conf.items()))
    if isinstance(entrypoint, str):
        _execute(flags + [entrypoint] + args)
        return {rank: None for rank in range(config.nproc_per_node)}
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "call")
        _execute(flags + call.command(path, entrypoint, args))
        return {rank: call.value(path, rank) for rank in range(config.nproc_per_node)}


def _execute(args):
    """Execute clusterrun torchrun, and raise what torch raises where it fails."""
    from torch.distributed.elastic import events
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        # sys.stdout and sys.stderr may be no files, and torch writes there, too.
        code = subprocess.run(
            program.command("torchrun", *args),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=dict(os.environ, PYTHON_EXEC=os.environ.get("PYTHON_EXEC", sys.executable)),
        ).returncode
        out.seek(0)
        err.seek(0)
        said = err.read()
        sys.stdout.write(out.read())
        sys.stderr.write(said)
    if code == 2:
        raise ValueError(said)
    # As torch's agent says that it has done its work, whatever has become of the processes.
    events.record(events.Event("clusterrun", events.EventSource.AGENT))
    if code == 0:
        return
    failed = re.search(r"^clusterrun: run (\S+) failed", said, re.MULTILINE)
    if code != 1 or failed is None:
        raise RuntimeError("clusterrun exited with exit code %d" % code)
    raise ChildFailedError("clusterrun torchrun", program.failures(failed.group(1)))
