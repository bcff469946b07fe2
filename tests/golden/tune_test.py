# SPDX-License-Identifier: Apache-2.0
"""Searching for settings from the command line."""
import pathlib
import shlex
import signal
import subprocess
import time
import unittest

import cli

KARATE = ["embedded:karate", "--split", "0.3,0.3,0.4", "--epochs", "18"]
SEARCH = ["--search", "lr=0.001..0.1,hidden=4|8,layers=1..3,optimiser=adam|adamw"]


class Tune(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "trials"

    def tune(self, *more, state=None):
        return self.json("tune", *KARATE, *SEARCH, "--state", state or self.state, *more)

    def test_the_better_third_goes_on(self):
        found = self.tune("--trials", "9")
        self.assertEqual(sorted(trial["trial"] for trial in found["trials"]), list(range(1, 10)))
        self.assertEqual([trial["epochs"] for trial in found["trials"]], [18, 6, 6] + [2] * 6)
        self.assertEqual(found["best"]["trial"], found["trials"][0]["trial"])
        first = next(trial for trial in found["trials"] if trial["trial"] == 1)
        self.assertEqual(first["settings"], {})
        for trial in found["trials"]:
            if trial["settings"]:
                # A model of one layer has no width between layers.
                self.assertIn(trial["settings"].get("hidden"), [None] if trial["settings"]["layers"] == "1" else ["4", "8"])
                self.assertIn(int(trial["settings"]["layers"]), [1, 2, 3])
                self.assertTrue(0.001 <= float(trial["settings"]["lr"]) <= 0.1)
        self.assertTrue((self.state / "trial-9.tsr").exists())

    def test_the_command_trains_the_best_model(self):
        best = self.folder / "best.tsr"
        found = self.tune("--trials", "4", "--runs", "2", "-c", best, "--seed", "3")["best"]
        words = shlex.split(found["command"])
        self.assertEqual(words[:2], ["tessera", "train"])
        trained = self.json(*words[1:], "-c", self.folder / "again.tsr")
        self.assertEqual(trained["validation"]["mean"], found["validation"])
        self.assertEqual(trained["test"]["mean"], found["test"])
        self.assertEqual(trained["test"]["std"], found["test_std"])
        self.assertEqual(best.read_bytes(), (self.folder / "again.tsr").read_bytes())

    def test_more_trials_begin_with_the_same_ones(self):
        self.tune("--trials", "3")
        resumed = self.tune("--trials", "7", "--resume")
        whole = self.tune("--trials", "7", state=self.folder / "others")
        self.assertEqual(resumed["trials"], whole["trials"])
        self.assertEqual(resumed["best"]["validation"], whole["best"]["validation"])

    def test_an_interrupted_search_goes_on(self):
        command = ["tune", *KARATE[:-1], "300", "--search", "lr=0.001..0.1", "--trials", "6"]
        process = subprocess.Popen([cli.PROGRAM, *command, "--state", self.state], stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL)
        while process.poll() is None and not (self.state / "trial-2.tsr").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1].decode()
        self.assertIn(process.returncode, (cli.OK, cli.INTERRUPTED), errors)
        if process.returncode == cli.INTERRUPTED:
            self.assertIn(f"{self.state} keeps the trials so far; --resume goes on from there", errors)
        resumed = self.json(*command, "--state", self.state, "--resume")
        whole = self.json(*command, "--state", self.folder / "whole")
        self.assertEqual(resumed["trials"], whole["trials"])

    def test_report_for_people(self):
        out = self.succeed("tune", *KARATE, *SEARCH, "--trials", "3", "--state", self.state).out
        for part in ["validation accuracy", "test accuracy", "train with", "as given", "hidden"]:
            self.assertIn(part, out)

    def test_every_model_has_something_to_search(self):
        for model in "gcn sage gin gat agnn sgc cheb".split():
            with self.subTest(model=model):
                self.json("tune", *KARATE, "--model", model, "--trials", "2", "--state", self.folder / model)

    def test_trials_may_diverge(self):
        found = self.json("tune", *KARATE, "--trials", "3", "--search", "lr=1e38|1e37", "--optimiser", "sgd",
                          "--state", self.state)
        self.assertEqual(found["best"]["trial"], 1)
        self.assertTrue(all(trial["diverged"] for trial in found["trials"][1:]), found["trials"])

    def searched(self, search, seed, trials):
        state = self.folder / f"{seed} {search}".replace("|", "-")
        return self.json("tune", *KARATE, "--trials", trials, "--seed", seed, "--search", search, "--state", state)

    def test_an_option_that_no_drawn_trial_can_use_is_noted(self):
        found = self.searched("model=gcn|gat|sage,heads=2|4,aggregation=mean|max", 3, 5)
        self.assertNotIn("sage", [trial["settings"].get("model") for trial in found["trials"]])
        self.assertIn("no trial has aggregation of --search, which does not go with", " ".join(found["notes"]))
        self.searched("model=gcn|gat|sage,heads=2|4,aggregation=mean|max", 4, 5)
        for seed in (3, 6):
            self.searched("layers=1..3,batch-norm=yes|no,residual=yes|no", seed, 4)

    def test_trials_have_no_settings_that_contradict_each_other(self):
        for trial in self.searched("schedule=constant|steps,decay-every=1..3", 2, 4)["trials"]:
            settings = trial["settings"]
            self.assertEqual("decay-every" in settings, settings.get("schedule") == "steps")
        models = set()
        for seed in (2, 3, 4):
            search = "model=gcn|agnn|sgc,layers=1..3,hidden=16|32,hops=1|2,batch-norm=yes|no"
            for trial in self.searched(search, seed, 5)["trials"]:
                settings = trial["settings"]
                models.add(settings.get("model"))
                if settings.get("model") == "sgc":
                    self.assertIn(settings.get("layers"), (None, "1"))
                if settings.get("model") != "gcn":
                    self.assertNotIn("batch-norm", settings)
        self.assertIn("sgc", models)

    def test_the_command_has_flags_with_their_values(self):
        found = self.searched("lr=0.1|0.2,batch-norm=yes,activation=elu|relu", 1, 4)["best"]
        if found["trial"] > 1:
            self.assertIn("--batch-norm=yes", found["command"])
        trained = self.json(*shlex.split(found["command"])[1:])
        self.assertEqual(trained["validation"]["mean"], found["validation"])

    def test_a_resumed_search_replaces_its_best_model_alone(self):
        best = self.folder / "best.tsr"
        self.tune("--trials", "2", "-c", best)
        self.tune("--trials", "3", "--resume", "-c", best)
        self.tune("--trials", "7", "--resume", "-c", best)
        other = self.folder / "other.tsr"
        self.json("train", *KARATE, "--hidden", "5", "-c", other)
        for path in (other, self.folder / "text"):
            if path != other:
                path.write_text("a text")
            before = path.read_bytes()
            run = self.fail_with(cli.USAGE, "tune", *KARATE, *SEARCH, "--trials", "7", "--resume", "--state",
                                 self.state, "-c", path)
            self.assertIn("already exists; give --force", run.err)
            self.assertEqual(path.read_bytes(), before)

    def test_mistakes(self):
        fail = lambda *more: self.fail_with(cli.USAGE, "tune", *KARATE, *more).err
        state = ["--state", self.state]
        self.assertIn("--state: there is no folder for the trials", fail())
        for search, words in {
            "lr": "'lr' says not what to try",
            "lr=1..0": "'lr=1..0' is no range",
            "lr=a..b": "'lr=a..b' is no range",
            "lr=0.1|": "has an empty choice",
            "lr=1,lr=2": "'lr' is named twice",
            "hiden=4": "did you mean 'hidden'?",
            "epochs=4": "'epochs' is no setting that can be searched; leave it out and give --epochs",
            "seed=1|2": "'seed' is no setting that can be searched",
            "heads=4|8": "does nothing for gcn",
            "model=gcn|sage,heads=4|8": "--search: heads does nothing for",
            "model=sgc,layers=1..3": "--search: layers=3: sgc with 3 layers; ",
            "optimiser=adam|newton": "--search: optimiser=newton: unknown value 'newton'; use adam",
            "dropout=2|3": "--search: dropout=2: dropout is 2; ",
            "lr=-1..1": "--search: lr is -1; ",
            "warm-up=0..20": "--search: warm-up=20: warm_up is 20, but there are 18 epochs; ",
            "model=gcn|gat,heads=0|4": "--search: heads=0: heads is 0; ",
        }.items():
            with self.subTest(search=search):
                self.assertIn(words, fail("--search", search, *state))
        self.assertIn("'lr' is given and searched for", fail("--lr", "0.1", "--search", "lr=1..2", *state))
        self.assertIn("1 trials", fail("--trials", "1", *state))
        self.assertFalse(self.state.exists())
        self.tune("--trials", "2")
        self.assertIn("the folder is not empty; go on with its trials with --resume", fail(*state))
        changed = fail(*SEARCH, "--trials", "2", "--dropout", "0.1", "--resume", *state)
        self.assertIn("trial-1.tsr: the checkpoint was made with ", changed)
        self.assertTrue(changed.endswith("; resume with the same data, options and seed, or name another folder "
                                         "with --state\n"), changed)
        self.assertEqual(changed.count(";"), 1)
        self.assertTrue(pathlib.Path(self.state).exists())


if __name__ == "__main__":
    unittest.main()
