"""torch's store for a build without libuv."""

import os


def store(*args, **options):
    """torch.distributed.TCPStore. USE_LIBUV=0 is meant for a client of an agent's store, too,
    where torch does not read it: no such build could be one."""
    from torch.distributed import TCPStore

    if os.environ.get("USE_LIBUV") == "0":
        options["use_libuv"] = False
    return TCPStore(*args, **options)
