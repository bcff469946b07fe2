# SPDX-License-Identifier: Apache-2.0
"""Thousands of command lines of valid verbs with odd values, drawn with a seed: whatever happens, it is no
internal error, no crash, and one line on stderr. TESSERA_DRAWS and TESSERA_DRAW_SEED choose others."""
import concurrent.futures
import os
import random
import re
import unittest

import cli

DRAWS = int(os.environ.get("TESSERA_DRAWS", 5000))
SEED = int(os.environ.get("TESSERA_DRAW_SEED", 20))

ODD = ["", " ", "0", "1", "2", "3", "-1", "-0", "+1", "007", "0x10", "1e3", "1e-3", "0.5", "1.5", "nan", "-nan",
       "inf", "1e999", "99999999999999999999", "-99999999999999999999", "9223372036854775807",
       "9223372036854775808", "18446744073709551615", "4294967296", "2147483648", "true", "none", "auto",
       "-", "--", ",", "1,2", "1,,2", "0.6,0.2,0.2", "nan,nan,nan", "../x", "\x1b[31mred", "a\nb", "\u00e9",
       "%s%n", "cpu", "cuda", "cuda:99", "cpu:1", "*", "spmm/cpu/*", "all"]
WORDS = ["gcn", "sage", "gin", "gine", "gat", "gatv2", "agnn", "sgc", "cheb", "adam", "sgd", "full", "clusters", "graphs",
         "mean", "max", "sum", "relu", "elu", "accuracy", "roc_auc", "node", "graph", "on", "off", "metis", "multilevel",
         "contiguous", "rcm", "degree", "bfs", "random", "add", "remove", "keep", "reject", "first", "fp32", "bf16",
         "fp16", "fp64", "tf32", "spmm", "spmm_backward", "sddmm", "edge_softmax", "attention", "gemm", "measured",
         "predicted", "dot", "fp16@4", "compare", "16", "64", "4", "8"]
SOURCES = ["embedded:karate", "generate:erdos_renyi?vertices=20&edges=40",
           "generate:molecules?graphs=6&mean_vertices=5", "generate:bipartite", "generate:rmat?scale=3&edges=9",
           "generate:rmat?scale=-1", "generate:rmat?seed=-1", "generate:erdos_renyi?vertices=0&edges=0",
           "generate:sbm?vertices=30", "generate:chung_lu?vertices=1e30", "embedded:", "generate:", "twin:",
           "generate:rmat?scale=nan", "missing.npz", "", "-", "data.npz", "data.mtx", "model.tsr", "noise.npz", "."]
FILES = ["out.npz", "out.tsr", "out.mtx", "out.mtx.gz", "out.txt", "out.json", "out", "data.npz", "model.tsr",
         "no/such/folder.npz", ".", "/dev/null", "", "link.npz", "noise.npz", "data.mtx"]
# Values that ask for long work rather than odd work: the largest that stay within a second.
LONG = {"--epochs": ["1", "2", "0", "-1", "1e3", "nan"], "--threads": ["0", "1", "2", "-1", "5000", "x"],
        "--runs": ["1", "2", "0", "-1", "99999999999999999999", "9223372036854775807"],
        "--checkpoint-every": ["1", "0", "-1"], "--layers": ["1", "2", "3", "0", "4611686018427387904"],
        "--hops": ["0", "1", "2", "-1", "9223372036854775807"], "--folds": ["0", "2", "3", "9223372036854775807"],
        "--features": ["0", "1", "4", "4,8", "-1", "99999999999999999999", ""]}
# How often each verb is drawn: train has most options, check and bench take longest.
VERBS = {"info": 8, "generate": 10, "convert": 12, "reorder": 12, "prune": 4, "partition": 12, "tiles": 8, "train": 60, "predict": 12,
         "plan": 16, "check": 1, "doctor": 3, "bench": 3}


def options_of(verb):
    """The options that a verb's help lists, and whether each takes a value."""
    found = {}
    for match in re.finditer(r"(?m)^  (?:-(\w), |    )--([\w-]+)( \S+)?", cli.Run([verb, "--help"]).out):
        found["--" + match.group(2)] = match.group(3) is not None
    found.pop("--help", None)
    return found


class Drawn(cli.CliTest):
    def value(self, draw, option):
        if option in LONG and draw.random() < 0.95:
            return draw.choice(LONG[option])
        if option in ("--data", "--what"):
            return draw.choice(SOURCES)
        if option in ("--output", "--json", "--checkpoint", "--partition", "--permutation", "--save", "--load",
                      "--plans"):
            return draw.choice(FILES)
        values = draw.choice([ODD, WORDS, WORDS])
        if option in LONG:
            values = ["", "x", "-1", "nan"]
        return draw.choice(values)

    def line(self, draw, options):
        verb = draw.choices(list(VERBS), VERBS.values())[0]
        if draw.random() < 0.02:
            verb = draw.choice(["help", "--version", "inof", ""])
        line = [verb]
        if verb == "bench":
            line += [draw.choice(["spmm", "sddmm", "edge_softmax", "compare", "x", ""]), "--quick"]
        known = options.get(verb, {})
        if verb in ("train", "check", "bench"):
            # Without these the default is long work.
            line += ["--epochs", "2"] if verb == "train" else ["--features", "4"]
        if verb not in ("doctor", "help", "--version", "bench"):
            line.append(draw.choice(SOURCES[:3]) if draw.random() < 0.7 else draw.choice(SOURCES))
        if verb == "bench":
            line += ["--data", draw.choice(SOURCES[:3])]
        for option in draw.sample(sorted(known), min(len(known), draw.choice([0, 1, 1, 2, 3, 5]))):
            if option in ("--full", "--tune"):
                continue
            value = self.value(draw, option)
            if not known[option]:
                line.append(option)
            elif draw.random() < 0.2:
                line.append(f"{option}={value}")
            else:
                line += [option, value] if draw.random() < 0.97 else [option]
        return [word for word in line if "\0" not in word]

    def prepare(self, folder):
        folder.mkdir()
        (folder / "data.npz").write_bytes(cli.graph_npz(4, [(0, 1), (1, 2), (2, 3), (3, 0)]))
        cli.write_mtx(folder / "data.mtx", 3, 3, [(0, 1), (1, 2)])
        (folder / "noise.npz").write_bytes(bytes(range(256)))
        (folder / "link.npz").symlink_to("nowhere.npz")
        self.succeed("train", "embedded:karate", "--epochs", "2", "--split", "0.3,0.3,0.4", "--checkpoint",
                     folder / "model.tsr")

    def judge(self, folder, lines):
        """What is wrong with the outcome of each line, for one worker in a folder of its own."""
        wrong = []
        for line in lines:
            try:
                run = cli.Run(line, cwd=folder)
            except UnicodeDecodeError:
                wrong.append((line, "output is no UTF-8"))
                continue
            said = run.err.splitlines()
            if run.code not in (0, 2, 3, 4, 5, 6, 7) or (run.code in range(2, 7) and len(said) != 1):
                wrong.append((line, f"exit {run.code}: {run.err[-300:]}"))
            elif any(ord(c) < 32 for c in "".join(said)):
                wrong.append((line, f"control characters: {run.err!r}"))
        return wrong

    def test_no_line_reaches_an_internal_error(self):
        draw = random.Random(SEED)
        options = {verb: options_of(verb) for verb in VERBS}
        self.assertIn("--heads", options["train"])
        self.assertTrue(options["train"]["--heads"] and not options["train"]["--resume"])
        lines = [self.line(draw, options) for _ in range(DRAWS)]
        workers = 2
        folders = [self.folder / str(i) for i in range(workers)]
        for folder in folders:
            self.prepare(folder)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            outcomes = list(pool.map(self.judge, folders, [lines[i::workers] for i in range(workers)]))
        wrong = [one for outcome in outcomes for one in outcome]
        self.assertEqual(wrong, [], f"seed {SEED}")


if __name__ == "__main__":
    unittest.main()
