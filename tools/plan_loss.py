#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much default plans lose against measured ones, and where.

For every graph, width and precision a plan is made that times its candidates (tessera bench --tune measured). The
store it leaves has both the predicted and the measured time of each candidate, so that the loss of a default
plan, which takes the candidate with the smallest prediction, is known: its measured time over the smallest one.

  tools/plan_loss.py --program build/cuda/bin/tessera --data-folder graphs --source twin:molecules -o plan_loss

writes plan_loss.json (every candidate) and plan_loss.md (the table). Graphs that the cost models were fitted to
are counted apart.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import time

# The graphs that the coefficients of the cost models were fitted to (docs/benchmarking.md).
FITTED = set(
    "COLLAB DD ENZYMES NCI-balanced-union NCI1 PROTEINS_full acm amazon-computers as-caida bio-dmela ca-CondMat "
    "chameleon chameleon-filtered citeseer cnr-2000 com-amazon-clare-subset cora corafull-structure deezer-europe "
    "ego-facebook ego-twitter email-Eu-core facebook-page-page fb100-Amherst41 fb100-Bowdoin47 fb100-Cornell5 "
    "fb100-Haverford76 fb100-Reed98 fb100-Swarthmore42 gemsec-athletes gemsec-company gemsec-government "
    "gemsec-politician gemsec-public-figure gemsec-tvshow karate lastfm-asia minesweeper nell-structure polblogs "
    "ppi-node2vec ppi-small pubmed reddit10k soc-Epinions1 soc-hamsterster squirrel-filtered tolokers twitch-es "
    "twitch-fr twitch-ptbr twitch-ru web-NotreDame wikipedia-pos".split()
) | {
    "twin molecules", "twin amazon", "twin rmat17",
    "chung_lu?vertices=200000&edges=4000000&seed=5",
    "chung_lu?vertices=400000&edges=3000000&seed=9",
    "chung_lu?vertices=60000&edges=2500000&seed=11",
    "erdos_renyi?vertices=100000&edges=2000000&seed=5",
    "erdos_renyi?vertices=300000&edges=3000000&seed=11",
    "molecules?graphs=20000&mean_vertices=40&mean_degree=2.4&seed=5",
    "molecules?graphs=4000&mean_vertices=30&mean_degree=2.8&seed=133",
    "molecules?graphs=40000&mean_vertices=18&mean_degree=2.1&seed=9",
    "molecules?graphs=500&mean_vertices=60&mean_degree=3&seed=22",
    "molecules?graphs=60000&mean_vertices=30&mean_degree=2.2&seed=11",
    "rmat?scale=16&edges=3000000&a=0.5&b=0.2&c=0.2&seed=5",
    "rmat?scale=18&edges=2000000&a=0.5&b=0.2&c=0.2&seed=9",
    "sbm?vertices=100000&communities=400&mean_degree=60&inside=0.8&seed=9",
    "sbm?vertices=100000&communities=5000&mean_degree=8&inside=1&seed=134",
    "sbm?vertices=150000&communities=1500&mean_degree=40&inside=0.7&seed=5",
    "sbm?vertices=20000&communities=250&mean_degree=60&inside=1&seed=135",
    "sbm?vertices=200000&communities=2000&mean_degree=25&inside=0.9&seed=11",
    "sbm?vertices=30000&communities=1000&mean_degree=25&inside=1&seed=132",
    "sbm?vertices=40000&communities=1000&mean_degree=12&inside=1&seed=23",
    "sbm?vertices=40000&communities=40&mean_degree=100&inside=0.9&seed=5",
    "sbm?vertices=50000&communities=400&mean_degree=20&inside=1&seed=131",
    "sbm?vertices=60000&communities=600&mean_degree=30&inside=1&seed=24",
    "chung_lu?vertices=150000&edges=2500000&seed=21",
    "erdos_renyi?vertices=500000&edges=4000000&seed=21",
    "rmat?scale=17&edges=3000000&a=0.55&b=0.2&c=0.15&seed=21",
    "sbm?vertices=120000&communities=3000&mean_degree=15&inside=0.6&seed=21",
    "blogcatalog-attr", "ca-AstroPh-cc1", "cit-HepTh", "coauthor-cs", "flickr-attr", "gowalla-lightgcn", "twin proteins", "twin reddit",
    "chung_lu?vertices=250000&edges=3000000&seed=41",
    "chung_lu?vertices=300000&edges=5000000&seed=303",
    "chung_lu?vertices=90000&edges=2200000&seed=77",
    "erdos_renyi?vertices=200000&edges=3500000&seed=41",
    "molecules?graphs=30000&mean_vertices=25&mean_degree=2.3&seed=41",
    "rmat?scale=16&edges=2500000&a=0.5&b=0.2&c=0.2&seed=402",
    "rmat?scale=16&edges=2500000&a=0.6&b=0.15&c=0.15&seed=41",
    "rmat?scale=17&edges=4000000&a=0.57&b=0.19&c=0.19&seed=302",
    "sbm?vertices=130000&communities=2600&mean_degree=22&inside=0.75&seed=301",
    "sbm?vertices=130000&communities=2600&mean_degree=22&inside=0.75&seed=401",
    "sbm?vertices=160000&communities=8000&mean_degree=14&inside=0.9&seed=77",
    "sbm?vertices=30000&communities=30&mean_degree=90&inside=0.5&seed=77",
    "sbm?vertices=400000&communities=8000&mean_degree=12&inside=0.8&seed=304",
    "sbm?vertices=90000&communities=900&mean_degree=30&inside=0.8&seed=41",
    "copter2", "p2p-Gnutella31", "pkustk06", "sme3Da", "tube2",
    "chung_lu?vertices=150000&edges=3000000&seed=503",
    "chung_lu?vertices=80000&edges=1600000&seed=602",
    "erdos_renyi?vertices=120000&edges=2400000&seed=507",
    "molecules?graphs=40000&mean_vertices=22&mean_degree=2.2&seed=506",
    "rmat?scale=17&edges=3500000&a=0.55&b=0.2&c=0.15&seed=502",
    "sbm?vertices=180000&communities=3000&mean_degree=18&inside=0.7&seed=501",
    "sbm?vertices=300000&communities=10000&mean_degree=16&inside=0.85&seed=508",
    "sbm?vertices=50000&communities=100&mean_degree=70&inside=0.6&seed=505",
    "sbm?vertices=90000&communities=6000&mean_degree=10&inside=0.95&seed=504",
    "chung_lu?vertices=120000&edges=1800000&seed=607",
    "erdos_renyi?vertices=150000&edges=1200000&seed=605",
    "molecules?graphs=20000&mean_vertices=35&mean_degree=2.3&seed=606",
    "rmat?scale=16&edges=1500000&a=0.57&b=0.19&c=0.19&seed=604",
    "sbm?vertices=250000&communities=12500&mean_degree=9&inside=0.9&seed=603",
    "sbm?vertices=70000&communities=1400&mean_degree=35&inside=0.65&seed=601",
    "bcsstk35", "places", "preferential", "small-world",
    "chung_lu?vertices=100000&edges=1700000&seed=811",
    "erdos_renyi?vertices=90000&edges=1500000&seed=813",
    "sbm?vertices=110000&communities=1800&mean_degree=28&inside=0.7&seed=812",
    "blogcatalog-dw", "coauthor-physics", "com-dblp-clare-subset", "gemsec-deezer-hu", "pkustk09", "worms20_10NN",
    "places-901", "preferential-901", "small-world-901",
    "chung_lu?vertices=140000&edges=2100000&seed=911",
    "erdos_renyi?vertices=60000&edges=1400000&seed=913",
    "molecules?graphs=25000&mean_vertices=24&mean_degree=2.2&seed=915",
    "rmat?scale=17&edges=2200000&a=0.5&b=0.22&c=0.18&seed=914",
    "sbm?vertices=120000&communities=240&mean_degree=36&inside=0.6&seed=916",
    "sbm?vertices=80000&communities=4000&mean_degree=20&inside=0.8&seed=912",
}


def measured_plans(program, source, arguments, folder):
    """The choices of one graph: a list of (op, details, candidates)."""
    store = pathlib.Path(folder) / "plans"
    store.unlink(missing_ok=True)
    command = [program, "bench", *arguments.ops.split(","), "--device", arguments.device, "--tune", "measured"]
    command += ["--quick", "--features", arguments.features, "--precision", arguments.precisions]
    command += ["--data", source, "--plans", str(store)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.seconds_per_graph)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message")
    return parse_store(store.read_text(encoding="utf-8"))


def parse_store(text):
    choices = []
    for line in text.splitlines():
        fields = line.split("\t")
        if fields[0] == "choice":
            choices.append((fields[1], fields[3], []))
        elif fields[0] == "candidate":
            kernel, predicted, measured, verdict = fields[1], float(fields[2]), float(fields[3]), fields[4]
            if predicted > 0 and "not deterministic" not in verdict:
                choices[-1][2].append({"kernel": kernel, "predicted_us": predicted, "measured_us": measured})
    return choices


def loss_of(candidates):
    """(loss, default, fastest), or None where the default choice was not timed."""
    timed = [one for one in candidates if one["measured_us"] > 0]
    if not timed:
        return None
    default = min(candidates, key=lambda one: one["predicted_us"])
    fastest = min(timed, key=lambda one: one["measured_us"])
    if default["measured_us"] <= 0:
        return None
    return default["measured_us"] / fastest["measured_us"], default, fastest


def made_before(source, folder):
    """The file of a graph that was made before, if the folder has one."""
    file = pathlib.Path(folder or ".") / (source.split(":", 1)[-1] + ".tsr")
    return str(file) if folder and file.exists() else source


def name_of(source):
    file = pathlib.Path(source)
    return file.stem if file.suffix and file.exists() else source.replace("twin:", "twin ").replace("generate:", "")


def sources_of(arguments):
    """The sources that were named, then the files of the folder."""
    named = [(name_of(source), made_before(source, arguments.made)) for source in arguments.source]
    files = sorted(pathlib.Path(arguments.data_folder).glob("*/*.npz")) if arguments.data_folder else []
    return named + [(path.stem, str(path)) for path in files]


def sweep(arguments, save):
    """What all graphs gave; `save` gets it after each of them, so that a run that is cut off leaves something."""
    records, problems = [], []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for name, source in sources_of(arguments):
            if time.monotonic() - begin > arguments.seconds:
                problems.append(f"{name}: not measured, {arguments.seconds:.0f} s had passed")
                continue
            try:
                choices = measured_plans(arguments.program, source, arguments, folder)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                problems.append(f"{name}: {error}")
                continue
            for op, details, candidates in choices:
                records.append({"graph": name, "op": op, "details": details, "candidates": candidates,
                                "fitted": name in FITTED})
            print(f"{name}: {len(choices)} plans, {time.monotonic() - begin:.1f} s", file=sys.stderr)
            save(records, problems)
    save(records, problems)
    return records, problems


def precision_of(details):
    return re.search(r"\b(fp32|tf32|bf16|fp16)\b", details).group(1)


def summary_rows(records):
    groups = collections.defaultdict(list)
    for record in records:
        found = loss_of(record["candidates"])
        if found:
            groups[record["op"], precision_of(record["details"]), record["fitted"]].append((found, record))
    for (op, precision, fitted), members in sorted(groups.items(), key=str):
        losses = [found[0] for found, _ in members]
        mean = math.exp(sum(map(math.log, losses)) / len(losses))
        graphs = len({record["graph"] for _, record in members})
        long_ones = [loss for loss, (found, _) in zip(losses, members) if found[2]["measured_us"] >= 20]
        worst, of = max(members, key=lambda member: member[0][0])
        yield (op, precision, "in the fit" if fitted else "not in the fit", graphs, len(losses), mean, worst[0],
               f"{of['graph']}, {of['details'].split(',')[0]}", sum(loss > 1.1 for loss in losses),
               max(long_ones) if long_ones else None)


def report(records, problems, commit):
    lines = ["# How well default plans choose", "",
             f"Made by `tools/plan_loss.py` on commit `{commit}`. A loss is the measured time of the kernel that the cost "
             "models prefer over that of the fastest candidate. Runs are timed in chains where they are short, so that "
             "launching is no part of them; times of a few microseconds vary by some 10 %.", "",
             "| op | precision | graphs | | cases | geometric mean | worst | where | above 1.1 | worst from 20 us on |",
             "|---|---|---|---:|---:|---:|---:|---|---:|---:|"]
    for op, precision, kind, graphs, cases, mean, worst, where, above, long_worst in summary_rows(records):
        last = f"{long_worst:.2f}" if long_worst else ""
        lines.append(f"| {op} | {precision} | {kind} | {graphs} | {cases} | {mean:.3f} | {worst:.2f} | {where} | {above} | {last} |")
    losses = sorted(((loss_of(record["candidates"]), record) for record in records if loss_of(record["candidates"])),
                    key=lambda member: -member[0][0])
    lines += ["", "## The largest losses", "", "| loss | graph | plan | default | us | fastest | us |", "|---:|---|---|---|---:|---|---:|"]
    for (loss, default, fastest), record in losses[:20]:
        lines.append(f"| {loss:.2f} | {record['graph']} | {record['op']}, {record['details']} | {default['kernel']} | "
                     f"{default['measured_us']:.1f} | {fastest['kernel']} | {fastest['measured_us']:.1f} |")
    if problems:
        lines += ["", "## Not measured", ""] + [f"- {problem}" for problem in problems]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/cuda/bin/tessera")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data-folder", help="graphs as NAME/NAME.npz")
    parser.add_argument("--source", action="append", default=[], help="any other data set; may be given several times")
    parser.add_argument("--made", help="a folder with graphs that --source names, made before: amazon.tsr is read for twin:amazon")
    parser.add_argument("--ops", default="spmm,sddmm")
    parser.add_argument("--features", default="16,32,64,128,256")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--seconds", type=float, default=600, help="start no graph after so long")
    parser.add_argument("--seconds-per-graph", type=float, default=60)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("-o", "--out", default="plan_loss", help="writes OUT.json and OUT.md")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)

    def save(records, problems):
        if records:
            out.with_suffix(".json").write_text(json.dumps({"commit": arguments.commit, "records": records}, indent=0), encoding="utf-8")
            out.with_suffix(".md").write_text(report(records, problems, arguments.commit), encoding="utf-8")

    records, problems = sweep(arguments, save)
    if not records:
        sys.exit("plan_loss: no plan was measured: " + "; ".join(problems))
    print(out.with_suffix(".md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
