# SPDX-License-Identifier: Apache-2.0
"""Progress on a terminal, silence elsewhere, and Ctrl-C."""
import os
import pty
import select
import signal
import subprocess
import time
import unittest

import cli

SHORT_WORK = "generate:erdos_renyi?vertices=1e5&edges=3e6"
LONG_WORK = "erdos_renyi?vertices=1e6&edges=6e7"


class OnTerminal:
    """The program with a pseudo-terminal as its stderr."""

    def __init__(self, *arguments, **environment):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen([cli.PROGRAM, *map(str, arguments)], stderr=slave,
                                        stdout=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                        env={**os.environ, "TERM": "xterm", **environment})
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
        code, _, shown = OnTerminal("info", "/no/such/file.npz").finish()
        self.assertEqual(code, cli.IO)
        last = shown.replace("\r\n", "\n").split("\x1b[K")[-1]
        self.assertTrue(last.startswith("tessera info: error: "), repr(shown))


class Interrupt(cli.CliTest):
    def stop(self, sent):
        run = OnTerminal("generate", LONG_WORK, "-o", self.folder / "out.tsr", "--threads", "1")
        self.assertNotEqual(run.read_some(), b"", "progress tells that the work has begun")
        run.process.send_signal(sent)
        code, out, shown = run.finish()
        self.assertEqual(code, cli.INTERRUPTED, shown)
        self.assertEqual(out, "")
        self.assertEqual(self.leftovers(), [])

    def test_ctrl_c_leaves_no_file(self):
        self.stop(signal.SIGINT)

    def test_terminate_leaves_no_file(self):
        self.stop(signal.SIGTERM)

    def test_ignored_signals_stay_ignored(self):
        script = "trap '' INT; \"$0\" info $1 --quiet & kill -INT $!; wait $!"
        run = subprocess.run(["sh", "-c", script, cli.PROGRAM, SHORT_WORK], stderr=subprocess.PIPE)
        self.assertEqual((run.returncode, run.stderr), (cli.OK, b""))


if __name__ == "__main__":
    unittest.main()
