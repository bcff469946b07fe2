# SPDX-License-Identifier: Apache-2.0
"""docs/json.md and the program agree on every key of every verb and on its type."""
import json
import re
import unittest

import cli

KARATE = "embedded:karate"
SHORT = ["--epochs", "3", "--split", "0.3,0.3,0.4"]
BRIEF = {"info", "generate", "convert", "reorder", "prune", "partition", "train", "tune", "predict", "check", "plan"}
TYPES = {"text": str, "integer": int, "number": (int, float), "boolean": bool, "list": list, "object": dict}


def page():
    """{section: {path: (type, is there only sometimes)}}"""
    sections = {}
    for section in (cli.SOURCE / "docs" / "json.md").read_text().split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        keys = re.findall(r"(?m)^\| (\*?)`([^`]+)`\*? \| ([a-z ]+) \|", text)
        sections[title] = {path: (kind, bool(rare)) for rare, path, kind in keys}
    return sections


def documented(sections, verb):
    keys = {**sections["Every verb"], **sections[verb]}
    if verb in BRIEF:
        # `generate --list` reads no graph.
        rare = verb == "generate"
        keys.update({path: (kind, rare) for path, (kind, _) in sections["Verbs that read a graph"].items()})
    return keys


def flattened(value, keys, path=""):
    """(path, value) of everything that the page lists, and of whatever it does not."""
    if path in keys or not isinstance(value, (dict, list)):
        return [(path, value)]
    if isinstance(value, list):
        if not any(known.startswith(f"{path}[]") for known in keys):
            return [(path, value)]
        return [found for inner in value for found in flattened(inner, keys, f"{path}[]")]
    found = []
    for name, inner in value.items():
        below = f"{path}.{name}" if path else name
        anything = f"{path}.*"
        found += [(anything, inner)] if anything in keys else flattened(inner, keys, below)
    return found


class Keys(cli.CliTest):
    def runs(self):
        """(verb, options): together they make every key that this machine can make."""
        at = lambda name: str(self.folder / name)
        self.succeed("train", KARATE, *SHORT, "-c", at("model.tsr"))
        unlabelled = self.folder / "plain.mtx"
        cli.write_mtx(unlabelled, 3, 4, [(0, 1), (1, 1)])
        yield "info", ["info", KARATE, "--picture", at("karate.svg")]
        yield "info", ["info", unlabelled]
        yield "generate", ["generate", "erdos_renyi?vertices=10&edges=20", "-o", at("drawn.tsr")]
        yield "generate", ["generate", "--list"]
        yield "convert", ["convert", KARATE, "-o", at("karate.npz"), "--symmetrise"]
        yield "reorder", ["reorder", KARATE, "-o", at("ordered.npz"), "--permutation", at("order.txt"),
                          "--picture", at("order.png")]
        yield "reorder", ["reorder", KARATE, "--report"]
        yield "reorder", ["reorder", KARATE, "--method", "nm", "--pattern", "best"]
        yield "reorder", ["reorder", KARATE, "--method", "layout"]
        yield "prune", ["prune", KARATE, "-o", at("pruned.tsr")]
        yield "partition", ["partition", KARATE, "--parts", "3", "-o", at("parts.txt")]
        yield "partition", ["partition", KARATE, "--parts", "3", "--report"]
        yield "tiles", ["tiles", KARATE]
        yield "train", ["train", KARATE, *SHORT, "-c", at("second.tsr"), "--plot", at("run.png"),
                        "--save-data", at("saved.tsr"), "--report", at("trained.json")]
        yield "train", ["train", KARATE, *SHORT, "--evaluate-every", "2", "--runs", "2"]
        yield "train", ["train", KARATE, *SHORT, "--bits", "8", "-c", at("trained_few.tsr"), "--baseline", at("model.tsr")]
        yield "train", ["train", KARATE, *SHORT, "--dry-run"]
        yield "train", ["train", KARATE, *SHORT, "--explain", "step"]
        yield "train", ["train", KARATE, "--epochs", "2", "--folds", "3"]
        (self.folder / "splits.npz").write_bytes(cli.graph_npz(
            4, [(0, 1), (1, 0)], y=cli.npy([0, 1, 0, 1], "q"), train_mask=cli.npy([1, 0, 1, 0, 0, 1, 0, 0], "i", (4, 2)),
            val_mask=cli.npy([0, 1, 0, 0, 0, 0, 1, 0], "i", (4, 2))))
        yield "train", ["train", at("splits.npz"), "--epochs", "2"]
        yield "tune", ["tune", KARATE, *SHORT, "--trials", "3", "--state", at("trials"), "-c", at("best.tsr")]
        yield "predict", ["predict", KARATE, "-c", at("model.tsr"), "-o", at("classes.txt"),
                          "--embeddings", at("embeddings.csv"), "--report", at("quality.txt")]
        yield "predict", ["predict", KARATE, "-c", at("model.tsr"), "--bits", "4", "--quantised", at("few.tsr")]
        self.succeed("train", "embedded:citation", "--epochs", "3", "-c", at("citation.tsr"))
        yield "predict", ["predict", "embedded:citation", "-c", at("citation.tsr"), "--bits", "4", "--parts", "3"]
        yield "train", ["train", KARATE, "--task", "links", "--epochs", "2", "-c", at("links.tsr")]
        yield "train", ["train", KARATE, "--task", "links", "--epochs", "2", "--runs", "2"]
        yield "predict", ["predict", KARATE, "-c", at("links.tsr"), "--top", "3", "-o", at("lists.csv")]
        numbers = cli.npy([0.5, 1.5, 2.5, 4.0], "f")
        (self.folder / "numbers.npz").write_bytes(cli.graph_npz(4, [(0, 1), (1, 0)], y=numbers))
        (self.folder / "graphs.npz").write_bytes(cli.graph_npz(
            4, [(0, 1), (1, 0)], graph_id=cli.npy([0, 0, 1, 2], "i"), graph_label=cli.npy([0.5, 1.5, 2.5], "f")))
        yield "info", ["info", at("numbers.npz")]
        yield "info", ["info", at("graphs.npz")]
        yield "train", ["train", at("numbers.npz"), "--epochs", "2", "--split", "0.5,0.25,0.25", "-c", at("numbers.tsr")]
        yield "predict", ["predict", at("numbers.npz"), "-c", at("numbers.tsr"), "-o", at("numbers.csv")]
        yield "check", ["check", KARATE, "--features", "3"]
        for op in ["spmm", "attention"]:
            yield "plan", ["plan", KARATE, "--op", op, "--backward", "--tune", "measured"]
        yield "bench", ["bench", "spmm", "--data", KARATE, "--features", "4", "--quick", "--baseline", "spmm/cpu/rows"]
        yield "doctor", ["doctor"]
        yield "doctor", ["doctor", "--device-profile", "a100"]
        yield "completion", ["completion", "fish"]
        yield "man", ["man"]
        self.succeed("bench", "spmm", "--data", KARATE, "--features", "4", "--quick", "--json", at("bench.json"))
        yield "bench compare", ["bench", "compare", at("bench.json"), at("bench.json")]

    # What needs a GPU, a failing kernel, a signal, an error or an op with figures of its own.
    NOT_HERE = {"bench": {"records[].chain_us", "records[].figures.*", "interrupted", "error"}, "check": {"checks[].reason"},
                "reorder": {"nm.obstacle"}, "train": {"step.rewrites[].saved_us"}}

    def test_page_and_program_agree(self):
        sections = page()
        self.assertEqual(set(sections) - {"Every verb", "Verbs that read a graph"}, {*cli.verbs(), "bench compare", "info of a checkpoint",
                                                                                       "report of classes", "info of triples", "info of a model of triples",
                                                                                       "info of kinds and relations", "info of a model of kinds and relations",
                                                                                       "train of kinds and relations", "predict of kinds and relations",
                                                                                       "train of triples", "predict of triples"})
        seen = {}
        for verb, arguments in self.runs():
            with self.subTest(arguments=arguments):
                keys = documented(sections, verb)
                text = self.succeed(*arguments, "--json", "-").out
                record = json.loads(text, parse_constant=lambda word: self.fail(f"{word} in {arguments}"))
                self.assertEqual(list(record)[:2], ["verb", "schema"])
                self.assertEqual((record["verb"], record["schema"]), (verb, 1))
                found = flattened(record, keys)
                for path, value in found:
                    self.assertIn(path, keys, "not in docs/json.md")
                    self.check_type(path, value, keys[path][0])
                always = {path for path, (_, rare) in keys.items() if not rare}
                self.assertEqual(always - {path for path, _ in found}, set(), "in docs/json.md, but not written")
                seen.setdefault(verb, set()).update(path for path, _ in found)
        for verb, paths in seen.items():
            unseen = set(documented(sections, verb)) - paths - self.NOT_HERE.get(verb, set())
            self.assertEqual(unseen, set(), f"{verb}: in docs/json.md, but never written")

    def check_type(self, path, value, kind):
        if kind == "any":
            return
        if kind.endswith(" or null"):
            if value is None:
                return
            kind = kind[:-len(" or null")]
        self.assertIsInstance(value, TYPES[kind], path)
        if kind != "boolean":
            self.assertNotIsInstance(value, bool, path)


if __name__ == "__main__":
    unittest.main()
