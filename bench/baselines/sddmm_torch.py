#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dot product of the two ends of every edge with torch.sparse.sampled_addmm.

    sddmm_torch.py --data cora.npz --threads 1,2 --json torch.json
    tessera bench sddmm --data cora.npz --threads 1,2 --heads 1 --json tessera.json
    tessera bench compare torch.json tessera.json
"""
import torch

import common


def settings(offsets, columns, vertices, features):
    """sampled_addmm with 32- and 64-bit indices, V^T as a view and as a copy."""
    u = torch.rand(vertices, features) * 2 - 1
    v = torch.rand(vertices, features) * 2 - 1
    layouts = {"view": v.t(), "copy": v.t().contiguous()}
    for name, index_type in (("int32", torch.int32), ("int64", torch.int64)):
        matrix = common.csr(offsets, columns, vertices, index_type)
        for layout, turned in layouts.items():
            def function(m=matrix, t=turned):
                return torch.sparse.sampled_addmm(m, u, t, beta=0.0)
            try:
                function()
            except RuntimeError:
                continue  # this build of torch has no such kernel
            yield f"torch/sampled_addmm/{name}/{layout}", function


def main():
    options = common.arguments(__doc__.splitlines()[0])
    records = []
    with torch.inference_mode():
        for name, offsets, columns, vertices, features, threads in common.cases(options):
            choices = dict(settings(offsets, columns, vertices, features))
            if not choices:
                raise SystemExit("this build of torch has no sampled_addmm on the CPU")
            kernel, samples, plan = common.best_setting(choices, options)
            records.append(common.record("sddmm", name, features, threads, kernel, samples, plan))
            print(f"{name} {features} features, {threads} threads: "
                  f"{records[-1]['median_us']:.0f} us, {kernel}", flush=True)
    common.write(options, records)


if __name__ == "__main__":
    main()
