# SPDX-License-Identifier: Apache-2.0
"""What the program says to the mistakes that users make most: one line each, kept word for word, which names
what fixes it. TESSERA_UPDATE_GOLDEN=1 writes the file anew."""
import re
import unittest

import cli

KARATE = "embedded:karate"
TRAIN = ["train", KARATE, "--epochs", "2", "--split", "0.3,0.3,0.4"]

# Files are made by setUp: data.npz, directed.mtx, twice.mtx, parts.txt, model.tsr, notes.txt.
MISTAKES = [
    # misspelt and misplaced
    ["inof", KARATE],
    ["trian", KARATE],
    ["help", "convrt"],
    ["--threads", "2", "info", KARATE],
    ["info", KARATE, "--jsno", "out.json"],
    ["train", KARATE, "--modle", "gcn"],
    ["train", KARATE, "--learning-rate", "0.1"],
    ["train", KARATE, "--epoch", "10"],
    ["train", KARATE, "--optimizer", "adam"],
    ["info", KARATE, "extra"],
    # missing values and missing options
    ["info"],
    ["info", "--data"],
    ["convert", KARATE],
    ["predict", KARATE],
    ["partition", KARATE],
    ["generate"],
    ["train", KARATE, "--epochs"],
    ["train", KARATE, "--resume"],
    ["info", KARATE, "--json", ""],
    ["train", KARATE, "--model="],
    ["bench", "compare", "before.json"],
    # wrong types and values out of range
    ["info", KARATE, "--threads", "many"],
    ["info", KARATE, "--threads", "-1"],
    ["info", KARATE, "--seed", "-1"],
    ["info", KARATE, "--seed", "99999999999999999999"],
    ["train", KARATE, "--epochs", "many"],
    ["train", KARATE, "--epochs", "0"],
    ["train", KARATE, "--epochs", "9223372036854775808"],
    ["train", KARATE, "--runs", "0"],
    ["train", KARATE, "--lr", "nan"],
    ["train", KARATE, "--lr", "-0.1"],
    ["train", KARATE, "--dropout", "1"],
    ["train", KARATE, "--split", "0.6,0.4"],
    ["train", KARATE, "--split", "0.6,0.6,0.6"],
    ["train", KARATE, "--folds", "1"],
    ["partition", KARATE, "--parts", "0"],
    ["tiles", KARATE, "--height", "24"],
    ["plan", KARATE, "--precision", "fp8"],
    ["plan", KARATE, "--op", "conv"],
    ["plan", KARATE, "--kernel", "spmm/cpu/fast"],
    ["info", KARATE, "--duplicates", "maybe"],
    ["reorder", KARATE, "--method", "metis"],
    ["reorder", KARATE, "--method", "nm", "--pattern", "2:3:4"],
    ["reorder", KARATE, "--pattern", "1:2:4"],
    ["reorder", KARATE, "--method", "nm", "--search", "time"],
    ["reorder", KARATE, "--method", "nm", "--pad", "-o", "new.npz"],
    ["info", KARATE, "--color", "maybe"],
    ["train", KARATE, "--epochs", "1.5"],
    ["train", KARATE, "--epochs", "010"],
    ["train", KARATE, "--dropout", "much"],
    ["info", KARATE, "--picture", "out.jpg"],
    ["train", KARATE, "--plot", "out.pdf"],
    ["train", KARATE, "--plot", "out.svg", "--dry-run"],
    ["info", KARATE, "--data", KARATE],
    ["partition", KARATE, "--parts", "100"],
    ["train", "embedded:citation", "--readout", "sum"],
    ["train", "embedded:citation", "--task", "graph"],
    ["bench", "compare", "notes.txt", "notes.txt"],
    ["completion"],
    ["completion", "tcsh"],
    # names of data and models
    ["info", "karate"],
    ["info", "reddit"],
    ["info", "embedded:cora"],
    ["info", "missing.npz"],
    ["info", "notes.txt"],
    ["info", "generate:rmat?scle=3"],
    ["info", "generate:rmat?scale=x"],
    ["info", "twin:nothing"],
    ["train", KARATE, "--model", "gnn"],
    ["train", KARATE, "--metric", "auc"],
    ["train", KARATE, "--normalise", "unit"],
    ["train", KARATE, "--normalise", "standard"],
    ["train", KARATE, "--device", "gpu"],
    # swapped arguments and wrong files
    ["convert", "-o", "data.npz", "out.tsr"],
    ["predict", "model.tsr", "--checkpoint", "data.npz"],
    ["convert", KARATE, "-o", "out.csv"],
    ["convert", "data.npz", "-o", "out.mtx"],
    ["predict", KARATE, "-c", "model.tsr", "-o", "classes.xls"],
    ["info", "twice.mtx"],
    ["partition", KARATE, "--partition", "parts.txt"],
    # files that are in the way
    ["convert", KARATE, "-o", "notes.npz"],
    ["info", "data.npz", "--json", "data.npz"],
    ["reorder", KARATE, "-o", "new.npz", "--permutation", "new.npz"],
    ["convert", KARATE, "-o", "no/such/folder.npz"],
    # options that do nothing, and work that cannot be
    ["train", KARATE, "--model", "gcn", "--heads", "4"],
    ["train", KARATE, "--model", "gat", "--pattern", "1:2:4"],
    ["train", KARATE, "--model", "gatv2", "--pattern", "1:2:4"],
    ["train", KARATE, "--model", "agnn", "--pattern", "1:2:4"],
    ["train", KARATE, "--pattern", "1:3:4"],
    ["train", KARATE, "--pattern", "1:2:4", "--process-every-step"],
    ["train", KARATE, "--momentum", "0.9"],
    ["train", KARATE, "--parts", "4"],
    ["bench", "spmm", "--data", KARATE, "--heads", "4"],
    ["train", "data.npz"],
    [*TRAIN, "--checkpoint", "model.tsr"],
    [*TRAIN, "--checkpoint", "model.tsr", "--resume", "--hidden", "9"],
    ["train", KARATE, "--epochs", "1", "--split", "0.3,0.3,0.4", "--checkpoint", "model.tsr", "--resume"],
    [*TRAIN, "--hidden", "4611686018427387904"],
]


class Messages(cli.CliTest):
    def setUp(self):
        super().setUp()
        entries = [(0, 1), (1, 2), (2, 3), (3, 0)]
        (self.folder / "data.npz").write_bytes(
            cli.graph_npz(4, entries, y=cli.npy([-1, -1, -1, -1], "q")))
        cli.write_mtx(self.folder / "twice.mtx", 2, 2, [(0, 1), (0, 1), (1, 0)])
        for name in ["notes.txt", "notes.npz"]:
            (self.folder / name).write_text("a note\n")
        (self.folder / "parts.txt").write_text("0\n1\n")
        self.succeed(*TRAIN, "--checkpoint", self.folder / "model.tsr")

    def test_every_message_names_what_fixes_it(self):
        text = ""
        for arguments in MISTAKES:
            run = self.fail_with_any(arguments)
            # What depends on the machine.
            said = re.sub(r"has [\d.e+]+ GiB", "has N GiB", run.err)
            text += f"$ tessera {' '.join(word or repr(word) for word in arguments)}\n{run.code}  {said}"
            with self.subTest(arguments=arguments):
                fix = said.split(": error: ")[1]
                self.assertRegex(fix, r"--?[a-z]|'tessera help|did you mean|use |give |name |there are ", said)
        self.assertGreaterEqual(len(MISTAKES), 60)
        self.compare_golden("messages.txt", text)

    def fail_with_any(self, arguments):
        run = cli.Run(arguments, cwd=self.folder)
        self.assertIn(run.code, range(2, 7), str(run))
        self.assertEqual(len(run.err.splitlines()), 1, str(run))
        return run


if __name__ == "__main__":
    unittest.main()
