# SPDX-License-Identifier: Apache-2.0
"""Progress and colours on a terminal, a line per minute elsewhere, and Ctrl-C."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

import cli

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
SHORT_WORK = "generate:erdos_renyi?vertices=1e5&edges=3e6"
LONG_WORK = "erdos_renyi?vertices=1e6&edges=6e7"


class OnTerminal:
    """The program with a pseudo-terminal as its stderr; a test is skipped where the machine has none."""

    def __init__(self, *arguments, **environment):
        try:
            self.master, slave = pty.openpty()
        except OSError as problem:  # a container without /dev/pts
            raise unittest.SkipTest(f"no pseudo-terminals: {problem}")
        self.process = subprocess.Popen([cli.PROGRAM, *map(str, arguments)], stderr=slave,
                                        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                        env={**ENVIRONMENT, "TERM": "xterm", **environment})
        os.close(slave)

    def read_some(self):
        """What is there within a minute; empty at the end."""
        if not select.select([self.master], [], [], 60)[0]:
            return b""
        try:
            return os.read(self.master, 65536)
        except OSError:  # the other end was closed
            return b""

    def finish(self):
        shown = b""
        while piece := self.read_some():
            shown += piece
        out = self.process.stdout.read()
        self.process.stdout.close()
        os.close(self.master)
        return self.process.wait(60), out.decode(), shown.decode()


class Progress(cli.CliTest):
    def test_one_line_redrawn_and_taken_away(self):
        code, out, shown = OnTerminal("info", SHORT_WORK).finish()
        self.assertEqual(code, cli.OK)
        self.assertIn("100,000 vertices", out)
        self.assertRegex(shown, r"\r\x1b\[K\w+.* s")
        self.assertTrue(shown.endswith("\r\x1b[K"), repr(shown[-80:]))
        self.assertNotIn("\n", shown)

    def test_redrawn_at_most_ten_times_a_second(self):
        started = time.monotonic()
        code, _, shown = OnTerminal("info", SHORT_WORK).finish()
        self.assertEqual(code, cli.OK)
        most = 10 * (time.monotonic() - started) + 5
        self.assertLess(shown.count("\x1b[K"), most)

    def test_nothing_when_quiet_or_dumb(self):
        self.assertEqual(OnTerminal("info", "embedded:karate", "--quiet").finish()[2], "")
        self.assertEqual(OnTerminal("info", "embedded:karate", TERM="dumb").finish()[2], "")

    def test_errors_start_at_the_left_edge(self):
        code, _, shown = OnTerminal("info", "/no/such/file.npz", NO_COLOR="1").finish()
        self.assertEqual(code, cli.IO)
        last = shown.replace("\r\n", "\n").split("\x1b[K")[-1]
        self.assertTrue(last.startswith("tessera info: error: "), repr(shown))


    def test_a_narrow_terminal_shows_the_time_that_is_left(self):
        run = OnTerminal("train", "embedded:karate", "--split", "0.3,0.3,0.4", "--epochs", "100000", "--runs", "10")
        fcntl.ioctl(run.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
        shown = b""
        while b" left" not in shown and (piece := run.read_some()):
            shown += piece
        run.process.send_signal(signal.SIGINT)
        code, _, rest = run.finish()
        self.assertEqual(code, cli.INTERRUPTED)
        self.assertIn("nothing is kept; with --checkpoint FILE", rest)
        last = re.sub(r"\x1b\[[\d;]*[mK]", "", shown.decode().split("\r")[-1])
        self.assertRegex(last, r"^run [0-9]+/10 .*\[#*\.*\] .* %  \d.* s, about .* left$")
        self.assertLess(len(last), 60)


class PipedProgress(cli.CliTest):
    """Lines instead of a line that is redrawn; TESSERA_PROGRESS_SECONDS stands for the minute."""

    def run_with(self, seconds, *arguments):
        return cli.Run(["info", SHORT_WORK, *arguments],
                       env={**os.environ, "TESSERA_PROGRESS_SECONDS": seconds})

    def test_lines(self):
        run = self.run_with("0.000001")
        self.assertEqual(run.code, cli.OK, str(run))
        self.assertGreater(len(run.err.splitlines()), 2)
        for line in run.err.splitlines():
            self.assertRegex(line, r"^tessera: \w[\w ]*(, \d+ %)?, \d+ s so far(, about \d+ s left)?$")

    def test_nothing_within_the_first_minute_or_when_quiet(self):
        for run in [self.run_with("60"), self.run_with("nonsense"), self.run_with("0.000001", "--quiet")]:
            self.assertEqual((run.code, run.err), (cli.OK, ""))


class Colours(cli.CliTest):
    def test_reports(self):
        # The memory that is available changes between two runs.
        blank = lambda text: re.sub(r"[\d.]+ [KMGT]iB available", "", text)
        plain = self.succeed("doctor").out
        self.assertNotIn("\x1b", plain)
        self.assertEqual(blank(self.succeed("doctor", "--color", "never").out), blank(plain))
        coloured = self.succeed("doctor", "--color", "always").out
        self.assertIn("\x1b[32mok\x1b[0m", coloured)
        uncoloured = re.sub(r"\x1b\[[\d;]*m", "", coloured)
        self.assertEqual(blank(uncoloured), blank(plain))
        self.assertNotIn("\x1b", self.succeed("doctor", "--color", "always", "--json", "-").out)

    def test_errors(self):
        always = cli.Run(["info", "/no/such/file", "--color", "always"])
        self.assertIn("\x1b[1;31merror: \x1b[0m", always.err)
        self.assertNotIn("\x1b", cli.Run(["info", "/no/such/file"]).err)

    def test_on_a_terminal_unless_refused(self):
        def shown(*arguments, **environment):
            return OnTerminal("info", "/no/such/file", *arguments, **environment).finish()[2].split("\x1b[K")[-1]
        self.assertIn("\x1b[", shown())
        self.assertNotIn("\x1b[", shown(NO_COLOR="1"))
        self.assertNotIn("\x1b[", shown("--color", "never"))
        self.assertNotIn("\x1b[", shown(TERM="dumb"))
        self.assertIn("\x1b[", shown("--color", "always", NO_COLOR="1"))


class Interrupt(cli.CliTest):
    def stop(self, sent):
        run = OnTerminal("generate", LONG_WORK, "-o", self.folder / "out.tsr", "--threads", "1")
        self.assertNotEqual(run.read_some(), b"", "progress tells that the work has begun")
        run.process.send_signal(sent)
        code, out, shown = run.finish()
        self.assertEqual(code, cli.INTERRUPTED, shown)
        self.assertEqual(out, "")
        self.assertEqual(self.leftovers(), [])
        self.assertIn("interrupted; nothing was written", re.sub(r"\x1b\[[\d;]*m", "", shown))

    def test_ctrl_c_leaves_no_file(self):
        self.stop(signal.SIGINT)

    def test_a_training_says_how_to_go_on(self):
        path = self.folder / "run.tsr"
        run = OnTerminal("train", "embedded:karate", "--split", "0.3,0.3,0.4", "--epochs", "1000000",
                         "--checkpoint", path, "--checkpoint-every", "1")
        while not path.exists():
            self.assertNotEqual(run.read_some(), b"")
        run.process.send_signal(signal.SIGINT)
        code, _, shown = run.finish()
        self.assertEqual(code, cli.INTERRUPTED)
        self.assertIn("run.tsr keeps the training so far; --resume goes on", shown)

    @unittest.skipUnless("METIS yes" in cli.Run(["doctor"]).out, "built without METIS")
    def test_metis_ends_within_a_second_or_so(self):
        run = OnTerminal("partition", "generate:rmat?scale=16&edges=2000000", "--parts", "500",
                         "--method", "metis")
        while b"METIS" not in run.read_some():
            self.assertIsNone(run.process.poll())
        run.process.send_signal(signal.SIGINT)
        began = time.monotonic()
        code, _, shown = run.finish()
        self.assertEqual(code, cli.INTERRUPTED)
        self.assertLess(time.monotonic() - began, 20)
        self.assertIn("interrupted; nothing was written", re.sub(r"\x1b\[[\d;]*m", "", shown))

    def test_terminate_leaves_no_file(self):
        self.stop(signal.SIGTERM)

    def interrupted_bench(self, data, features):
        """Stopped in the first measurement on the second graph."""
        report = self.folder / "bench.json"
        command = [cli.PROGRAM, "bench", "spmm", "--data", "embedded:karate", "--data", data, "--features", features,
                   "--threads", "1", "--json", report]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TESSERA_PROGRESS_SECONDS": "0.000001"}) as process:
            next(line for line in process.stderr if "spmm on sbm" in line)
            process.send_signal(signal.SIGINT)
            process.stderr.read()
        return process.returncode, json.loads(report.read_text())

    def test_bench_finishes_a_slow_measurement_and_keeps_all(self):
        code, report = self.interrupted_bench("generate:sbm?vertices=20000&mean_degree=50", "512,64,32,16")
        self.assertEqual((code, report["interrupted"]), (cli.INTERRUPTED, True))
        self.assertEqual([record["graph"] for record in report["records"]][:4], ["karate"] * 4)

    def test_ctrl_c_ends_the_search_for_an_order_and_keeps_the_best(self):
        ordered, report = self.folder / "ordered.tsr", self.folder / "report.json"
        command = [cli.PROGRAM, "reorder", "generate:sbm?vertices=5000&mean_degree=50", "--method", "nm", "--pattern", "32:2:8",
                   "--effort", "1000", "--threads", "1", "-o", ordered, "--json", report]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "TESSERA_PROGRESS_SECONDS": "0.000001"}) as process:
            next(line for line in process.stderr if "fitting" in line)
            process.send_signal(signal.SIGINT)
            process.stderr.read()
        found = json.loads(report.read_text())["nm"]
        self.assertEqual((process.returncode, found["stopped"]), (cli.OK, True))
        self.assertEqual(self.json("info", ordered)["edges"], 250000)

    def test_a_bench_without_anything_left_to_measure_is_complete(self):
        code, report = self.interrupted_bench("generate:sbm?vertices=1000", "8")
        self.assertEqual((code, len(report["records"]), "interrupted" in report), (cli.OK, 2, False))

    def test_ignored_signals_stay_ignored(self):
        script = "trap '' INT; \"$0\" info $1 --quiet & kill -INT $!; wait $!"
        run = subprocess.run(["sh", "-c", script, cli.PROGRAM, SHORT_WORK], stderr=subprocess.PIPE)
        self.assertEqual((run.returncode, run.stderr), (cli.OK, b""))


if __name__ == "__main__":
    cli.main()
