#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GAT attention as PyTorch Geometric composes it: one operation after the other over all edges.

    attention_torch.py --data cora.npz --features 64 --threads 1,2 --json torch.json
    tessera bench attention_gat attention_gat_step --data cora.npz --features 64 --threads 1,2 --json tessera.json
    tessera bench compare torch.json tessera.json

`attention_gat` is forward alone, `attention_gat_step` forward and the gradients of all inputs.
"""
import torch
import torch_geometric.utils

import common

HEADS = 8
NEGATIVE_SLOPE = 0.2


def compose(alpha_source, alpha_target, x, source, target, ptr, dropout, training):
    """What GATConv does between its linear layers."""
    vertices = alpha_target.size(0)
    alpha = alpha_source[source] + alpha_target[target]
    alpha = torch.nn.functional.leaky_relu(alpha, NEGATIVE_SLOPE)
    alpha = torch_geometric.utils.softmax(alpha, target, ptr, vertices)
    alpha = torch.nn.functional.dropout(alpha, p=dropout, training=training)
    message = alpha.unsqueeze(-1) * x[source]
    return torch_geometric.utils.scatter(message, target, 0, vertices, "sum")


def settings(offsets, columns, vertices, features, dropout):
    """{op: {name: function}}: softmax by scattering and, where this build has it, by segments."""
    heads = HEADS if features % HEADS == 0 else 1
    source = torch.from_numpy(columns)
    ptr = torch.from_numpy(offsets)
    target = torch.repeat_interleave(torch.arange(vertices), ptr[1:] - ptr[:-1])
    alpha_source = (torch.rand(vertices, heads) * 2 - 1).requires_grad_()
    alpha_target = (torch.rand(vertices, heads) * 2 - 1).requires_grad_()
    x = (torch.rand(vertices, heads, features // heads) * 2 - 1).requires_grad_()
    grad_output = torch.rand(vertices, heads, features // heads) * 2 - 1

    def forward(pointers):
        with torch.no_grad():
            compose(alpha_source, alpha_target, x, source, target, pointers, 0.0, False)

    def train(pointers):
        output = compose(alpha_source, alpha_target, x, source, target, pointers, dropout, True)
        torch.autograd.grad(output, (alpha_source, alpha_target, x), grad_output)

    ops = {"attention_gat": {}, "attention_gat_step": {}}
    for name, pointers in (("scatter", None), ("segment", ptr)):
        for op, function in (("attention_gat", forward), ("attention_gat_step", train)):
            try:
                function(pointers)
            except (ImportError, RuntimeError, ValueError):
                continue
            ops[op][f"pyg/{name}"] = lambda f=function, p=pointers: f(p)
    return ops


def main():
    options = common.arguments(__doc__.splitlines()[0])
    records = []
    for name, offsets, columns, vertices, features, threads in common.cases(options):
        for op, choices in settings(offsets, columns, vertices, features, dropout=0.0).items():
            kernel, samples, plan = common.best_setting(choices, options)
            records.append(common.record(op, name, features, threads, kernel, samples, plan))
            print(f"{op} {name} {features} features, {threads} threads: "
                  f"{records[-1]['median_us']:.0f} us, {kernel}", flush=True)
    common.write(options, records)


if __name__ == "__main__":
    main()
