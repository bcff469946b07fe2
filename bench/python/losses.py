#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whose losses and gradients are off: PyG's and ours, both measured from PyG in fp64.

    python bench/python/losses.py --device cpu --cases cora/GATv2/fp32 --json losses.json

Losses: a model is trained for 50 epochs, --starts times from weights that differ by half a rounding of fp32; the first
start has PyG's own weights. All are compared with PyG in fp64 from those. Where losses of one program lie as far apart
as those of two, training blows up what was rounded, and neither is wrong.

Gradients: on the way that PyG in fp64 takes, after 0, 10, 25 and 50 epochs, gradients are made of the same weights by
both, and by PyG in fp64: how far each is from that, as a norm over all parameters, relative. They do not depend on
what was rounded before.
"""

import argparse
import json
import platform

import torch
from training import GRAPHS, Training, commit, make_graph, versions

import tessera

WHO = ("pyg", "tessera")
EPOCHS = 50
LOOKED_AT = (0, 10, 25, 50)  # epochs


def in_double(data):
    x, index, labels = data
    return x.double(), index, labels


def doubled(kind, data):
    """PyG in fp64."""
    training = Training(kind, False, "eager", in_double(data), "fp64")
    training.net.double()
    return training


def perturb(net, start):
    """Moves weights by half a rounding of fp32, up or down; the first start by none."""
    if start == 0:
        return
    draw = torch.Generator().manual_seed(start)
    with torch.no_grad():
        for parameter in net.parameters():
            signs = torch.randint(0, 2, parameter.shape, generator=draw) * 2.0 - 1
            parameter.mul_(1 + 2.0**-23 * signs.to(parameter.device))


def last_loss(kind, accelerated, data, dtype, start):
    tessera.clear_cache()
    training = Training(kind, accelerated, "eager", data, dtype)
    perturb(training.net, start)
    return training.run(EPOCHS)[f"loss_after_{EPOCHS}"].item()


def gradient_errors(kind, data, dtype):
    """Of both on the way of PyG in fp64, by epoch, and its last loss."""
    exact = doubled(kind, data)
    both = {who: Training(kind, who == "tessera", "eager", data, dtype) for who in WHO}
    errors, loss = [], None
    for epoch in range(EPOCHS + 1):
        if epoch in LOOKED_AT:
            with torch.no_grad():
                rounded = [parameter.float() for parameter in exact.net.parameters()]
            wide = doubled(kind, data)
            expected = gradients(wide, rounded)
            size = sum(gradient.square().sum() for gradient in expected).sqrt()
            found = {"epoch": epoch}
            for who, training in both.items():
                off = sum((one.double() - other).square().sum()
                          for one, other in zip(gradients(training, rounded), expected))
                found[who] = (off.sqrt() / size).item()
            errors.append(found)
        if epoch < EPOCHS:
            loss = exact.step()
    return errors, loss.item()


def gradients(training, weights):
    """Of the loss at these weights; a step is made beside them, and does not count."""
    with torch.no_grad():
        for parameter, weight in zip(training.net.parameters(), weights):
            parameter.copy_(weight)
    training.gradients = None
    training.step()
    return training.gradients


def compare(graph, kind, dtype, options):
    device = torch.device(options.device)
    data = make_graph(graph, device)
    errors, exact = gradient_errors(kind, data, dtype)
    return {"graph": graph, "model": kind, "precision": dtype, "commit": commit(), "versions": versions(),
            "device": torch.cuda.get_device_name() if device.type == "cuda" else platform.machine(),
            "fp64": exact, "gradients": errors,
            **{who: [last_loss(kind, who == "tessera", data, dtype, start) for start in range(options.starts)]
               for who in WHO}}


def line(record):
    def off(loss):
        return f"{(loss - record['fp64']) / record['fp64']:+.1e}"

    losses = ", ".join(f"{who} {' '.join(map(off, record[who]))}" for who in WHO)
    errors = ", ".join(f"{found['epoch']}: {found['pyg']:.1e} {found['tessera']:.1e}" for found in record["gradients"])
    return (f"{record['graph']:6} {record['model']:6} {record['precision']} losses from fp64: {losses}; "
            f"gradients (PyG, ours) after {errors}")


def case_of(text):
    graph, kind, dtype = text.split("/")
    if graph not in GRAPHS or dtype not in ("fp32", "bf16"):
        raise argparse.ArgumentTypeError(f"{text!r} is not GRAPH/MODEL/PRECISION")
    return graph, kind, dtype


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", nargs="+", type=case_of, metavar="GRAPH/MODEL/PRECISION",
                        default=[("cora", "GATv2", "fp32")])
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--json")
    options = parser.parse_args()
    records = []
    for case in options.cases:
        records.append(compare(*case, options))
        print(line(records[-1]), flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
