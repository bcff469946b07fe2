# SPDX-License-Identifier: Apache-2.0
"""Pages of documentation as tests see them: blocks of code, what readers are not shown of them, commands and links.

A block begins with three backticks and its language. Comments right above it say what a reader need not see:

    <!-- given: TEXT -->      lines that come before the block: commands, statements or declarations
    <!-- file: NAME -->       the block is the content of this file in the page's folder
    <!-- from: FILE -->       the block is a part of this file, which is compiled and run as it is
    <!-- stand-in: TEXT -->   commands that run in place of the block, which would take too long or change the machine
    <!-- run by: FILE -->     a script of the tests that runs these commands
    <!-- torch -->            commands that need Python with torch: tests/python/test_documentation.py runs them
    <!-- gpu -->              runs where there is a GPU; elsewhere its options are checked
    <!-- added to: FILE before TEXT -->   lines that tests/scripts/adding_test.py adds to a file

Pages of docs/results are written by tools/report.py: their blocks are the commands that measure them again.
"""
import dataclasses
import os
import pathlib
import re
import subprocess

SOURCE = pathlib.Path(os.environ.get("TESSERA_SOURCE", pathlib.Path(__file__).parents[2]))
LANGUAGES = {"sh", "python", "cpp", "cmake", "csv", "text"}
MARKS = {"record", "given", "file", "from", "stand-in", "run by", "torch", "gpu", "added to"}
LONGEST_LINE = 110
# What stands in the folder that the commands of a page run in, as it does in the folder of a reader.
LINKS = ("Makefile", "bench", "bindings", "docs", "examples", "tests", "tools")

BLOCK = re.compile(r"(?ms)((?:^<!-- (?:(?!-->).)*-->\n)*)^```([^\n]*)\n(.*?)^```$")
MARK = re.compile(r"(?s)<!-- ([a-z-]+(?: by| to)?)(?::\s(.*?))?\s-->")


@dataclasses.dataclass
class Block:
    page: pathlib.Path
    line: int  # of its first line of code
    language: str
    text: str
    marks: dict

    @property
    def place(self):
        return f"{self.page.relative_to(SOURCE)}:{self.line}"

    @property
    def given(self):
        return self.marks.get("given", "")

    @property
    def is_statements(self):
        """C++ as it stands in a function, not a file of its own or a part of one."""
        return self.language == "cpp" and not self.marks.keys() & {"file", "from", "added to"}

    @property
    def is_run(self):
        """Commands that run as they stand."""
        return self.language == "sh" and not self.marks.keys() & {"record", "stand-in", "run by", "gpu", "torch"}


def pages():
    """Every page of the repository."""
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=SOURCE, capture_output=True, text=True, check=False)
    found = [SOURCE / name for name in listed.stdout.split()]
    # Outside a checkout of git: all pages there are.
    return sorted(page for page in found or [*SOURCE.glob("*.md"), *SOURCE.glob("docs/**/*.md")] if page.exists())


def blocks(page):
    text = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        marks = {kind: content.strip() for kind, content in MARK.findall(match.group(1))}
        language = match.group(2)
        if page.parent.name == "results":
            marks, language = {"record": ""}, language or "sh"
        line = text.count("\n", 0, match.start(3)) + 1
        found.append(Block(page, line, language, match.group(3), marks))
    return found


def prose(page):
    """A page without its blocks of code and its comments."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"(?s)<!--.*?-->", "", re.sub(r"(?ms)^```.*?^```$", "", text))


def command_lines(text):
    """Lines of a shell, continued ones joined, without remarks and without what a here-document holds."""
    text = re.sub(r"(?ms)<<'(\w+)'([^\n]*)\n.*?^\1$", r"\2", text.replace("\\\n", " "))
    lines = (re.split(r"(?:^|\s)#", line)[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def tessera_commands(text):
    """(verb, rest) of every call of the program among these lines."""
    for line in text.splitlines():
        for part in re.split(r"\s[|;]\s|&&|\$\(", line):
            match = re.match(r"\s*(?:[A-Z_]+=\S+ )*(?:build/(?:cuda/)?bin/)?tessera (?!plans)([a-z]+)\b(.*)", part)
            if match:
                yield match.group(1), re.split(r" [>] ?", match.group(2))[0]


def links(page):
    """Targets of the links of a page within the repository: (text, path or nothing, anchor or nothing)."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        path, _, anchor = target.partition("#")
        if "://" not in path:
            yield target, path, anchor


def anchors(page):
    titles = re.findall(r"(?m)^#+ (.*)$", prose(page))
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in titles)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in plain}


class Failure(Exception):
    """What did not work: where, and what was said."""


class Folder:
    """The folder that the blocks of a page run in, one after the other, with the program in the path."""

    def __init__(self, path, program, build=None):
        self.path = path
        for name in LINKS:
            (path / name).symlink_to(SOURCE / name)
        if build:
            (path / "build").symlink_to(build)
        # The same on every machine: no data, plans or calibration of its own.
        plain = {name: value for name, value in os.environ.items()
                 if not name.startswith(("TESSERA_", "XDG_")) or name == "TESSERA_LIBRARY_FOLDER"}
        self.environment = dict(plain, HOME=str(path), TESSERA_PROGRESS_SECONDS="86400", TESSERA_COMMIT="pages",
                                PYTHONDONTWRITEBYTECODE="1", ASAN_OPTIONS="detect_leaks=0",
                                PATH=f"{pathlib.Path(program).parent}{os.pathsep}{os.environ['PATH']}")

    def shell(self, block, text, codes=(0,)):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=self.path, env=self.environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=600)
        if done.returncode not in codes:
            raise Failure(f"{block.place}: exit {done.returncode} of\n{text}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
        return done.stdout

    def run(self, block, has_gpu=False, has_torch=False):
        """A block of commands, or of a file."""
        if "file" in block.marks:
            file = self.path / block.marks["file"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        if block.language != "sh":
            return
        if block.given:
            self.shell(block, block.given)
        if "stand-in" in block.marks:
            self.shell(block, block.marks["stand-in"])
        elif block.is_run or ("gpu" in block.marks and has_gpu) or ("torch" in block.marks and has_torch):
            self.shell(block, block.text)
        elif "gpu" in block.marks:
            # The program looks at its options first, and says that there is no GPU then.
            for line in command_lines(block.text):
                if line.startswith("tessera "):
                    self.shell(block, line, codes=(6,))
