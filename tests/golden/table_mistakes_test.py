# SPDX-License-Identifier: Apache-2.0
"""What people try with tables of their own that cannot work: one error that says what to do instead."""
import subprocess
import unittest

import cli

USERS = "id,age,kind,churn\n" + "".join(f"u{i},{20 + i},{'ab'[i % 2]},{['yes', 'no', ''][i % 3]}\n" for i in range(30))
FOLLOWS = "source,target\n" + "".join(f"u{i},u{(i + 1) % 30}\n" for i in range(30))


class Mistakes(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.users, self.follows = self.write("users.csv", USERS), self.write("follows.csv", FOLLOWS)
        self.archive, self.model = self.folder / "graph.npz", self.folder / "model.tsr"
        self.archive.write_bytes(cli.graph_npz(3, [(0, 1), (1, 2)]))
        self.tables = [self.follows, "--nodes", self.users]

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def said(self, code, *arguments):
        return self.fail_with(code, *arguments).err

    def test_nothing_says_what_to_learn(self):
        """The data has no labels: where they may come from."""
        error = self.said(cli.USAGE, "train", *self.tables)
        self.assertIn("users.csv: has no labels", error)
        self.assertIn("--label COLUMN; it could be 'kind' (2 values), 'churn' (2 values)\n", error)
        error = self.said(cli.USAGE, "train", *self.tables, "--drop", "kind,churn")
        self.assertIn("--label COLUMN, a column of classes", error)
        self.succeed("convert", *self.tables, "-o", self.folder / "my.tsr")
        self.assertIn("--label COLUMN; it could be 'kind'", self.said(cli.USAGE, "train", self.folder / "my.tsr"))
        for source in [self.follows, self.archive]:
            for more in [[], ["--dry-run"]]:
                error = self.said(cli.USAGE, "train", source, "--epochs", "1", *more)
                for way in ["--nodes FILE --label COLUMN", "y in an .npz", "tessera.save"]:
                    self.assertIn(way, error)

    def test_numbers_that_may_be_labels(self):
        """Whole numbers, few of them; those that are missing count for nothing."""
        rows = "".join(f"u{i},{'' if i % 5 == 0 else i % 2},{i / 7},{i}\n" for i in range(30))
        users = self.write("numbers.csv", "id,left,score,rank\n" + rows)
        error = self.said(cli.USAGE, "train", self.follows, "--nodes", users)
        self.assertIn("it could be 'left' (2 values)\n", error)

    def test_columns_that_are_not_there(self):
        for option in ["--id", "--label", "--split-column", "--features", "--drop"]:
            error = self.said(cli.BAD_DATA, "train", *self.tables, option, "chrun")
            self.assertIn("users.csv: has no column 'chrun': there are id, age, kind, churn", error)
            self.assertIn(f"give {option}", error)
        for option in ["--source", "--target", "--weight", "--edge-features"]:
            error = self.said(cli.BAD_DATA, "train", *self.tables, "--label", "churn", option, "form")
            self.assertIn("follows.csv: has no column 'form': there are source, target", error)

    def test_files_that_are_not_what_they_should_be(self):
        train = ["train", "--label", "churn", "--nodes"]
        self.assertIn("as the edges and as the table", self.said(cli.USAGE, *train, self.users, self.users))
        self.assertIn("the file of the edges first", self.said(cli.BAD_DATA, "train", self.users, "--nodes", self.follows))
        self.assertIn("leave out --nodes", self.said(cli.USAGE, *train, self.users, self.archive))
        self.assertIn("leave out --nodes", self.said(cli.USAGE, *train, self.users, "embedded:karate"))
        self.assertIn("no text", self.said(cli.BAD_DATA, *train, self.archive, self.follows))
        self.assertIn("No such file", self.said(cli.IO, *train, self.folder / "none.csv", self.follows))
        for text in ["", "\n\n", "# nothing\n"]:
            empty = self.write("empty.csv", text)
            self.assertIn("empty.csv", self.said(cli.BAD_DATA, *train, empty, self.follows))
            self.assertIn("empty.csv", self.said(cli.BAD_DATA, *train, self.users, empty))
        no_rows = self.write("no_rows.csv", "id,age,churn\n")
        self.assertIn("'u0' is not in", self.said(cli.BAD_DATA, *train, no_rows, self.follows))
        self.assertIn("no vertex has a label",
                      self.said(cli.USAGE, *train, no_rows, self.follows, "--unknown-ids", "drop"))
        # A table of edges without edges is a graph without edges.
        self.succeed(*train, self.users, self.write("no_edges.csv", "source,target\n"), "--epochs", "1")

    def test_labels_that_teach_nothing(self):
        for text, said in [("yes", "all labels are 'yes'"), ("1", "all labels are 1"), ("", "no vertex has a label")]:
            users = self.write("one.csv", "id,age,churn\n" + "".join(f"u{i},{i},{text}\n" for i in range(30)))
            error = self.said(cli.USAGE, "train", self.follows, "--nodes", users, "--label", "churn")
            self.assertIn(said, error)

    def test_options_that_do_nothing(self):
        for option in [["--label", "churn"], ["--id", "id"], ["--drop", "x"], ["--unknown-ids", "drop"],
                       ["--nodes-separator", ","], ["--nodes-header", "no"]]:
            self.assertIn("--nodes FILE", self.said(cli.USAGE, "train", self.follows, *option))
        for verb in [["info"], ["train"], ["convert", "-o", self.folder / "x.tsr"]]:
            for option in [["--separator", ","], ["--header", "yes"], ["--ids", "names"], ["--base", "1"],
                           ["--source", "a"], ["--target", "b"], ["--weight", "none"]]:
                for source in [self.archive, "embedded:karate"]:
                    self.assertIn(f"{option[0]}: is for tables", self.said(cli.USAGE, *verb, source, *option))
        for option in [["--base", "1"], ["--ids", "numbers"]]:
            error = self.said(cli.USAGE, "train", *self.tables, "--label", "churn", *option)
            self.assertIn(f"{option[0]}: does nothing with a table of vertices", error)
        self.assertIn("one character", self.said(cli.USAGE, "info", *self.tables, "--nodes-separator", "::"))
        notes = self.json("train", "embedded:citation", "--epochs", "1", "--symmetrise")["notes"]
        self.assertIn("symmetrised: the graph was so already", notes)

    def test_a_model_is_no_data(self):
        self.succeed("train", *self.tables, "--label", "churn", "--epochs", "1", "-c", self.model)
        for option in [["--nodes", self.users], ["--symmetrise"], ["--separator", ","], ["--picture", self.folder / "p.svg"]]:
            error = self.said(cli.USAGE, "info", self.model, *option)
            self.assertIn(f"{option[0]}: does nothing for a trained model", error)
        self.succeed("info", "--data", self.model, "--threads", "1")

    def test_separators_of_both_tables(self):
        users = self.write("bars.csv", USERS.replace(",", "|"))
        blanks = self.write("blanks.txt", FOLLOWS.replace(",", " "))
        notes = self.json("info", blanks, "--nodes", users, "--separator", "blank", "--nodes-separator", "|")["notes"]
        self.assertIn("parted by blanks", notes[0])
        self.assertIn("parted by bars", notes[1])

    def test_steps_are_said(self):
        weighted = self.write("weighted.csv", "source,target,weight\nu0,u1,2\nu1,u0,2\nu2,u2,1\nu3,u4,5\n")
        steps = ["--transpose", "--symmetrise", "--self-loops", "remove"]
        report = self.json("convert", weighted, "--nodes", self.users, *steps, "-o", self.folder / "w.tsr")
        self.assertEqual((report["edges_before"], report["edges"]), (4, 4))
        self.assertIn("weighted by 'weight'", report["notes"][0])
        self.assertEqual([note for note in report["notes"] if "ed: " in note],
                         ["transposed: 4 edges", "symmetrised: 4 edges became 5, without their weights",
                          "self loops removed: 5 edges became 4"])
        self.assertEqual(self.json("info", weighted, "--nodes", self.users, *steps)["edges"], 4)

    def test_pipes_are_no_files(self):
        for source in ["-", "/dev/stdin"]:
            done = subprocess.run([cli.PROGRAM, "train", source, "--nodes", str(self.users), "--label", "churn"], input=FOLLOWS,
                                  capture_output=True, text=True, timeout=cli.SECONDS)
            self.assertIn(done.returncode, (cli.USAGE, cli.IO), done.stderr)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
