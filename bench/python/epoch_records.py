# SPDX-License-Identifier: Apache-2.0
"""What records of epochs.py say, in words and as a table."""

LOSS_BOUNDS = {"fp32": 1e-4, "bf16": 2e-2}
WHO = ("pyg", "tessera")
WHY = {"OutOfMemory": "memory", "out of memory": "memory", "allocate memory": "memory", "cannot be captured": "waits",
       "not ready": "not ready", "no end": "no end"}  # by a part of the error


def milliseconds(result, shortest=False):
    return result.get("min_ms" if shortest else "median_ms")


def time_text(result, shortest=False):
    time = milliseconds(result, shortest)
    if time is not None:
        return f"{time:.2f}"
    return next((word for key, word in WHY.items() if key in result["error"]), "failed")


def ratio(record, shortest=False):
    theirs, ours = (milliseconds(record[who], shortest) for who in WHO)
    return "–" if theirs is None or ours is None else f"{theirs / ours:.2f}"


def apart(found, expected):
    return abs(found - expected) / max(abs(expected), 1e-6)


def compared_after(record):
    """The most epochs after which both losses are known, or None."""
    known = [{int(name.removeprefix("loss_after_")) for name, loss in record[who].items()
              if name.startswith("loss_after_") and loss is not None} for who in WHO]
    return max(known[0] & known[1], default=None)


def loss_difference(record):
    """Of ours from PyG's, relative, after the same number of epochs."""
    after = compared_after(record)
    if after is None:
        return None
    theirs, ours = (record[who][f"loss_after_{after}"] for who in WHO)
    return apart(ours, theirs)


def loss_text(record):
    difference = loss_difference(record)
    if difference is None:
        return "–"
    text = f"{difference:.1e}"
    if compared_after(record) != 50:
        text += f" after {compared_after(record)}"
    if "pyg_itself" in record:
        text += f" (PyG itself {record['pyg_itself']:.1e})"
    if "from_fp32" in record:
        found = record["from_fp32"]
        text += f" (from fp32: PyG {found['pyg']:.1e}, ours {found['tessera']:.1e})"
    return text


def gradient_text(record):
    found = record["gradients"]
    if found is None or "tessera" not in found:
        return "–"
    text = f"{found['tessera']:.1e}"
    return text if "pyg" not in found else f"{text} (PyG {found['pyg']:.1e})"


def memory_text(record):
    sizes = [record[who].get("peak_bytes") for who in WHO]
    return " / ".join("–" if size is None else f"{size / 2**20:.0f}" for size in sizes)


def line(record, shortest):
    return (f"{record['graph']:8} {record['model']:6} {record['precision']} {record['mode']:9} "
            f"PyG {time_text(record['pyg'], shortest):>9} ms, tessera "
            f"{time_text(record['tessera'], shortest):>9} ms, {ratio(record, shortest)} x, "
            f"loss {loss_text(record)}, gradients {gradient_text(record)}, MiB {memory_text(record)}")


def write_table(records, shortest, path):
    first = records[0]
    what = "Shortest epochs" if shortest else "Medians"
    what += " by the processor's clock," if first["clock"] == "processor" else ""
    lines = [
        f"Epochs on {first['device']}, {first['threads']} threads, {first['versions']}; made by "
        f"`bench/python/epochs.py`. {what} in ms; the relative difference of the losses after 50 "
        "epochs, and of the first gradients from PyG's in fp32; peak memory of PyG and tessera in MiB. "
        "Waits: for the GPU in every step, which cannot be captured.",
        "",
        "| graph | model | precision | mode | PyG | tessera | times as fast | loss | gradients | memory |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for record in records:
        lines.append(f"| {record['graph']} | {record['model']} | {record['precision']} | "
                     f"{record['mode']} | {time_text(record['pyg'], shortest)} | "
                     f"{time_text(record['tessera'], shortest)} | {ratio(record, shortest)} | "
                     f"{loss_text(record)} | {gradient_text(record)} | {memory_text(record)} |")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
