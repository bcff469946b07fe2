# SPDX-License-Identifier: Apache-2.0
"""Codes of few bits, and their products, against plain torch in whole numbers."""

import math

import pytest
import torch
from conftest import opcheck, random_edges

import tessera
from tessera import bits


def drawn(rows, cols, width, device="cpu", lower=0.0, scale=1.0):
    codes = torch.randint(0, 2**width, (rows, cols), device=device)
    return codes, bits.pack(codes, bits.Range(lower, scale, width))


@pytest.mark.parametrize("width", [1, 2, 3, 8, 16])
def test_codes_come_back(device, width):
    for rows, cols in [(1, 1), (7, 31), (8, 32), (17, 33), (9, 129), (0, 5), (5, 0)]:
        codes, packed = drawn(rows, cols, width, device)
        assert torch.equal(packed.codes(), codes.int())
        assert torch.equal(packed.sums(), codes.sum(1))
        assert packed.words.shape == (width, -(-rows // 8) * 8, -(-cols // 128) * 4)


def test_numbers_become_the_nearest_code(device):
    x = torch.tensor([[-1.0, -0.9, 0.4], [0.6, 2.0, 9.0]], device=device)
    found = bits.quantise(x, bits=2, lower=-1.0, upper=2.0)
    assert torch.equal(found.codes(), torch.tensor([[0, 0, 1], [2, 3, 3]], device=device).int())
    assert torch.equal(found.values(), found.codes() - 1.0)
    whole = bits.quantise(x, bits=8)
    assert (whole.values() - x).abs().max() <= 0.5 * 10 / 255 + 1e-6
    assert torch.equal(bits.quantise(torch.full((2, 3), 4.0), 3).values(), torch.full((2, 3), 4.0))


@pytest.mark.parametrize("a_bits, b_bits", [(1, 1), (2, 3), (4, 8), (8, 8)])
def test_products_are_exact(device, a_bits, b_bits):
    for rows, cols, depth in [(1, 1, 1), (17, 33, 130), (40, 8, 257)]:
        a, packed_a = drawn(rows, depth, a_bits, device)
        b, packed_b = drawn(cols, depth, b_bits, device)
        found = bits.products(packed_a, packed_b)
        assert found.dtype == torch.int32
        assert torch.equal(found, (a.double() @ b.double().t()).int())


def exact_products(a, b):
    """In whole numbers, which torch multiplies on the CPU alone."""
    return (a.cpu().long() @ b.cpu().long().t()).to(a.device)


def test_sums_that_need_64_bits(device):
    for a_bits, b_bits, depth in [(16, 16, 40), (16, 9, 200), (5, 16, 70000)]:
        a, packed_a = drawn(3, depth, a_bits, device)
        b, packed_b = drawn(4, depth, b_bits, device)
        for multiply in (bits.products, bits._products_by_halves):
            found = multiply(packed_a, packed_b)
            assert found.dtype == torch.int64 and torch.equal(found, exact_products(a, b))


@pytest.mark.parametrize("activation", [None, "relu", "tanh"])
@pytest.mark.parametrize("lower", [0.0, -0.75])
def test_linear_layers(device, lower, activation):
    _, x = drawn(21, 50, 4, device, lower, 0.1)
    _, weight = drawn(10, 50, 3, device, lower, 0.25)
    bias = torch.randn(10, device=device)
    expected = torch.nn.functional.linear(x.values(), weight.values(), bias)
    expected = expected if activation is None else getattr(torch, activation)(expected)
    found = bits.linear(x, weight, bias, activation=activation)
    assert (found - expected).abs().max() <= 1e-5 * (1 + expected.abs().max())
    to = bits.Range.between(expected.min().item() - 0.5, expected.max().item(), 4)
    again = bits.linear(x, weight, bias, activation=activation, to=to)
    assert again.shape == (21, 10) and again.bits == 4
    assert (again.values() - expected).abs().max() <= 0.5 * to.scale + 1e-4
    assert torch.equal(bits.products(again, again), exact_products(again.codes(), again.codes()).int())


@pytest.mark.parametrize("activation", [None, "relu", "tanh"])
def test_linear_layers_whose_sums_need_64_bits(device, activation):
    _, x = drawn(21, 50, 16, device, -0.75, 1e-5)
    _, weight = drawn(10, 50, 14, device, -0.25, 1e-4)
    bias = torch.randn(10, device=device)
    expected = x.values().double() @ weight.values().double().t() + bias
    expected = expected if activation is None else getattr(torch, activation)(expected)
    to = bits.Range.between(expected.min().item() - 0.5, expected.max().item(), 4)
    for linear in (bits.linear, lambda *given, activation, to=None: bits._linear_of_wide_sums(*given, activation, to)):
        found = linear(x, weight, bias, activation=activation)
        assert found.dtype == torch.float32
        assert (found - expected).abs().max() <= 2e-5 * (1 + expected.abs().max())
        again = linear(x, weight, bias, activation=activation, to=to)
        assert (again.values() - expected).abs().max() <= 0.5 * to.scale + 1e-4
        with pytest.raises(ValueError, match="unknown activation 'gelu'"):
            linear(x, weight, bias, activation="gelu")


@pytest.mark.parametrize("width", [1, 4, 8])
@pytest.mark.parametrize("lower", [0.0, -0.5])
@pytest.mark.parametrize("loops", ["given", "one_each"])
def test_sums_over_neighbours(device, width, lower, loops):
    index = random_edges(23, 23, 150, device, repeated=False)
    _, x = drawn(23, 19, width, device, lower, 0.125)
    scale = torch.rand(23, device=device)
    expected = tessera.spmm(index, x.values(), loops=loops) * scale.view(-1, 1)
    found = bits.aggregate(index, x, loops=loops, scale=scale)
    assert (found - expected).abs().max() <= 1e-5 * (1 + expected.abs().max())
    to = bits.Range.between(expected.min().item(), expected.max().item(), 6)
    again = bits.aggregate(index, x, loops=loops, scale=scale, to=to)
    assert (again.values() - expected).abs().max() <= 0.5 * to.scale + 1e-4


def test_opcheck(device):
    _, a = drawn(9, 40, 2, device)
    _, b = drawn(5, 40, 3, device)
    floats = torch.rand(9, 1, device=device), None, None, None, torch.rand(5, device=device)
    for output in (0, 1, 2, 3, 4):
        if output == 1 and device.type == "cuda":
            continue  # sums in 64 bits exist on the CPU
        factors = (None,) * 5 if output < 2 else floats
        opcheck("bit_gemm", (a.words, b.words, *factors, 9, 5, 40, 0, output, 4, -1.0, 0.5))
    index = random_edges(9, 9, 30, device, repeated=False)
    for output in (0, 2, 3):
        opcheck("bit_aggregate", (a.words, *(None,) * 5, index, None, 9, 9, 0, 1, 40, 0, output, 4, 0.0, 1.0))


def test_infinities_become_the_ends_of_given_bounds():
    x = torch.tensor([[-math.inf, 0.25, math.inf]])
    assert bits.quantise(x, 2, 0.0, 0.75).codes().tolist() == [[0, 1, 3]]
    assert bits.quantise(torch.full((2, 3), 7.0), 3).codes().tolist() == [[0] * 3] * 2


def test_numbers_that_lie_close_or_far_apart(device):
    near = torch.tensor([[1e9, 1e9 + 1, 1e9 + 3]], dtype=torch.float64, device=device)
    assert bits.quantise(near, 2).codes().tolist() == [[0, 1, 3]]
    far = torch.tensor([[-1.6e38, 0.4e38, 1.6e38, 1.4e38]], device=device)
    assert bits.quantise(far, 4).codes().tolist() == [[0, 9, 15, 14]]
    for same in (7.0, 1e17, -3e38, 0.0):
        found = bits.quantise(torch.full((2, 3), same, device=device), 3)
        assert found.codes().tolist() == [[0] * 3] * 2
        assert torch.equal(found.values(), torch.full((2, 3), same, device=device))
    assert bits.quantise(torch.tensor([[5.0, 9.0]], device=device), 2, upper=5.0).codes().tolist() == [[0, 0]]


def test_ranges_that_single_precision_does_not_hold():
    wide = torch.tensor([[-3e38, 1e38, 3e38]])
    thin = torch.tensor([[0.0, 1e-45, 2e-45]])
    great = torch.tensor([[1e300, 1.5e300, 2e300]], dtype=torch.float64)
    same = torch.full((2, 3), 1e300, dtype=torch.float64)
    for x in (wide, thin, great):
        with pytest.raises(ValueError, match="steps, which single precision does not hold: scale the numbers"):
            bits.quantise(x, 8)
    with pytest.raises(ValueError, match="range from 1e\\+300 to 1e\\+300"):
        bits.quantise(same, 3)


def test_errors():
    _, a = drawn(9, 40, 2)
    _, b = drawn(5, 41, 2)
    index = torch.tensor([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="no product"):
        bits.products(a, b)
    with pytest.raises(ValueError, match="9 rows for 4 vertices"):
        bits.aggregate(tessera.Graph(index, 4, 4), a)
    with pytest.raises(ValueError, match="without weights"):
        bits.aggregate(tessera.Graph(index, 9, 9, torch.rand(2)), a)
    with pytest.raises(ValueError, match="repeated"):
        bits.aggregate(tessera.Graph(torch.tensor([[0, 0], [1, 1]]), 9, 9), a)
    with pytest.raises(ValueError, match="17 bits"):
        bits.quantise(torch.rand(2, 2), 17)
    for bounds in ({}, {"lower": 0.0}, {"lower": 0.0, "upper": 1.0}):
        with pytest.raises(ValueError, match="NaN"):
            bits.quantise(torch.tensor([[0.5, math.nan]]), 4, **bounds)
    with pytest.raises(ValueError, match="from 0.5 to inf have no steps"):
        bits.quantise(torch.tensor([[0.5, math.inf]]), 4)
    for bounds in ((3.0, 3.0), (3.0, 2.0), (-math.inf, 2.0), (0.0, math.nan)):
        with pytest.raises(ValueError, match="finite bounds"):
            bits.quantise(torch.rand(2, 2), 4, *bounds)
    with pytest.raises(ValueError, match="not one of 2 bits"):
        bits.pack(torch.tensor([[4]]), bits.Range(0.0, 1.0, 2))
    with pytest.raises(TypeError, match="whole numbers"):
        bits.pack(torch.rand(2, 2), bits.Range(0.0, 1.0, 2))
    with pytest.raises(TypeError, match="floats"):
        bits.quantise(torch.ones(2, 2, dtype=torch.int64))
    with pytest.raises(ValueError, match="unknown activation"):
        bits.linear(a, a, activation="gelu")
    with pytest.raises(ValueError, match="planes that do not hold"):
        tessera.errors.run(tessera.bits._bit_operators.bit_gemm, a.words, a.words, *(None,) * 5, 30, 9,
                           40, 0, 0, 1, 0.0, 1.0)
