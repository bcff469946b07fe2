#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A X with torch.sparse CSR tensors, in the fastest of torch's ways on this machine.

    spmm_torch.py --data cora.npz --threads 1,2 --json torch.json
    tessera bench spmm --data cora.npz --threads 1,2 --json tessera.json
    tessera bench compare torch.json tessera.json
"""
import torch

import common


def settings(offsets, columns, vertices, features):
    """torch.sparse.mm with 32- and 64-bit indices, plain and in the form with a reduction."""
    x = torch.rand(vertices, features) * 2 - 1
    for name, index_type in (("int32", torch.int32), ("int64", torch.int64)):
        matrix = common.csr(offsets, columns, vertices, index_type)
        for form, function in (("mm", lambda m=matrix: torch.sparse.mm(m, x)),
                               ("mm_reduce_sum", lambda m=matrix: torch.sparse.mm(m, x, "sum"))):
            try:
                function()
            except RuntimeError:
                continue  # this build of torch has no such kernel
            yield f"torch/{form}/{name}", function


def main():
    options = common.arguments(__doc__.splitlines()[0])
    records = []
    with torch.inference_mode():
        for name, offsets, columns, vertices, features, threads in common.cases(options):
            choices = dict(settings(offsets, columns, vertices, features))
            kernel, samples, plan = common.best_setting(choices, options)
            records.append(common.record("spmm", name, features, threads, kernel, samples, plan))
            print(f"{name} {features} features, {threads} threads: "
                  f"{records[-1]['median_us']:.0f} us, {kernel}", flush=True)
    common.write(options, records)


if __name__ == "__main__":
    main()
