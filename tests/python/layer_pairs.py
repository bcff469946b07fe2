# SPDX-License-Identifier: Apache-2.0
"""Every layer beside PyG's own with the same weights, and what both make of the same features."""

import torch
import torch_geometric.nn as pyg

import tessera.nn as ours


def wide_mlp():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(24, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5))


def mlp():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5))


LAYERS = {
    "GCN": ("GCNConv", (12, 5), {}),
    "GCN improved": ("GCNConv", (12, 5), {"improved": True}),
    "GCN without loops": ("GCNConv", (12, 5), {"add_self_loops": False}),
    "GCN without norm": ("GCNConv", (12, 5), {"normalize": False, "bias": False}),
    "GCN reversed": ("GCNConv", (12, 5), {"flow": "target_to_source"}),
    "SAGE": ("SAGEConv", (12, 5), {}),
    "SAGE wide": ("SAGEConv", (12, 20), {}),
    "SAGE max": ("SAGEConv", (12, 5), {"aggr": "max", "normalize": True}),
    "SAGE min": ("SAGEConv", (12, 5), {"aggr": "min", "root_weight": False}),
    "SAGE sum": ("SAGEConv", (12, 5), {"aggr": "sum", "project": True}),
    "GIN": ("GINConv", (mlp,), {"train_eps": True, "eps": 0.25}),
    "GIN fixed": ("GINConv", (mlp,), {"eps": 0.25}),
    "GIN of means": ("GINConv", (mlp,), {"eps": -0.5, "aggr": "mean"}),
    "GCN wide": ("GCNConv", (12, 20), {}),
    "GAT": ("GATConv", (12, 5), {"heads": 3}),
    "GAT mean": ("GATConv", (12, 5), {"heads": 3, "concat": False, "residual": True}),
    "GAT without loops": ("GATConv", (12, 5), {"add_self_loops": False, "bias": False}),
    "GATv2": ("GATv2Conv", (12, 5), {"heads": 3}),
    "GATv2 shared": ("GATv2Conv", (12, 5), {"heads": 2, "share_weights": True, "residual": True}),
    "AGNN": ("AGNNConv", (), {}),
    "SGC": ("SGConv", (12, 5), {"K": 3}),
    "Cheb": ("ChebConv", (12, 5), {"K": 4}),
    "Transformer": ("TransformerConv", (12, 5), {"heads": 2}),
    "Transformer gated": ("TransformerConv", (12, 5), {"heads": 2, "beta": True, "concat": False}),
    "APPNP": ("APPNP", (4, 0.1), {}),
    "Cluster": ("ClusterGCNConv", (12, 5), {"diag_lambda": 0.5}),
    "Graph": ("GraphConv", (12, 5), {}),
    "Graph wide": ("GraphConv", (12, 20), {"aggr": "mean", "bias": False}),
    "Graph max": ("GraphConv", (12, 5), {"aggr": "max"}),
    "LG": ("LGConv", (), {}),
    "LG without norm": ("LGConv", (), {"normalize": False}),
    "TAG": ("TAGConv", (12, 5), {}),
    "TAG wide": ("TAGConv", (12, 20), {"K": 2, "bias": False}),
    "ARMA": ("ARMAConv", (12, 5), {"num_stacks": 3, "num_layers": 2}),
    "Gated": ("GatedGraphConv", (16, 2), {}),
    "Edge": ("EdgeConv", (wide_mlp,), {}),
    "Edge mean": ("EdgeConv", (wide_mlp,), {"aggr": "mean"}),
    "FiLM": ("FiLMConv", (12, 5), {}),
    "FiLM min": ("FiLMConv", (12, 5), {"aggr": "min", "act": None}),
    "PNA": ("PNAConv", (12, 6), {"aggregators": ["sum", "mean", "var", "std"], "scalers": ["identity", "amplification", "linear"],
                                 "deg": torch.tensor([1, 5, 9, 3]), "towers": 2, "pre_layers": 2, "divide_input": True}),
    "Gated mean": ("GatedGraphConv", (12, 3), {"aggr": "mean", "bias": False}),
}


def pair(name, device="cpu"):
    kind, arguments, options = LAYERS[name]
    made = []
    for module in (pyg, ours):
        torch.manual_seed(1)
        given = tuple(a() if callable(a) else a for a in arguments)
        made.append(getattr(module, kind)(*given, **options).to(device))
    theirs, mine = made
    assert str(theirs) == str(mine)
    mine.load_state_dict(theirs.state_dict())
    return theirs, mine


def gradients(layer, x, *arguments):
    x = x.clone().requires_grad_()
    layer.zero_grad()
    out = layer(x, *arguments)
    (out * torch.linspace(-1, 1, out.numel(), device=out.device).view_as(out)).sum().backward()
    return [out.detach(), x.grad] + [p.grad for p in layer.parameters() if p.grad is not None]


def same(a, b, tolerance=2e-5):
    assert len(a) == len(b)
    for mine, theirs in zip(a, b):
        assert mine.shape == theirs.shape
        if theirs.numel() == 0:
            continue
        bound = tolerance * (1 + theirs.abs().max())
        assert (mine - theirs).abs().max() <= bound
