# SPDX-License-Identifier: Apache-2.0
"""Says whether operators for CUDA are built, for which GPUs, and why: what the installed torch can use, and no more.

    python choose_cuda.py FOLDER_OF_TORCH PATH_OF_NVCC

prints three lines: ON or OFF, the architectures as CMake has them (none: those of a release), and the reason. The environment
may decide otherwise: TESSERA_TORCH_CUDA (ON, OFF or AUTO), TESSERA_TORCH_CUDA_ARCHITECTURES (such as 90a-real;100-real, or all).
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

NEEDED = 13  # the major version of CUDA, of torch's as of nvcc's


class Choice(NamedTuple):
    build: bool
    architectures: str
    reason: str


def choose(torch_version: str, torch_cuda: str | None, nvcc: str | None, gpus: list[str], wanted: str = "AUTO",
           architectures: str = "") -> Choice:
    """``torch_cuda`` and ``nvcc`` are versions of CUDA, None where there is none; ``gpus`` are compute capabilities."""
    def without(reason: str) -> Choice:
        return Choice(False, "", f"operators for the CPU alone: {reason}")

    if wanted.upper() not in ("ON", "OFF", "AUTO"):
        raise ValueError(f"TESSERA_TORCH_CUDA is {wanted!r}: use ON, OFF or AUTO")
    if wanted.upper() == "OFF":
        return without("TESSERA_TORCH_CUDA is OFF")
    if wanted.upper() == "AUTO":
        if torch_cuda is None:
            return without(f"the installed torch {torch_version} is built without CUDA")
        if _major(torch_cuda) != NEEDED:
            return without(f"the installed torch {torch_version} is built for CUDA {torch_cuda}, and they need CUDA {NEEDED}")
        if nvcc is None:
            return without(f"no nvcc was found for the CUDA {torch_cuda} of the installed torch; CUDA_HOME names its folder")
        if _major(nvcc) < NEEDED:
            return without(f"nvcc is of CUDA {nvcc}, and they need CUDA {NEEDED}")
    for_gpus, which = _architectures(gpus, architectures)
    reason = "TESSERA_TORCH_CUDA is ON" if wanted.upper() == "ON" else f"the installed torch {torch_version} has CUDA {torch_cuda}"
    return Choice(True, for_gpus, f"operators for the CPU and CUDA, for {which}: {reason}")


def _architectures(gpus: list[str], wanted: str) -> tuple[str, str]:
    if wanted and wanted != "all":
        return wanted, f"the architectures {wanted}"
    if wanted == "all":
        return "", "all GPUs that a release serves (TESSERA_TORCH_CUDA_ARCHITECTURES is all)"
    found = sorted({_architecture(gpu) for gpu in gpus})
    if not found:
        return "", "all GPUs that a release serves, since none is visible here (TESSERA_TORCH_CUDA_ARCHITECTURES names fewer)"
    return ";".join(found), f"the GPUs that are visible here ({', '.join(found)}; TESSERA_TORCH_CUDA_ARCHITECTURES=all builds for all)"


def _architecture(capability: str) -> str:
    digits = capability.replace(".", "")
    return "90a-real" if digits == "90" else f"{digits}-real"


def _major(version: str) -> int:
    return int(version.split(".")[0])


def output_of(*command: str) -> str:
    """What a program prints; nothing where it cannot be run or fails."""
    try:
        answer = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return ""
    return answer.stdout if answer.returncode == 0 else ""


def main() -> None:
    folder, nvcc = sys.argv[1:]
    version = runpy.run_path(str(Path(folder, "version.py")))  # names alone: torch is not imported
    release = re.search(r"release (\d+\.\d+)", output_of(nvcc, "--version"))
    smi = output_of("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    try:
        choice = choose(version["__version__"], version.get("cuda"), release[1] if release else None,
                        re.findall(r"^\d+\.\d+$", smi, re.MULTILINE), os.environ.get("TESSERA_TORCH_CUDA") or "AUTO",
                        os.environ.get("TESSERA_TORCH_CUDA_ARCHITECTURES", ""))
    except ValueError as error:
        sys.exit(str(error))
    print("ON" if choice.build else "OFF", choice.architectures, choice.reason, sep="\n")


if __name__ == "__main__":
    main()
