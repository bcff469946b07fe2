# SPDX-License-Identifier: Apache-2.0
"""Test accuracy on web pages with ten splits, beside what a paper reports for the same splits.

    tools/report.py splits --data GRAPHS --jobs 16

Every part is a model. --jobs splits are trained on at once, a thread each; seeds decide the results, so that the table
does not depend on their number.
"""
import functools

from . import accuracy, common

WEB_PAGES = ["texas", "cornell", "wisconsin"]
# Means over the same splits, with settings chosen for each graph: Zhu et al. 2020 (H2GCN), table 5.
PUBLISHED = {"gcn": [59.5, 57.0, 59.8], "gat": [58.4, 58.9, 55.3], "cheb": [77.3, 74.3, 79.4], "sage": [82.4, 76.0, 81.2]}


def add_options(parser):
    parser.add_argument("--jobs", type=int, default=1, help="splits at once (default: 1)")


def measure_model(model, run):
    found = []
    for source in common.real_graphs(run.options, WEB_PAGES):
        report = run.call("train", "--data", source, "--model", model, "--split-index", "all", "--seed", accuracy.SEED,
                          "--parallel-runs", "--threads", run.options.jobs, "--quiet")
        tests = [accuracy.kept(one) | {"split": one["split"]} for one in report["runs"]]
        found.append({"model": model, "dataset": common.name_of(source), **accuracy.summary(tests)})
    return found


PARTS = {model: functools.partial(measure_model, model) for model in PUBLISHED}


def lines(record):
    yield "# What do models reach on web pages with ten splits?\n"
    yield common.where(record)
    yield ("Test accuracy in percent at the best validation epoch: mean ± standard deviation over ten splits (48 % to train, 32 % "
           "to validate), each\ntrained on once (`--split-index all`), with the settings of each model's own paper "
           "([training](../training.md)). In brackets\nthe mean over the same splits that [Zhu et al. 2020](https://arxiv.org/abs/2006.11468) "
           "report, who chose settings for each\ngraph by its validation parts.\n")
    found = common.by((one for part in record["parts"].values() for one in part), "model", "dataset")
    yield from common.table(["model", *WEB_PAGES], (
        [model, *(f"{accuracy.figures(found[model, name])} ({paper:.1f})" for name, paper in zip(WEB_PAGES, papers))]
        for model, papers in PUBLISHED.items() if (model, WEB_PAGES[0]) in found))
    yield from common.again("splits --data GRAPHS --jobs 16", "The record, [splits.json](splits.json), has every run.")


def pages(record):
    return {"splits.md": common.joined(lines(record))}
