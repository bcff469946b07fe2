# SPDX-License-Identifier: Apache-2.0
"""What all reports share: running the program, records, tables and pictures."""
import datetime
import functools
import gzip
import html
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASELINES = ROOT / "bench" / "baselines"
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#6b4c9a", "#8c6d1f"]


class Missing(Exception):
    """Something that a report needs is not there; the text is one line."""


def first_line(report):
    return report.__doc__.strip().splitlines()[0]


# Options that every report that measures has.

def add_options(parser, parts):
    parser.add_argument("--program", default=default_program(), metavar="FILE", help="default: %(default)s")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="default: cpu")
    parser.add_argument("--data", type=pathlib.Path, default=os.environ.get("TESSERA_DATA"), metavar="FOLDER",
                        help="real graphs as NAME/NAME.npz (default: $TESSERA_DATA)")
    parser.add_argument("--parts", metavar="LIST", help="of " + ", ".join(parts) + " (default: all)")
    parser.add_argument("--quick", action="store_true", help="few and small cases: shows that it works")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="N", help="begin nothing after so many")
    parser.add_argument("--pyg", metavar="PYTHON", help="a Python that has torch and PyG, to measure beside them")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT"), metavar="ID",
                        help="what is measured (default: $TESSERA_COMMIT, or what git says)")


def default_program():
    built = [ROOT / "build" / "bin" / "tessera", ROOT / "build" / "cuda" / "bin" / "tessera"]
    found = next((str(path) for path in built if path.exists()), None)
    return found or shutil.which("tessera") or str(built[0])


def commit_here():
    found = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    if found.returncode != 0:
        raise Missing("no commit is known: --commit ID, or TESSERA_COMMIT, says what is measured")
    return found.stdout.strip()


def chosen_parts(parts, options):
    """In the order of the report."""
    chosen = options.parts.split(",") if options.parts else list(parts)
    unknown = [part for part in chosen if part not in parts]
    if unknown:
        raise Missing(f"there is no part '{unknown[0]}'; there are {', '.join(parts)}")
    return [part for part in parts if part in chosen]


# Files. A report never fails when it comes to write: its folder is made and tried first.

def make_folder(folder):
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".report_{os.getpid()}"
        probe.write_text("")
        probe.unlink()
    except OSError as problem:
        raise Missing(f"cannot write to {folder}: {problem.strerror}; --output names another folder") from None


def write(path, content):
    """The old file stays until the new one is there as a whole."""
    beside = pathlib.Path(f"{path}.part")
    beside.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.replace(beside, path)


def load(path):
    """A record; where it is compressed, its name may be given without .gz."""
    path = path if path.exists() else pathlib.Path(f"{path}.gz")
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return json.loads(content)
    except FileNotFoundError:
        raise Missing(f"there is no record {str(path).removesuffix('.gz')}") from None
    except (OSError, ValueError) as problem:
        raise Missing(f"{path} is no record: {problem}") from None


def text_of(record):
    """JSON with a line for each entry of its lists, so that changes can be read."""
    def lines(value, depth):
        inner = "\n" + " " * (depth + 1)
        if isinstance(value, dict) and value and depth < 3:
            return "{" + ",".join(f"{inner}{json.dumps(key)}: {lines(one, depth + 1)}" for key, one in value.items()) + "}"
        if isinstance(value, list) and value and isinstance(value[0], (dict, list)):
            return "[" + ",".join(inner + json.dumps(one, ensure_ascii=False) for one in value) + "]"
        return json.dumps(value, ensure_ascii=False)

    return lines(record, 0) + "\n"


def write_record(path, record):
    """Compressed where it was before."""
    packed = pathlib.Path(f"{path}.gz")
    if packed.exists():
        path, data = packed, gzip.compress(text_of(record).encode(), mtime=0)
    else:
        data = text_of(record).encode()
    write(path, data)


def started(path, commit, device, quick):
    """The record of this commit, device and care to go on with, or a new one."""
    new = {"commit": commit, "device": device, "date": str(datetime.date.today()), **({"quick": True} if quick else {}), "parts": {}}
    if not path.exists() and not pathlib.Path(f"{path}.gz").exists():
        return new
    found = load(path)
    same = [found.get(key) for key in ("commit", "device", "quick")] == [commit, device, quick or None] and "commits" not in found
    if not same:
        print(f"{path} is of {found.get('commit')} on {found.get('device')}: it is measured anew", file=sys.stderr)
    return found if same else new


# Running the program.

class Failed(Exception):
    """A command did not do what it should."""


class Run:
    """The program and the folder that a report works in."""

    def __init__(self, options, folder):
        self.options, self.device, self.folder = options, options.device, pathlib.Path(folder)
        self.program, self.machine = str(options.program), None
        self.deadline = time.monotonic() + options.seconds
        if shutil.which(self.program) is None:
            raise Missing(f"there is no program {self.program}: build it (make program), or name it with --program")
        if self.device == "cuda":
            self.need_gpu()

    def need_gpu(self):
        try:
            devices = self.call("doctor")["gpu"]["devices"]
        except Failed:
            devices = []
        if not devices:
            raise Missing("there is no GPU that this build of the program can use (tessera doctor says why); "
                          "--device cpu measures on the CPU where the report can")

    def is_late(self, what):
        if time.monotonic() <= self.deadline:
            return False
        print(f"not measured, {self.options.seconds:.0f} s have passed: {what}", file=sys.stderr)
        return True

    def left(self):
        left = self.deadline - time.monotonic()
        return None if math.isinf(left) else max(1, left)

    def call(self, *words, seconds=None):
        """What a verb says in JSON."""
        return json.loads(self.command([self.program, *words, "--json", "-"], seconds))

    def command(self, words, seconds=None):
        words = list(map(str, words))
        try:
            done = subprocess.run(words, capture_output=True, text=True, timeout=seconds or self.left())
        except subprocess.TimeoutExpired:
            raise Failed(f"{' '.join(words)}: not done in its time") from None
        except OSError as problem:
            raise Failed(f"{words[0]}: {problem.strerror}") from None
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["no message"]
            raise Failed(f"{' '.join(words)}: {said[-1]}")
        return done.stdout

    def records(self, command, *words):
        """Records that a command writes to the file after --json; what it wrote before it failed counts."""
        report = self.folder / "records.json"
        report.unlink(missing_ok=True)
        try:
            self.command([*command, *words, "--json", report])
        except Failed as problem:
            print(f"left out: {problem}", file=sys.stderr)
        try:
            found = json.loads(report.read_text())
        except (OSError, ValueError):
            return []
        if isinstance(found, dict):
            self.machine = self.machine or machine_text(found.get("machine"))
            found = found["records"]
        return found

    def bench(self, ops, sources, *flags):
        """Records of `tessera bench`; of no source none, as the program would take its own."""
        if not sources:
            return []
        data = [word for source in sources for word in ("--data", source)]
        quick = ["--quick"] if self.options.quick and "--quick" not in flags else []
        return self.records([self.program, "bench", *ops, "--device", self.device, *data, *flags, *quick, "--force"])

    def baseline(self, script, *words):
        """Records of a script of bench/baselines, run by the Python that has torch and PyG; none without one."""
        if not self.options.pyg:
            return []
        return self.records([self.options.pyg, BASELINES / script], *words)

    def plans(self, ops, source, features, precisions, seconds=None):
        """Plans that time their candidates: [(op, details, candidates)]."""
        store = self.folder / "plans"
        store.unlink(missing_ok=True)
        self.command([self.program, "bench", *ops, "--device", self.device, "--tune", "measured", "--quick", "--features",
                      features, "--precision", precisions, "--data", source, "--plans", store], seconds)
        return parse_store(store.read_text(encoding="utf-8"))

    def npz(self, source):
        """The source as a file that NumPy reads, called as records of the program call it."""
        if str(source).endswith(".npz"):
            return str(source)
        path = self.folder / f"{graph_of(source)}.npz"
        if not path.exists():
            self.command([self.program, "convert", source, "-o", path])
        return str(path)


def needs(condition, why):
    """Makes a part one that is left out where its condition does not hold."""
    def decorated(part):
        @functools.wraps(part)
        def measure(run):
            if condition(run):
                return part(run)
            print(f"left out: {part.__name__.removeprefix('measure_')}, which {why}", file=sys.stderr)
            return None
        return measure
    return decorated


needs_gpu = needs(lambda run: run.device == "cuda", "needs --device cuda")
needs_pyg = needs(lambda run: run.options.pyg, "needs a Python that has torch and PyG (--pyg)")


def parse_store(text):
    """The choices of a file of plans."""
    choices = []
    for line in text.splitlines():
        fields = line.split("\t")
        if fields[0] == "choice":
            choices.append((fields[1], fields[3], []))
        elif fields[0] == "candidate" and float(fields[2]) > 0 and "not deterministic" not in fields[4]:
            choices[-1][2].append({"kernel": fields[1], "predicted_us": float(fields[2]), "measured_us": float(fields[3])})
    return choices


def machine_text(machine):
    if not isinstance(machine, dict):
        return machine
    return ", ".join([*machine.get("gpus", []), f"{machine['cores']} cores of {machine['cpu']}"])


# Graphs.

def name_of(source):
    source = str(source)
    if source.endswith((".npz", ".tsr", ".mtx", ".mtx.gz")):
        return pathlib.PurePath(source).name.split(".")[0]
    return source.replace("twin:", "twin ").replace("generate:", "").replace("embedded:", "embedded ")


def graph_of(source):
    """How a record of the program calls it."""
    return name_of(source).removeprefix("twin ").removeprefix("embedded ")


def real_graphs(options, names):
    """Files of those that --data has; one line where it has none."""
    paths = [options.data / name / f"{name}.npz" for name in names] if options.data else []
    found = [str(path) for path in paths if path.exists()]
    if not found:
        raise Missing("real graphs are missing: --data FOLDER, or TESSERA_DATA, names a folder that has NAME/NAME.npz, "
                      f"such as {names[0]}/{names[0]}.npz")
    return found


# Numbers and tables.

def geometric_mean(numbers):
    numbers = list(numbers)
    return math.exp(sum(map(math.log, numbers)) / len(numbers)) if numbers else math.nan


def time_of(record):
    """In a chain of launches where that was measured."""
    return record.get("chain_us") or record["median_us"]


def kernel_of(record):
    return record["kernel"].rsplit("/", 1)[-1]


def by(records, *keys):
    """{values of these keys: record}; of several the last counts."""
    return {tuple(record[key] for key in keys): record for record in records}


def table(head, rows, text_columns=1):
    """Lines of Markdown; columns after the first `text_columns` are numbers."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * text_columns + "---:|" * (len(head) - text_columns)
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def where(record, part=None):
    """Commit, date and machine of a record, or of a part that was measured at another commit."""
    commit = record.get("commits", {}).get(part, record["commit"])
    if part is not None:
        return f"`{commit}`"
    quick = "A trial (--quick): these figures say nothing. " if record.get("quick") else ""
    return quick + f"Commit `{commit}`" + "".join(f", {record[key]}" for key in ("date", "machine") if record.get(key)) + "."


def again(command, note):
    """The end of a page."""
    yield f"## Make it again\n\n```\ntools/report.py {command}\n```\n\n{note}"


def commits_note(record):
    """Why the parts of a page are of several commits, where they are."""
    if "commits" in record:
        yield ("Measuring all of it takes longer than the machine was available at a time, so that every part names its own commit: "
               + ", ".join(f"{part} {where(record, part)}" for part in record["parts"]) + ".")


def joined(lines):
    """A page: paragraphs are wrapped, tables, titles and code stay as they are."""
    out, paragraph, is_code = [], [], False
    for line in [*"\n".join(lines).rstrip("\n").split("\n"), ""]:
        is_fence = line.startswith("```")
        if is_code or is_fence or not line or line.startswith(("|", "#", "!", "- ")):
            out += textwrap.wrap(" ".join(paragraph), 110, break_long_words=False, break_on_hyphens=False) if paragraph else []
            paragraph = []
            is_code = is_code != is_fence
            out += textwrap.wrap(line, 110, subsequent_indent="  ", break_on_hyphens=False) if line.startswith("- ") else [line]
        else:
            paragraph.append(line)
    return "\n".join(out).rstrip("\n") + "\n"


# Pictures.

def svg(width, height, parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} '
                      f'{height}" font-family="sans-serif" font-size="13">',
                      f'<rect width="{width}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def element(tag, inside="", **attributes):
    words = [f' {key.replace("_", "-")}="{round(value, 1) if isinstance(value, float) else value}"' for key, value in attributes.items()]
    return f"<{tag}{''.join(words)}>{inside}</{tag}>" if inside else f"<{tag}{''.join(words)}/>"


def svg_text(x, y, text, anchor="start", **more):
    return element("text", html.escape(str(text)), x=x, y=y, text_anchor=anchor, **more)


def svg_line(x1, y1, x2, y2, stroke="#ddd", **more):
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=stroke, **more)


def svg_curve(points, stroke):
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return element("polyline", points=places, fill="none", stroke=stroke, stroke_width=2)


def svg_dot(x, y, fill, radius=3, title="", **more):
    return element("circle", title and element("title", html.escape(title)), cx=x, cy=y, r=radius, fill=fill, **more)
