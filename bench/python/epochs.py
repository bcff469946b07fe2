#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training epochs of PyG models, plain and accelerated, side by side.

    python bench/python/epochs.py --device cpu --cases cora/eager/fp32 arxiv/compiled/bf16 \
        --models GCN SAGE GIN GAT GATv2 --json epochs.json

Graphs are random ones of the size and mean degree of the data sets they are named after. An epoch is
forward, loss, backward and Adam. On a GPU, epochs are timed in blocks of five (one, if an epoch takes more
than 50 ms), between which the host waits for the GPU, as it does in a loop that prints a loss now and then.
Times are the median of blocks after the first (`host_ms` in the records: what the host takes to queue an
epoch); --shortest prints the shortest instead, for machines that others use, too, and --clock processor
counts what the processor works (with OMP_NUM_THREADS=1).

A case is measured in a process of its own, PyG and ours one after the other, with all its models; where
they are compiled, each model has one. --jobs starts so many processes at once, which compile side by side.
They are measured one at a time, once all of them are ready and nothing else runs; epochs on reddit-size,
which keep the GPU busy whatever the host does, are measured before that if they need no compiling. --prepare
compiles without measuring, for the cache of compiled code; --after FILE measures nothing before there is such
a file, so that processes get ready while the GPU is somebody else's, and --ready-within leaves out those that
take longer for it.

Losses are compared after 50 epochs, or after 20 or 5 where --seconds or --epochs leave no more. Where they
differ by more than 1e-4 (bf16: 2e-2), PyG is trained once more with its edges in another order, which changes
nothing but how sums are rounded: "PyG itself" is what that makes of PyG's loss. In bf16, PyG is trained in
fp32 as well, and "from fp32" says how far PyG's loss and ours are from that. Training may blow up what was
rounded, so gradients of the first step are compared as well: the largest difference of an element, relative
to the largest element of its parameter, from PyG in fp32. What waits for the GPU cannot be captured, which is
found out before trying.
"""

import argparse
import contextlib
import gc
import json
import multiprocessing
import os
import platform
import signal
import time

import torch
from epoch_records import LOSS_BOUNDS, WHO, apart, compared_after, line, loss_difference, write_table
from training import GRAPHS, Training, commit, make_graph, measure, reordered, versions

import tessera

MODELS = ["GCN", "SAGE", "GIN", "GAT", "GATv2"]
MODES = ("eager", "compiled", "captured")
NO_DATA = (None, None, None)
LARGE = ("reddit",)
BLOCKS = 10  # of a round in which both are measured in turns
SHARE = 0.1  # of the GPU's memory, for a large graph while others get ready beside it


def wants_memory(error):
    """Whether there was too little of it; for want of a CPU's, torch has no error of its own."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or "allocate memory" in str(error)


@contextlib.contextmanager
def patience(seconds):
    """What is inside ends with a TimeoutError after so many seconds, between two operators that Python calls."""
    def lost(*_):
        raise TimeoutError(f"no end after {seconds:g} s")

    signal.signal(signal.SIGALRM, lost)
    signal.setitimer(signal.ITIMER_REAL, 0 if seconds == float("inf") else seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def fresh(device):
    """Nothing of what ran before is left."""
    tessera.clear_cache()
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def compiled(kind, accelerated, graph, dtype, device):
    """A model that has run its first step, without its graph. One that could not for want of memory beside others is
    compiled all the same, backward pass included."""
    data = make_graph(graph, device)
    training = Training(kind, accelerated, "compiled", data, dtype)
    shared = graph in LARGE and device.type == "cuda"
    if shared:
        torch.cuda.set_per_process_memory_fraction(SHARE)
    try:
        with torch._functorch.config.patch(force_non_lazy_backward_lowering=True):
            training.run(1)
    except Exception as error:
        print(f"# {graph} {kind} {dtype} did not run while others did: {type(error).__name__}", flush=True)
    training.take(NO_DATA)
    del data
    fresh(device)
    if shared:
        torch.cuda.set_per_process_memory_fraction(1.0)
    return training


def measured(training, data, options):
    """The times of a case, the gradients of its first step, and the clock. `training` makes what is trained."""
    device = data[0].device
    fresh(device)
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    try:
        before = 0
        if device.type == "cuda":
            before = torch.cuda.memory_allocated() - sum(tensor.nbytes for tensor in data)
        with patience(options.patience):
            trained = training()
            trained.take(data)
            clocked, losses = measure(trained, options.epochs, options.seconds, clock)
        result = {**clocked.result(), **losses}
        if device.type == "cuda":
            result["peak_bytes"] = torch.cuda.max_memory_allocated() - before
        return result, trained.gradients, clocked
    except torch.OutOfMemoryError as error:
        free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() if device.type == "cuda" else 0
        return {"error": f"{type(error).__name__}: {error}"[:200], "free_bytes": free}, None, None
    except Exception as error:  # one that cannot run must not end the others
        return {"error": f"{type(error).__name__}: {error}"[:200]}, None, None


def pyg_loss(kind, data, dtype, epochs):
    """PyG's loss after so many epochs."""
    fresh(data[0].device)
    return Training(kind, False, "eager", data, dtype).run(epochs)[f"loss_after_{epochs}"].item()


def first_gradients(kind, data):
    """PyG's in fp32, or None where they take too much memory."""
    fresh(data[0].device)
    training = Training(kind, False, "eager", data, "fp32")
    try:
        training.run(1)
    except RuntimeError as error:
        if not wants_memory(error):
            raise
    return training.gradients


def gradient_differences(gradients, expected):
    """How far gradients of the first step are from PyG's in fp32, by who made them."""
    if expected is None:
        return None
    return {who: max(((a - b).abs().max() / b.abs().max().clamp(min=1e-30)).item()
                     for a, b in zip(found, expected))
            for who, found in gradients.items() if found is not None and found is not expected}


def compare_losses(record, data):
    """What else losses tell, where they differ by more than they should."""
    kind, dtype = record["model"], record["precision"]
    difference = loss_difference(record)
    if difference is None or difference <= LOSS_BOUNDS[dtype]:
        return
    after = compared_after(record)
    losses = {who: record[who][f"loss_after_{after}"] for who in WHO}
    record["pyg_itself"] = apart(pyg_loss(kind, reordered(data), dtype, after), losses["pyg"])
    if dtype != "fp32":
        wide = pyg_loss(kind, data, "fp32", after)
        record["from_fp32"] = {who: apart(loss, wide) for who, loss in losses.items()}


def compare(case, kind, made, data, options):
    """The record of one model; `made` holds models that are compiled already."""
    graph, mode, dtype = case
    on_gpu = data[0].is_cuda
    record = {"graph": graph, "model": kind, "precision": dtype, "mode": mode,
              "device": torch.cuda.get_device_name() if on_gpu else platform.machine(),
              "threads": torch.get_num_threads(), "clock": options.clock, "commit": commit(), "versions": versions()}
    gradients, clocks = {}, {}
    for who in WHO:
        def training(who=who):
            return made.pop(who, None) or Training(kind, who == "tessera", mode, data, dtype)

        record[who], gradients[who], clocked = measured(training, data, options)
        if clocked is not None and options.rounds > 1:
            clocks[who] = clocked
    for _ in range((options.rounds - 1) * BLOCKS):
        for clocked in clocks.values():
            clocked.run()
    for who, clocked in clocks.items():
        record[who].update(clocked.result())
    clocks.clear()
    try:
        compare_losses(record, data)
        given_up = "TimeoutError" in record["pyg"].get("error", "")
        expected = gradients["pyg"] if dtype == "fp32" or given_up else first_gradients(kind, data)
    except RuntimeError as error:
        if not wants_memory(error):
            raise
        expected = None
    record["gradients"] = gradient_differences(gradients, expected)
    return record


def work(case, models, options, parent):
    """A process: gets ready, waits for its turn and sends a record for each model, then None."""
    graph, mode, dtype = case
    device = torch.device(options.device)
    torch.ones(1, device=device)
    made = {who: compiled(models[0], who == "tessera", graph, dtype, device) for who in WHO} if mode == "compiled" else {}
    gc.collect()
    gc.freeze()  # looking through all that was imported for every model would take longer than to train it
    parent.send("ready")
    if parent.recv() == "go":
        data = make_graph(graph, device)
        for kind in models:
            parent.send(compare(case, kind, made, data, options))
    parent.send(None)
    parent.close()
    os._exit(0)  # taking everything down by itself would take longer than to measure


def processes(options):
    """What each process measures: a case, and its models."""
    for case in options.cases:
        one_by_one = case[1] == "compiled"
        yield from ((case, [kind]) for kind in options.models) if one_by_one else [(case, options.models)]


class Measured:
    """A process that measures a case."""

    def __init__(self, context, case, models, options):
        self.name, self.case, self.options = f"{'/'.join(case)} {' '.join(models)}", case, options
        self.connection, there = context.Pipe()
        self.process = context.Process(target=work, args=(case, models, options, there), daemon=True)
        self.process.start()
        there.close()

    def is_ready(self, begin):
        """Waits until it is. One that died or takes too long is not, and says so."""
        left = max(begin + self.options.ready_within - time.perf_counter(), 0)
        try:
            if self.connection.poll(None if left == float("inf") else left):
                self.connection.recv()
                return True
            self.process.kill()
        except EOFError:
            pass
        print(f"{self.name} ended before it was ready", flush=True)
        return False

    def records(self, begin):
        over = time.perf_counter() - begin > self.options.budget
        if over:
            print(f"{self.options.budget} s are over: {self.name} is left out", flush=True)
        try:
            self.connection.send("stop" if self.options.prepare or over else "go")
            while (record := self.connection.recv()) is not None:
                yield record
        except (EOFError, BrokenPipeError):
            print(f"{self.name} ended without a record", flush=True)
        self.process.join()

    def may_go_first(self):
        graph, mode, _ = self.case
        return graph in LARGE and mode != "compiled" and self.options.device != "cpu"


def all_records(options):
    begin = time.perf_counter()
    # A process that has asked CUDA anything cannot be forked, and imports do.
    context = multiprocessing.get_context("fork" if options.device == "cpu" else "spawn")
    left = list(processes(options))
    while left:
        batch, left = left[:options.jobs], left[options.jobs:]
        running = [Measured(context, case, models, options) for case, models in batch]
        if not options.after:
            for process in [process for process in running if process.may_go_first()]:
                running.remove(process)
                if process.is_ready(begin):
                    yield from process.records(begin)
        running = [process for process in running if process.is_ready(begin)]
        print(f"# {len(running)} ready after {time.perf_counter() - begin:.1f} s", flush=True)
        while options.after and not os.path.exists(options.after):
            time.sleep(0.1)
        for process in running:
            yield from process.records(begin)
            print(f"# at {time.perf_counter() - begin:.1f} s", flush=True)


def case_of(text):
    """GRAPH/MODE/PRECISION"""
    parts = text.split("/")
    choices = (GRAPHS, MODES, LOSS_BOUNDS)
    if len(parts) != 3 or any(part not in known for part, known in zip(parts, choices)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not GRAPH/MODE/PRECISION, of " + ", ".join("|".join(known) for known in choices))
    return tuple(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", nargs="+", type=case_of, metavar="GRAPH/MODE/PRECISION",
                        default=[("cora", "eager", "fp32"), ("arxiv", "eager", "fp32")])
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--epochs", type=int, default=53)
    parser.add_argument("--seconds", type=float, default=20, help="limit for each measurement")
    parser.add_argument("--patience", type=float, default=float("inf"), metavar="SECONDS",
                        help="a model that takes longer for all of its epochs is recorded as one without an end")
    parser.add_argument("--budget", type=float, default=float("inf"),
                        help="no process is measured after so many seconds")
    parser.add_argument("--rounds", type=int, default=1,
                        help="measure both, then in turns until it was so often")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall")
    parser.add_argument("--shortest", action="store_true", help="print shortest epochs, not medians")
    parser.add_argument("--jobs", type=int, default=1, help="processes that get ready at once")
    parser.add_argument("--prepare", action="store_true", help="compile and measure nothing")
    parser.add_argument("--after", metavar="FILE", help="measure when there is such a file")
    parser.add_argument("--ready-within", type=float, default=float("inf"), metavar="SECONDS",
                        help="leave out processes that take longer to get ready")
    parser.add_argument("--json")
    parser.add_argument("--table")
    options = parser.parse_args()
    if options.jobs > 1:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # of each process
    records = []
    for record in all_records(options):
        records.append(record)
        print(line(record, options.shortest), flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(records, file, indent=1)
        if options.table:
            write_table(records, options.shortest, options.table)


if __name__ == "__main__":
    main()
