# SPDX-License-Identifier: Apache-2.0
"""Files that stay as they were until the next version is there as a whole, whenever a run is stopped."""
import json
import os
import pathlib
import sys


def write(path, text):
    beside = pathlib.Path(f"{path}.part")
    beside.write_text(text)
    os.replace(beside, path)


def load(path):
    """The JSON of this file; None where there is no such file."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        sys.exit(f"{path} is damaged ({error}): restore it, or remove it to measure everything anew")
