#!/usr/bin/env python3
"""PyTorch DistributedDataParallel on CPUs, as one would write it for torchrun.

Nothing in here knows clusterrun: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
come from the environment. With "fail" or "hang", rank 2 does so in its tenth step,
to show what a launcher says.
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def batches(rank, steps):
    """Each rank has examples of its own, of the same function."""
    generator = torch.Generator().manual_seed(1000 + rank)
    for step in range(steps):
        if rank == 2 and step == 10 and "fail" in sys.argv:
            raise ValueError("shapes (3,) and (4,) do not match")
        if rank == 2 and step == 10 and "hang" in sys.argv:
            time.sleep(3600)
        x = torch.randn(64, 8, generator=generator)
        yield x, x.square().sum(dim=1, keepdim=True) / 8


def gather_parameters(model, world):
    """Returns this rank's parameters and the parameters of all ranks."""
    mine = torch.cat([p.detach().flatten() for p in model.parameters()])
    theirs = [torch.empty_like(mine) for _ in range(world)]
    dist.all_gather(theirs, mine)
    return mine, theirs


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    print("rank %d of %d, local rank %s" % (rank, world, os.environ["LOCAL_RANK"]))

    torch.manual_seed(rank)  # different on purpose: DDP takes the parameters of rank 0
    model = DistributedDataParallel(
        torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    first = last = None
    for x, y in batches(rank, steps=100):
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()  # averages the gradients over all ranks
        optimizer.step()
        last = loss.item()
        first = last if first is None else first

    mine, theirs = gather_parameters(model, world)
    for other, parameters in enumerate(theirs):
        assert torch.equal(mine, parameters), "rank %d and rank %d disagree" % (rank, other)
    assert last < first, "the loss went from %f to %f" % (first, last)
    print("rank %d agrees with all others; its loss went from %.3f to %.3f" % (rank, first, last))
    dist.destroy_process_group()
    # Before the tensors that were gathered: a thread of gloo would else be the
    # last to let go of them, and in torch 1.13 that thread and this thread can then
    # wait for each other for ever.
    del model


if __name__ == "__main__":
    main()
