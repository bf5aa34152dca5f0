"""Has torch start processes by clusterrun.

What torch offers to programs that start others is replaced, once its module is imported:

    torch.distributed.run.main                               clusterrun torchrun
    torch.distributed.launch.main                            clusterrun torchrun
    torch.distributed.launcher.api.elastic_launch            clusterrun torchrun
    torch.distributed.launcher.api.launch_agent              clusterrun torchrun
    torch.distributed.elastic.multiprocessing.start_processes   clusterrun run

Everything else is torch's own. CLUSTERRUN_BIN names the program.
"""

import importlib.abc
import importlib.machinery
import sys


def _replacements():
    """The functions that replace those of a module, by the names of both."""
    from . import etcd, launch, processes

    return {
        "torch.distributed.run": {"main": launch.torchrun},
        "torch.distributed.launch": {"main": launch.launch},
        "torch.distributed.launcher.api": {"elastic_launch": launch.ElasticLaunch, "launch_agent": launch.launch_agent},
        "torch.distributed.elastic.multiprocessing": {"start_processes": processes.start_processes},
        "torch.distributed.elastic.rendezvous.etcd_server": {"EtcdServer": etcd.EtcdServer},
    }


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if not name.startswith("torch.distributed."):
            return None
        replacements = _replacements().get(name)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if replacements else None
        if spec is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            vars(module).update(replacements)

        spec.loader.exec_module = exec_module
        return spec


def install():
    sys.meta_path.insert(0, _Finder())
