# SPDX-License-Identifier: Apache-2.0
"""Plans that time their candidates, on all graphs that a report is about."""
import pathlib
import re
import sys

from . import common


def add_options(parser, ops="spmm,sddmm", features="16,32,64,128,256"):
    parser.add_argument("--source", action="append", default=[], help="any other data set; may be given several times")
    parser.add_argument("--ops", default=ops, help="default: %(default)s")
    parser.add_argument("--features", default=features, help="default: %(default)s")
    parser.add_argument("--precisions", default="fp32,bf16", help="default: %(default)s")
    parser.add_argument("--seconds-per-graph", type=float, default=60, help="default: 60")


def sources_of(run):
    """{name: source}: those that were named, or the files of the folder."""
    named = {common.name_of(source): source for source in run.options.source}
    files = sorted(pathlib.Path(run.options.data).glob("*/*.npz")) if run.options.data and not named else []
    found = named | {path.stem: str(path) for path in files}
    if not found:
        raise common.Missing("no graph is named: --source SOURCE, or --data FOLDER with NAME/NAME.npz")
    return found


def plans_of(run, sources, more=lambda name: {}):
    """Records of all graphs that could be measured."""
    records, options = [], run.options
    for name, source in sources.items():
        if run.is_late(name):
            continue
        try:
            choices = run.plans(options.ops.split(","), source, options.features, options.precisions,
                                options.seconds_per_graph)
        except common.Failed as problem:
            print(f"left out: {problem}", file=sys.stderr)
            continue
        records += [{"graph": name, "op": op, "details": details, "candidates": candidates, **more(name)} for op, details, candidates in choices]
        print(f"{name}: {len(choices)} plans", file=sys.stderr)
    return records


def precision_of(details):
    return re.search(r"\b(fp32|tf32|bf16|fp16)\b", details).group(1)
