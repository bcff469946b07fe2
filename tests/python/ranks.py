# SPDX-License-Identifier: Apache-2.0
"""Runs functions on several ranks, each a process of one thread."""

import multiprocessing
import os
import pickle
import socket
import traceback
from dataclasses import dataclass

MODULES = ["torch", "torch_geometric.nn", "tessera.distributed", "tessera.loader", "conftest"]


@dataclass
class Raised:
    """What a function raised on a rank."""

    kind: str
    text: str


def _context():
    """A process that has imported everything, from which ranks are forked: it has run nothing, and so has no threads."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(MODULES)
    return context


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def _work(pipe, environment, function, arguments):
    os.environ.update(environment)
    import torch

    import tessera

    torch.set_num_threads(1)
    torch.manual_seed(1)
    try:
        outcome = function(*pickle.loads(arguments))
    except Exception as error:
        traceback.print_exc()
        outcome = Raised(type(error).__name__, str(error))
    pipe.send_bytes(pickle.dumps(outcome))  # tensors with what they hold: pipes share it between processes
    pipe.close()
    tessera.distributed.end()


def run_ranks(count, function, *arguments, present=None):
    """What the function returned on each rank, what it raised, or None where the process was killed. ``present``: only these
    ranks are started."""
    context = _context()
    threads = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    port, started = str(_free_port()), []
    try:
        for rank in range(count) if present is None else present:
            ours, theirs = context.Pipe(duplex=False)
            environment = {"RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count),
                           "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            process = context.Process(target=_work, args=(theirs, environment, function, pickle.dumps(arguments)))
            process.start()
            theirs.close()
            started.append((process, ours))
        outcomes = []
        for process, ours in started:
            try:
                outcomes.append(pickle.loads(ours.recv_bytes()))
            except EOFError:
                outcomes.append(None)
        for process, _ in started:
            process.join()
        return outcomes
    finally:
        if threads is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = threads
