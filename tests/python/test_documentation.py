# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings are right."""

import doctest
import importlib

import pytest
import torch

MODULES = ["tessera", "tessera._library", "tessera.files", "tessera.functional", "tessera.graph", "tessera.models", "tessera.trained_model",
           "tessera.nn", "tessera.nn.attention", "tessera.nn.convolutions"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    torch.manual_seed(0)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
