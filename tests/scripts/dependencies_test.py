# SPDX-License-Identifier: Apache-2.0
"""tools/install_dependencies.sh names packages that the release at hand has."""
import os
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tools" / "install_dependencies.sh"

EVERYWHERE = {"g++", "cmake", "ninja-build", "pkgconf", "python3", "python3-pip", "zlib1g-dev", "libfmt-dev",
              "libopenblas0-openmp", "libopenblas0-pthread", "libcli11-dev", "nlohmann-json3-dev", "libgtest-dev",
              "libgmock-dev", "googletest", "libmetis-dev", "ccache"}
RELEASES = {
    "debian 12": EVERYWHERE | {"pkg-config", "clang-format-14"},
    "debian 13": EVERYWHERE | {"clang-format-19"},
    "ubuntu 22.04": EVERYWHERE | {"pkg-config", "clang-format-14"},
    "ubuntu 24.04": EVERYWHERE | {"clang-format-14"},
}


class Dependencies(unittest.TestCase):
    def missing(self, known, installed, *options):
        """What the script would install where these packages are known and these installed."""
        with tempfile.TemporaryDirectory() as folder:
            def fake(name, body):
                path = pathlib.Path(folder) / name
                path.write_text("#!/bin/sh\nfor package; do :; done\n" + body)
                path.chmod(0o755)
            among = "case ' {} ' in *\" $package \"*) {} ;; *) exit 1 ;; esac\n"
            fake("dpkg-query", among.format(" ".join(sorted(installed)), "echo install ok installed"))
            fake("apt-cache", among.format(" ".join(sorted(known)), "exit 0"))
            environment = dict(os.environ, PATH=folder + os.pathsep + os.environ["PATH"])
            done = subprocess.run(["sh", SCRIPT, "--list", *options], env=environment, text=True,
                                  capture_output=True, check=True)
            return done.stdout.split()

    def test_every_release_has_what_is_asked_for(self):
        for release, known in RELEASES.items():
            for options in ([], ["--dev"]):
                with self.subTest(release=release, options=options):
                    asked = self.missing(known, set(), *options)
                    self.assertLessEqual(set(asked), known)
                    self.assertEqual(len(asked), len(set(asked)))
                    self.assertIn("libopenblas0-openmp", asked)

    def test_nothing_is_asked_for_twice(self):
        known = RELEASES["debian 12"]
        self.assertEqual(self.missing(known, known, "--dev"), [])
        self.assertEqual(self.missing(known, known - {"ccache"}), ["ccache"])
        self.assertEqual(self.missing(known, known - {"pkg-config"}), [], "another name of it is there")

    def test_a_name_that_nobody_knows_is_left_to_apt(self):
        self.assertIn("libfmt-dev", self.missing(set(), set()))

    def test_unknown_options_are_refused(self):
        done = subprocess.run(["sh", SCRIPT, "--lst"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--list", done.stderr)


if __name__ == "__main__":
    unittest.main()
