# SPDX-License-Identifier: Apache-2.0
"""Whether plans may round to tf32 is what torch says of its own products, by whichever setting."""

import pytest
import torch
import torch._dynamo

from tessera.functional import TF32, tf32_flag


@pytest.fixture(autouse=True)
def restored():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def flags():
    compiled = torch.compile(lambda x: x * tf32_flag(), fullgraph=True, backend="eager")
    found = tf32_flag()
    assert compiled(torch.ones(1)).item() == found
    return found


def test_set_by_a_switch(products):
    assert flags() == 0
    products.allow_tf32 = True
    assert flags() == TF32
    products.allow_tf32 = False
    assert flags() == 0


def test_set_by_name(products):
    products.fp32_precision = "tf32"
    assert flags() == TF32
    products.fp32_precision = "ieee"
    assert flags() == 0


def test_set_for_all_that_torch_does(products):
    torch.backends.fp32_precision = "tf32"
    assert flags() == TF32
    products.fp32_precision = "ieee"
    assert flags() == 0


def test_compiled_code_notices_a_change(products):
    compiled = torch.compile(lambda x: x * tf32_flag(), fullgraph=True, backend="eager")
    for precision, flag in (("none", 0), ("tf32", TF32), ("ieee", 0)):
        products.fp32_precision = precision
        assert compiled(torch.ones(1)).item() == flag
