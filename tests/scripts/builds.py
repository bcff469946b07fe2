# SPDX-License-Identifier: Apache-2.0
"""How the build compiles and links, for tests that add something to it."""
import json
import os
import pathlib
import shlex
import subprocess

SOURCE = pathlib.Path(os.environ["TESSERA_SOURCE"])
BUILD = pathlib.Path(os.environ["TESSERA_BUILD"])


def compile_command(like):
    """How the build compiles a file, or the first one of a folder, without what it is and where it goes. Headers that
    the build has compiled stay so."""
    commands = json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8"))
    there = SOURCE / like
    found = next(entry for entry in commands if there in (pathlib.Path(entry["file"]), pathlib.Path(entry["file"]).parent))
    plain = []
    skip = False
    for word in shlex.split(found["command"]):
        if skip:
            skip = False
        elif word in ("-o", "-c"):
            skip = True
        else:
            plain.append(word)
    return plain


def link_command(target):
    """How the build links a program; runs in the folder of the build."""
    listed = subprocess.run(["ninja", "-C", BUILD, "-t", "commands", target], capture_output=True, text=True, check=True)
    words = shlex.split(listed.stdout.splitlines()[-1])  # ": && COMMAND && :"
    begin = words.index("&&") + 1
    return words[begin:words.index("&&", begin)]
