#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of links against PyG's on the same splits: the graph auto-encoder, and LightGCN.

    TESSERA_DATA=FOLDER python bench/python/link_accuracy.py --program build/bin/tessera --json links.json
    TESSERA_DATA=FOLDER python bench/python/link_accuracy.py --graphs --runs 3 --device cuda --json gowalla.json

FOLDER holds NAME/NAME.npz as docs/formats.md has them. The program draws each split, and its checkpoint says
what PyG then trains and tests on. The auto-encoder has PyG's example: a GCN of 32 and 16, Adam 0.01, 200 epochs,
85 / 5 / 10 % of the edges, the test's AUROC at the epoch that is best on validation. LightGCN has two layers of 64
numbers, Adam 0.001, batches of 8,192, 90 % of the edges to train on, and Recall@20 of the others after the last
epoch. The record has the difference of every run, the program's less PyG's.
"""

import argparse
import csv
import importlib.util
import json
import os
import pathlib
import platform
import statistics
import subprocess
import tempfile

import numpy as np
import torch
import torch_geometric
import torch_geometric.nn as pyg
from scipy.stats import rankdata
from torch_geometric.utils import negative_sampling

ROOT = pathlib.Path(__file__).resolve().parents[2]
TESTED_AGAINST = 10  # negatives of each link that PyG is judged by, so that these do not decide


def container():
    """The package's reader of checkpoints, which needs numpy alone."""
    path = ROOT / "bindings/torch/tessera/container.py"
    spec = importlib.util.spec_from_file_location("container", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commit():
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return os.environ.get("TESSERA_COMMIT") or found.stdout.strip() or "unknown"


def arrays_of(name):
    return np.load(os.path.join(os.environ["TESSERA_DATA"], name, name + ".npz"))


def trained(options, source, seed, checkpoint, *more):
    """What the program says of a training, and the parts of its split."""
    command = [options.program, "train", source, "--task", "links", "--seed", seed, "-c", checkpoint, "--force",
               "--device", options.device, *more, "--json", "-"]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
    arrays = container().read(checkpoint)
    return json.loads(done.stdout), {name.removeprefix("split:"): array for name, array in arrays.items()
                                     if name.startswith("split:")}


class Encoder(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.first, self.second = pyg.GCNConv(features, 32), pyg.GCNConv(32, 16)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def both_ways(pairs):
    return torch.cat([pairs, pairs.flip(0)], dim=1)


def area(model, z, pairs, negatives):
    scores = torch.cat([model.decoder(z, pairs, sigmoid=False), model.decoder(z, negatives, sigmoid=False)])
    truth = torch.cat([torch.ones(pairs.size(1)), torch.zeros(negatives.size(1))])
    positive = truth.numpy() > 0
    found, others = positive.sum(), (~positive).sum()
    above = rankdata(scores.cpu().numpy())[positive].sum() - found * (found + 1) / 2
    return float(above / (found * others))


def auto_encoder(name, parts, seed, epochs, device):
    """The test's AUROC of PyG's auto-encoder at the epoch that is best on validation."""
    arrays = arrays_of(name)
    vertices = int(arrays["num_nodes"])
    order = np.lexsort((arrays["col"], arrays["row"]))  # as the program numbers edges
    edges = torch.from_numpy(np.stack([arrays["col"], arrays["row"]])[:, order].astype(np.int64))
    pairs = {part: edges[:, torch.from_numpy(of.astype(np.int64))].to(device) for part, of in parts.items()}
    x = torch.sparse_csr_tensor(arrays["x_indptr"], arrays["x_indices"].astype(np.int64), arrays["x_data"],
                                (vertices, int(arrays["x_dim"]))).to_dense()
    x = (x / x.sum(1, keepdim=True).clamp(min=1e-12)).to(device)
    torch.manual_seed(seed)
    messages = both_ways(pairs["train"])
    later = both_ways(torch.cat([pairs["train"], pairs["validation"]], dim=1))
    negatives = {part: negative_sampling(edges, vertices, TESTED_AGAINST * pairs[part].size(1)).to(device)
                 for part in ("validation", "test")}
    model = pyg.GAE(Encoder(x.size(1))).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    best, test = -1.0, 0.0
    for _ in range(epochs):
        model.train()
        optimiser.zero_grad()
        model.recon_loss(model.encode(x, messages), pairs["train"]).backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            value = area(model, model.encode(x, messages), pairs["validation"], negatives["validation"])
            if value > best:
                best = value
                test = area(model, model.encode(x, later), pairs["test"], negatives["test"])
    return test


def compare_auto_encoders(name, options, folder):
    source = os.path.join(os.environ["TESSERA_DATA"], name, name + ".npz")
    runs = []
    for seed in range(options.first_seed, options.first_seed + options.runs):
        report, parts = trained(options, source, seed, folder / "model.tsr", "--epochs", options.epochs or 200,
                                "--split", "0.85,0.05,0.1", "--threads", options.threads)
        theirs = auto_encoder(name, parts, seed, options.epochs or 200, options.device)
        runs.append({"seed": seed, "tessera": 100 * report["test"]["mean"], "pyg": 100 * theirs})
        print(f"{name} seed {seed}: {runs[-1]['tessera']:.2f}, PyG {runs[-1]['pyg']:.2f}", flush=True)
    return runs


def interactions(name, seed, path):
    """Users and items of the graph, with a rank each by which the last tenth is held out."""
    arrays = arrays_of(name)
    rows, cols = arrays["row"].astype(np.int64), arrays["col"].astype(np.int64)
    users = int(cols[rows == 0].min())  # users come first, and the first of them has an item
    chosen = rows < users
    pairs = np.stack([rows[chosen], cols[chosen] - users])
    ranks = np.random.default_rng(seed).permutation(pairs.shape[1])
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["user", "item", "rank"])
        writer.writerows(zip(*pairs.tolist(), ranks.tolist()))
    return pairs, ranks


def normalised(pairs, users, items, device):
    """D^-1/2 A D^-1/2 of the graph of both kinds, as a sparse matrix."""
    index = both_ways(torch.stack([pairs[0], pairs[1] + users]))
    degrees = torch.bincount(index[0], minlength=users + items).clamp(min=1).to(torch.float)
    values = (degrees[index[0]] * degrees[index[1]]).rsqrt()
    size = (users + items, users + items)
    return torch.sparse_coo_tensor(index, values, size).coalesce().to_sparse_csr().to(device)


@torch.no_grad()
def recall(model, messages, train, held_out, users, items, k=20, at_once=2048):
    """Of the items of each user that are held out, among all that they are not trained on."""
    z = model.get_embedding(messages)
    total, judged = 0.0, 0
    for first in range(0, users, at_once):
        last = min(users, first + at_once)
        scores = z[first:last] @ z[users:].t()
        wanted = torch.zeros_like(scores, dtype=torch.bool)
        for pairs, is_train in ((train, True), (held_out, False)):
            here = (pairs[0] >= first) & (pairs[0] < last)
            place = (pairs[0, here] - first, pairs[1, here])
            if is_train:
                scores[place] = float("-inf")
            else:
                wanted[place] = True
        count = wanted.sum(1)
        hits = wanted.gather(1, scores.topk(min(k, items)).indices).sum(1)
        total += (hits[count > 0] / count[count > 0]).sum().item()
        judged += int((count > 0).sum())
    return total / judged


def light_gcn(pairs, is_held_out, seed, epochs, options):
    device = options.device
    users, items = (int(ends.max()) + 1 for ends in pairs)
    pairs = torch.from_numpy(pairs)
    held_out = torch.from_numpy(is_held_out)
    train, tested = pairs[:, ~held_out].to(device), pairs[:, held_out].to(device)
    torch.manual_seed(seed)
    messages = normalised(train.cpu(), users, items, device)
    model = pyg.LightGCN(users + items, embedding_dim=64, num_layers=2, normalize=False).to(device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.001)
    for epoch in range(epochs):
        for batch in torch.randperm(train.size(1), device=device).split(8192):
            positives = train[:, batch] + torch.tensor([[0], [users]], device=device)
            drawn = torch.randint(users, users + items, (batch.numel(),), device=device)
            asked = torch.cat([positives, torch.stack([positives[0], drawn])], dim=1)
            optimiser.zero_grad()
            ranks, others = model(messages, asked).chunk(2)
            model.recommendation_loss(ranks, others, node_id=asked.unique(), lambda_reg=options.decay).backward()
            optimiser.step()
        print(f"PyG's epoch {epoch + 1}", end="\r", flush=True)
    return recall(model, messages, train, tested, users, items)


def compare_light_gcn(name, options, folder):
    epochs = options.epochs or 100
    runs = []
    for seed in range(options.first_seed, options.first_seed + min(options.runs, options.seeds)):
        path = folder / "interactions.csv"
        pairs, ranks = interactions(name, seed, path)
        report, parts = trained(options, path, seed, folder / "model.tsr", "--kinds", "user,item", "--model", "lightgcn",
                                "--layers", 2, "--embedding", 64, "--pairs-per-batch", 8192, "--lr", 0.001,
                                "--edge-time", "rank", "--split", "0.9,0.1,0", "--metric", "recall", "--epochs",
                                epochs, "--evaluate-every", epochs)
        held_out = ranks >= ranks.size - parts["validation"].size
        theirs = light_gcn(pairs, held_out, seed, epochs, options)
        runs.append({"seed": seed, "tessera": 100 * report["validation"]["mean"], "pyg": 100 * theirs,
                     "epoch_ms": report["epoch_ms"]})
        print(f"{name} seed {seed}: {runs[-1]['tessera']:.3f}, PyG {runs[-1]['pyg']:.3f}", flush=True)
    return runs


def summarised(name, metric, runs):
    gaps = [run["tessera"] - run["pyg"] for run in runs]
    return {"graph": name, "metric": metric, "runs": runs,
            "tessera": statistics.mean(run["tessera"] for run in runs),
            "pyg": statistics.mean(run["pyg"] for run in runs), "difference": statistics.mean(gaps),
            "deviation": statistics.stdev(gaps) if len(gaps) > 1 else 0.0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build/bin/tessera"))
    parser.add_argument("--graphs", nargs="*", default=["cora", "citeseer", "pubmed"], help="of the auto-encoder")
    parser.add_argument("--interactions", nargs="*", default=["gowalla-lightgcn"], help="of LightGCN")
    parser.add_argument("--runs", type=int, default=20, help="splits")
    parser.add_argument("--seeds", type=int, default=3, help="at most so many of LightGCN")
    parser.add_argument("--first-seed", type=int, default=1, help="for several processes that share the runs")
    parser.add_argument("--epochs", type=int, help="in place of 200, and of LightGCN's 100")
    parser.add_argument("--decay", type=float, default=1e-4, help="of PyG's LightGCN: its lambda_reg")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1, help="of the auto-encoders")
    parser.add_argument("--json")
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(options.threads)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        cases = [(name, "roc_auc", compare_auto_encoders) for name in options.graphs]
        cases += [(name, "recall@20", compare_light_gcn) for name in options.interactions]
        for name, metric, compare in cases:
            found.append(summarised(name, metric, compare(name, options, pathlib.Path(folder))))
            if options.json:
                machine = torch.cuda.get_device_name() if options.device == "cuda" else platform.machine()
                record = {"commit": commit(), "machine": machine, "torch": torch.__version__,
                          "pyg": torch_geometric.__version__, "results": found}
                pathlib.Path(options.json).write_text(json.dumps(record, indent=1) + "\n")
    print("| graph | metric | runs | tessera | PyG | difference |\n|---|---|---:|---:|---:|---:|")
    for one in found:
        print(f"| {one['graph']} | {one['metric']} | {len(one['runs'])} | {one['tessera']:.2f} | {one['pyg']:.2f} | "
              f"{one['difference']:+.2f} ± {one['deviation']:.2f} |")


if __name__ == "__main__":
    main()
