# SPDX-License-Identifier: Apache-2.0
"""Prints the folder of the torch that is installed for this Python.

pip builds in an environment of its own, which does not see the packages that are installed, but runs
the same interpreter: asked without that environment, it says where it would import torch from, and so
torch is neither imported nor downloaded a second time.
"""

import os
import site
import subprocess
import sys
import sysconfig

WHERE = "import importlib.util; print(*importlib.util.find_spec('torch').submodule_search_locations, sep='\\n')"


def imported_from():
    """As seen from anywhere but a build: folders that .pth files add are among those looked through."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONNOUSERSITE")}
    answer = subprocess.run([sys.executable, "-c", WHERE], capture_output=True, text=True, env=environment,
                            cwd=os.path.abspath(os.sep))
    return answer.stdout.splitlines()


def candidates():
    if "TESSERA_TORCH" in os.environ:
        yield os.environ["TESSERA_TORCH"]
    for folder in sys.path:  # a build without an environment of its own
        yield os.path.join(folder, "torch")
    yield from imported_from()
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    for folder in folders + site.getsitepackages() + [site.getusersitepackages()]:
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
