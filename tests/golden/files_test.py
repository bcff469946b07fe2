# SPDX-License-Identifier: Apache-2.0
"""Nothing is overwritten unasked: one rule for every file of every verb."""
import fcntl
import json
import os
import pathlib
import random
import resource
import shutil
import socket
import subprocess
import tempfile
import unittest

import cli

KARATE = "embedded:karate"


class Overwriting(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data.npz"
        self.data.write_bytes(cli.graph_npz(4, [(0, 1), (1, 2), (2, 3), (3, 0)]))
        self.model = self.folder / "model.tsr"
        self.succeed("train", KARATE, "--epochs", "2", "--split", "0.3,0.3,0.4", "--checkpoint",
                     self.model)

    def outputs(self, path):
        """Every option of every verb that writes a file which is no report."""
        return [["generate", "erdos_renyi?vertices=10&edges=20", "-o", path],
                ["convert", KARATE, "-o", path], ["reorder", KARATE, "-o", path],
                ["reorder", KARATE, "--permutation", path],
                ["partition", KARATE, "--parts", "2", "-o", path],
                ["plan", KARATE, "--save", path],
                ["predict", KARATE, "--checkpoint", self.model, "-o", path],
                ["train", KARATE, "--epochs", "2", "--split", "0.3,0.3,0.4", "--checkpoint", path]]

    def test_outputs_that_exist_need_force(self):
        out = self.folder / "out.npz"
        for arguments in self.outputs(out):
            with self.subTest(arguments=arguments):
                out.write_text("precious")
                self.assertIn("--force", self.fail_with(cli.USAGE, *arguments).err)
                self.assertEqual(out.read_text(), "precious")
                self.succeed(*arguments, "--force")
                self.assertNotEqual(out.read_bytes(), b"precious")

    def test_a_report_replaces_reports_alone(self):
        for verb in [["info", KARATE], ["tiles", KARATE], ["doctor"], ["generate", "--list"],
                     ["plan", KARATE], ["partition", KARATE, "-k", "2"]]:
            with self.subTest(verb=verb):
                report = self.folder / "report.json"
                for old in ["", '{"verb": "older"}']:
                    report.write_text(old)
                    self.succeed(*verb, "--json", report)
                    self.assertIn("verb", json.loads(report.read_text()))
                for precious in [self.data, self.model]:
                    before = precious.read_bytes()
                    self.assertIn("--force", self.fail_with(cli.USAGE, *verb, "--json",
                                                            precious).err)
                    self.assertEqual(precious.read_bytes(), before)
                report.write_text("notes")
                self.fail_with(cli.USAGE, *verb, "--json", report)
                self.succeed(*verb, "--json", report, "--force")

    def same_file(self):
        """Other names of the input."""
        link, hard = self.folder / "link.npz", self.folder / "hard.npz"
        link.symlink_to("data.npz")
        os.link(self.data, hard)
        (self.folder / "inner").mkdir()
        return [self.data, link, hard, f"{self.folder}/inner/../data.npz",
                f"{self.folder}//./data.npz"]

    def test_no_output_is_an_input(self):
        before = self.data.read_bytes()
        for name in self.same_file():
            for arguments in [["info", self.data, "--json", name],
                              ["convert", self.data, "-o", name],
                              ["reorder", self.data, "--permutation", name],
                              ["train", self.data, "--checkpoint", name],
                              ["bench", "spmm", "--data", self.data, "--plans", name],
                              ["plan", self.data, "--save", name]]:
                with self.subTest(name=name, arguments=arguments):
                    run = self.fail_with(cli.USAGE, *arguments, "--force")
                    self.assertIn("is the input of --data", run.err)
                    self.assertEqual(self.data.read_bytes(), before)
        self.fail_with(cli.USAGE, "predict", KARATE, "-c", self.model, "--json", self.model, "-f")

    def test_two_outputs_are_two_files(self):
        new = self.folder / "new.npz"
        link = self.folder / "to_new.npz"
        link.symlink_to("new.npz")
        for other in [new, link, f"{self.folder}/./new.npz"]:
            for arguments in [["reorder", KARATE, "-o", new, "--permutation", other],
                              ["reorder", KARATE, "-o", new, "--json", other],
                              ["train", KARATE, "--checkpoint", new, "--json", other],
                              ["train", KARATE, "--checkpoint", new, "--resume", "--json", other]]:
                with self.subTest(arguments=arguments):
                    run = self.fail_with(cli.USAGE, *arguments, "--force")
                    self.assertIn("is to be written by both", run.err)
        self.assertFalse(new.exists())

    def test_links_are_followed_and_stay(self):
        for verb in [["convert", KARATE, "-o"], ["info", KARATE, "--json"],
                     ["reorder", KARATE, "--permutation"]]:
            with self.subTest(verb=verb):
                target, link = self.folder / "target.npz", self.folder / "a_link.npz"
                for path in [target, link]:
                    path.unlink(missing_ok=True)
                link.symlink_to("target.npz")
                self.succeed(*verb, link)
                self.assertTrue(link.is_symlink())
                self.assertFalse(target.is_symlink())
                self.succeed(*verb, link, "--force")
                self.assertTrue(link.is_symlink())

    def test_a_circle_of_links_is_refused(self):
        one, two = self.folder / "one.npz", self.folder / "two.npz"
        one.symlink_to("two.npz")
        two.symlink_to("one.npz")
        for verb in [["convert", KARATE, "-o"], ["info", KARATE, "--json"]]:
            self.fail_with(cli.IO, *verb, one)
        self.assertTrue(one.is_symlink() and two.is_symlink())

    def test_resume_and_plans_are_input_and_output(self):
        self.succeed("train", KARATE, "--epochs", "3", "--split", "0.3,0.3,0.4", "--checkpoint",
                     self.model, "--resume")
        plans = self.folder / "plans"
        for _ in range(2):
            self.succeed("bench", "spmm", "--data", KARATE, "--features", "4", "--quick", "--plans",
                         plans)

    def test_devices_get_reports_and_nothing_else(self):
        self.succeed("info", KARATE, "--json", "/dev/null")
        self.fail_with(cli.USAGE, "convert", KARATE, "-o", "/dev/null", "--force")


class InputFolders(cli.CliTest):
    """Nothing that is in a folder of data is overwritten while it is read, whatever it is called."""

    def setUp(self):
        super().setUp()
        self.data, self.model = self.folder / "ogb", self.folder / "model.tsr"
        (self.data / "raw").mkdir(parents=True)
        for name, text in {"edge.csv": "0,1\n1,2\n2,3\n3,0\n", "num-node-list.csv": "4\n",
                           "node-feat.csv": "1,0\n0,1\n1,1\n0,0\n", "node-label.csv": "0\n1\n0\n1\n"}.items():
            (self.data / "raw" / name).write_text(text)
        (self.data / "notes.json").write_text("{}")
        self.succeed("train", self.data, "--epochs", "1", "--split", "0.3,0.3,0.4", "--checkpoint", self.model)

    def writers(self, path):
        train = ["train", self.data, "--epochs", "1", "--split", "0.3,0.3,0.4"]
        return [["info", self.data, "--json", path], ["convert", self.data, "-o", path],
                ["reorder", self.data, "-o", path], ["reorder", self.data, "--permutation", path],
                ["prune", self.data, "--pattern", "1:2:4", "-o", path],
                ["partition", self.data, "--parts", "2", "-o", path], ["plan", self.data, "--save", path],
                ["predict", self.data, "--checkpoint", self.model, "-o", path],
                ["tiles", self.data, "--json", path], [*train, "--checkpoint", path], [*train, "--json", path]]

    def contents(self):
        return {path: path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()}

    def names(self):
        """Files of the folder, under their own names and others."""
        edges, outside = self.data / "raw" / "edge.csv", self.folder / "outside.csv"
        outside.write_text("1,0\n")
        (self.data / "linked.csv").symlink_to("../outside.csv")
        (self.folder / "link.csv").symlink_to(edges)
        os.link(edges, self.folder / "hard.csv")
        (self.folder / "alias").symlink_to("ogb")
        (self.folder / "elsewhere").mkdir()
        (self.folder / "elsewhere" / "more.csv").write_text("0\n")
        (self.data / "split").symlink_to("../elsewhere")
        (self.data / "circle").symlink_to(".")
        return [edges, self.data / "notes.json", self.folder / "link.csv", self.folder / "hard.csv", outside,
                self.folder / "alias" / "raw" / "edge.csv", f"{self.data}/raw/../raw/./edge.csv",
                self.folder / "elsewhere" / "more.csv"]

    def test_nothing_in_it_is_overwritten(self):
        names = self.names()
        before = self.contents()
        for name in names:
            for arguments in self.writers(name):
                with self.subTest(arguments=arguments):
                    run = self.fail_with(cli.USAGE, *arguments, "--force")
                    self.assertIn("is in the folder", run.err)
        for option in ["--picture", "--json"]:
            picture = self.data / "a.svg"
            picture.write_text("<svg ")
            self.fail_with(cli.USAGE, "info", self.data, option, picture, "--force")
            picture.unlink()
        self.assertEqual(self.contents(), before)

    def test_what_is_new_may_be_written_into_it(self):
        self.succeed("info", self.data, "--json", self.data / "report.json")
        self.fail_with(cli.USAGE, "info", self.data, "--json", self.data / "report.json")
        self.succeed("info", self.data, "--json", self.folder / "report.json")
        for _ in range(2):
            self.succeed("train", self.data, "--epochs", "1", "--split", "0.3,0.3,0.4", "--resume", "--checkpoint",
                         self.data / "model.tsr", "--plans", self.data / "plans")

    def test_a_state_is_none_of_its_files(self):
        before = self.contents()
        edges = self.data / "raw" / "edge.csv"
        self.fail_with(cli.BAD_DATA, "train", self.data, "--resume", "--checkpoint", edges, "--force")
        self.fail_with(cli.BAD_DATA, "train", self.data, "--plans", edges, "--force")
        self.assertEqual(self.contents(), before)


class Coincidences(cli.CliTest):
    """Drawn commands whose outputs are inputs or other outputs, under other names: whatever the program says, every
    input is afterwards as it was. TESSERA_PATHS and TESSERA_DRAW_SEED choose how many, and others."""

    draws = int(os.environ.get("TESSERA_PATHS", 60))
    seed = int(os.environ.get("TESSERA_DRAW_SEED", 40))

    def setUp(self):
        super().setUp()
        self.template = self.folder / "template"
        (self.template / "ogb" / "raw").mkdir(parents=True)
        for name, text in {"edge.csv": "0,1\n1,2\n2,3\n3,0\n", "num-node-list.csv": "4\n",
                           "node-feat.csv": "1,0\n0,1\n1,1\n0,0\n", "node-label.csv": "0\n1\n0\n1\n"}.items():
            (self.template / "ogb" / "raw" / name).write_text(text)
        self.succeed("convert", self.template / "ogb", "-o", self.template / "data.npz")
        self.succeed("train", self.template / "ogb", "--epochs", "1", "--split", "0.3,0.3,0.4", "--checkpoint",
                     self.template / "model.tsr")
        self.succeed("plan", self.template / "ogb", "--save", self.template / "some.plans")
        (self.template / "parts.txt").write_text("0\n0\n1\n1\n")
        (self.template / "edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n")
        (self.template / "nodes.csv").write_text("id,size\n0,1\n1,2\n2,3\n3,4\n")
        (self.template / "report.json").write_text("{}")

    def alias(self, draw, tree, path):
        """One of the names of a file or folder of the tree."""
        kind = draw.randrange(6)
        new = tree / f"alias{draw.randrange(10 ** 9)}{path.suffix}"
        if kind == 0:
            new.symlink_to(path)
        elif kind == 1 and path.is_file():
            os.link(path, new)
        elif kind == 2:
            return f"{path.parent}/../{path.parent.name}//./{path.name}"
        elif kind == 3:
            (tree / new.stem).symlink_to(path.parent)
            return tree / new.stem / path.name
        elif kind == 4:
            return os.path.relpath(path)
        else:
            return path
        return new if new.exists() else path

    def commands(self, source, other, out):
        """Commands with their inputs; `out` draws a name to write to."""
        data, tables, parts = source("ogb", "data.npz"), source("edges.csv"), source("parts.txt")
        model, plans, nodes = source("model.tsr"), source("some.plans"), source("nodes.csv")
        train = ["train", data, "--epochs", "1", "--split", "0.3,0.3,0.4"]
        return [
            ([data], ["info", data, "--json", out()]), ([data], ["info", data, "--picture", f"{out()}.svg"]),
            ([tables, nodes], ["convert", tables, "--nodes", nodes, "-o", out()]),
            ([data], ["convert", data, "-o", out(), "--json", out()]),
            ([data], ["reorder", data, "-o", out(), "--permutation", out(), "--json", out()]),
            ([data], ["prune", data, "--pattern", "1:2:4", "-o", out(), "--json", out()]),
            ([data, parts], ["partition", data, "-k", "2", "--partition", parts, "--json", out()]),
            ([data], ["partition", data, "-k", "2", "-o", out(), "--json", out()]),
            ([data, plans], ["plan", data, "--load", plans, "--json", out()]),
            ([data], ["plan", data, "--save", out(), "--json", out()]),
            ([data, model], ["predict", data, "--checkpoint", model, "-o", out(), "--json", out()]),
            ([data, parts], [*train, "--batch", "clusters", "--partition", parts, "--checkpoint", out(), "--json", out()]),
            ([data], [*train, "--checkpoint", out(), "--plot", f"{out()}.svg", "--plans", out()]),
            ([data], ["bench", "spmm", "--data", data, "--features", "2", "--quick", "--plans", out(), "--json", out()]),
            ([other, data], ["bench", "compare", other, data, "--json", out()])]

    def contents(self, path):
        path = pathlib.Path(path)
        below = [path] if path.is_file() else [file for file in sorted(path.rglob("*")) if file.is_file()]
        return [(file.name, file.read_bytes()) for file in below]

    def test_inputs_stay_as_they_are(self):
        for number in range(self.draws):
            with self.subTest(seed=self.seed, number=number):
                draw = random.Random(f"{self.seed} {number}")
                tree = self.folder / "tree"
                shutil.rmtree(tree, ignore_errors=True)
                shutil.copytree(self.template, tree)
                paths = [path for path in sorted(tree.rglob("*")) if path.is_file()] + [tree / "ogb", tree / "new.npz"]
                source = lambda *names: self.alias(draw, tree, tree / draw.choice(names))
                out = lambda: self.alias(draw, tree, draw.choice(paths))
                inputs, arguments = draw.choice(self.commands(source, source("report.json"), out))
                before = [self.contents(path) for path in inputs]
                run = cli.Run([*arguments, *draw.choice([[], ["--force"], ["--force"]])])
                self.assertNotIn(run.code, (cli.INTERNAL, cli.INTERRUPTED), str(run))
                self.assertLessEqual(len(run.err.splitlines()), 1, str(run))
                # What is new in a folder of data is no change of what was there.
                after = [[file for file in self.contents(path) if file in old] for path, old in zip(inputs, before)]
                self.assertEqual([sorted(files) for files in after], [sorted(files) for files in before], str(run))


class NoFiles(cli.CliTest):
    """Pipes, sockets, devices and folders where a file is meant: an error at once."""

    def setUp(self):
        super().setUp()
        self.pipe, self.socket = self.folder / "pipe", self.folder / "socket"
        os.mkfifo(self.pipe)
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.socket))
        self.inner = self.folder / "inner"
        self.inner.mkdir()
        self.model = self.folder / "model.tsr"
        self.succeed("train", KARATE, "--epochs", "1", "--split", "0.3,0.3,0.4", "--checkpoint", self.model)

    def test_inputs(self):
        for path in [self.pipe, self.socket, self.inner, "/dev/zero"]:
            for arguments in [["info", path], ["convert", path, "-o", self.folder / "out.npz"],
                              ["info", path, "--format", "csv"], ["bench", "compare", path, path],
                              ["partition", KARATE, "-k", "2", "--partition", path], ["plan", KARATE, "--load", path],
                              ["predict", KARATE, "--checkpoint", path],
                              ["train", KARATE, "--split", "0.3,0.3,0.4", "--baseline", path, "--bits", "8"],
                              ["train", KARATE, "--split", "0.3,0.3,0.4", "--resume", "--checkpoint", path],
                              ["bench", "spmm", "--data", KARATE, "--plans", path]]:
                with self.subTest(arguments=arguments):
                    run = cli.Run(arguments)
                    self.assertIn(run.code, (cli.USAGE, cli.IO, cli.BAD_DATA), str(run))
                    self.assertEqual(len(run.err.splitlines()), 1, str(run))
        self.assertEqual(self.leftovers(self.pipe, self.socket, self.inner, self.model), [])

    def test_a_pipe_in_a_folder_of_data(self):
        (self.inner / "raw").mkdir()
        (self.inner / "raw" / "num-node-list.csv").write_text("4\n")
        os.mkfifo(self.inner / "raw" / "edge.csv")
        self.assertNotEqual(cli.Run(["info", self.inner]).code, cli.INTERNAL)

    def test_outputs(self):
        for path in [self.pipe, self.socket, self.inner]:
            for arguments in [["info", KARATE, "--json", path], ["convert", KARATE, "-o", path],
                              ["info", KARATE, "--picture", f"{path}.svg"], ["plan", KARATE, "--save", path],
                              ["reorder", KARATE, "--permutation", path],
                              ["predict", KARATE, "--checkpoint", self.model, "-o", path]]:
                with self.subTest(arguments=arguments):
                    named = self.folder / f"{path.name}.svg"
                    if not named.exists():
                        os.mkfifo(named)
                    run = cli.Run([*arguments, "--force"])
                    self.assertIn(run.code, (cli.USAGE, cli.IO), str(run))
                    self.assertEqual(len(run.err.splitlines()), 1, str(run))
        self.assertTrue(self.pipe.is_fifo() and self.socket.is_socket() and self.inner.is_dir())

    def test_reports_go_to_descriptors_that_are_open(self):
        self.assertIn('"verb"', self.succeed("info", KARATE, "--quiet", "--json", "/dev/stdout").out)
        reading, writing = os.pipe()
        self.succeed("info", KARATE, "--json", f"/dev/fd/{writing}", pass_fds=[writing])
        os.close(writing)
        with os.fdopen(reading) as report:
            self.assertEqual(json.load(report)["verb"], "info")

    def test_a_pipe_without_a_reader_is_an_error(self):
        reading, writing = os.pipe()
        self.addCleanup(os.close, writing)
        os.close(reading)
        run = self.fail_with(cli.IO, "info", KARATE, "--quiet", "--json", f"/dev/fd/{writing}", pass_fds=[writing])
        self.assertIn("cannot write", run.err)

    def test_a_file_below_dev_is_a_file(self):
        if not os.access("/dev/shm", os.W_OK):
            self.skipTest("no /dev/shm")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            report = pathlib.Path(folder) / "report.json"
            for _ in range(2):
                self.succeed("info", KARATE, "--json", report)
                self.assertEqual(json.loads(report.read_text())["verb"], "info")


class SharedPlans(cli.CliTest):
    def test_processes_at_once_lose_no_choice(self):
        plans = self.folder / "shared.plans"
        (self.folder / ".tessera-shared.plans.lock").write_text("")  # of a process that was killed
        widths = range(1, 9)
        processes = [subprocess.Popen([cli.PROGRAM, "bench", "spmm", "--data", KARATE, "--features", str(width), "--quick",
                                       "--quiet", "--threads", "1", "--plans", plans]) for width in widths]
        self.assertEqual([process.wait(cli.SECONDS) for process in processes], [0] * len(widths))
        choices = [line.split("\t") for line in plans.read_text().splitlines() if line.startswith("choice\t")]
        for width in widths:
            self.assertTrue(any(f"features {width}," in choice[3] for choice in choices), f"{width} of {choices}")
        self.assertEqual(self.leftovers(), ["shared.plans"])

    def test_a_lock_that_stays_is_an_error_and_no_hang(self):
        plans = self.folder / "locked.plans"
        with open(self.folder / ".tessera-locked.plans.lock", "w") as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            run = self.fail_with(cli.IO, "predict", KARATE, "--checkpoint", self.trained(), "--plans", plans)
        self.assertIn("another process keeps it locked", run.err)

    def trained(self):
        model = self.folder / "model.tsr"
        self.succeed("train", KARATE, "--epochs", "1", "--split", "0.3,0.3,0.4", "--checkpoint", model)
        return model

    def test_what_runs_is_what_the_table_shows(self):
        plans = self.folder / "karate.plans"
        self.succeed("plan", KARATE, "--save", plans)
        text = plans.read_text()
        choice = next(line for line in text.splitlines() if line.startswith("choice"))
        kernel = choice.split("\t")[5]
        for changed, words in {choice.rsplit("\t", 1)[0] + "\t": "line 2: a choice with an empty kernel",
                               choice.replace(kernel, "spmm/cpu/*"): "is marked as chosen",
                               choice.replace(kernel, "spmm/cpu/none"): "is marked as chosen"}.items():
            with self.subTest(changed=changed):
                plans.write_text(text.replace(choice, changed))
                self.assertIn(words, self.fail_with(cli.BAD_DATA, "plan", KARATE, "--load", plans).err)
        plans.write_text("tessera plans\t1\n" + choice.replace(kernel, "spmm/cpu/*") + "\n")
        self.assertIn("unknown kernel", self.fail_with(cli.BAD_DATA, "plan", KARATE, "--load", plans).err)
        plans.write_text("tessera plans\t1\n" + choice + "\n")
        self.assertEqual(self.json("plan", KARATE, "--load", plans)["kernel"], kernel)


class LeftBehind(cli.CliTest):
    def test_a_limit_on_the_size_of_files_is_a_full_disk(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        run = self.fail_with(cli.IO, "convert", "embedded:citation", "-o", self.folder / "out.tsr", preexec_fn=limit)
        self.assertIn("File too large", run.err)
        self.assertEqual(self.leftovers(), [])

    def test_the_next_writer_cleans_up_what_nobody_holds(self):
        dead = self.folder / ".tessera-4194303-0.tmp"
        held = self.folder / ".tessera-4194302-7.tmp"
        others = [self.folder / name for name in [".tessera-x-0.tmp", "tessera-1-0.tmp",
                                                  ".tessera-1-0.tmp.bak", ".tessera-1.tmp"]]
        for path in [dead, held, *others]:
            path.write_text("half a file")
        with open(held) as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            self.succeed("convert", "embedded:karate", "-o", self.folder / "out.tsr")
            self.assertEqual(self.leftovers(held, *others), ["out.tsr"])
            self.assertTrue(held.exists())
        target = self.folder / "precious"
        target.write_text("precious")
        (self.folder / ".tessera-5-5.tmp").symlink_to("precious")
        self.succeed("info", "embedded:karate", "--json", self.folder / "report.json")
        self.assertEqual(target.read_text(), "precious")
        self.assertFalse(held.exists())


if __name__ == "__main__":
    unittest.main()
