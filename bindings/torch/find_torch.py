# SPDX-License-Identifier: Apache-2.0
"""Prints the folder of the torch that is installed for this Python.

pip builds in an environment of its own, which does not see the packages that are installed, but runs
the same interpreter: the folders of installed packages are found by their paths. So torch is neither
imported nor downloaded a second time.
"""

import os
import site
import sys
import sysconfig


def candidates():
    if "TESSERA_TORCH" in os.environ:
        yield os.environ["TESSERA_TORCH"]
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    folders += site.getsitepackages() + [site.getusersitepackages()] + sys.path
    for folder in folders:
        yield os.path.join(folder, "torch")


def main():
    for folder in candidates():
        if os.path.isdir(os.path.join(folder, "include", "torch", "headeronly")):
            print(os.path.realpath(folder))
            return
    sys.exit(
        "no torch 2.10 or newer is installed for " + sys.executable + "\n"
        "Install it first (pip install torch), or name its folder: TESSERA_TORCH=.../site-packages/torch"
    )


main()
