// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "support/bit_kernels.hpp"
#include "support/expect_error.hpp"

namespace tessera::ops {
namespace {

TEST_P(BitGemmKernels, AreExactForAllBits) {
  for (int s = 1; s <= quant::max_bits; ++s) {
    for (int t = 1; t <= quant::max_bits; ++t) {
      if (s + t + 7 <= 31) expect_exact({9, 5, 100}, s, t);
    }
  }
}

TEST_P(BitGemmKernels, AreExactAroundTileEdges) {
  const std::vector<std::int64_t> edges = {0, 1, 7, 8, 9, 15, 17, 31, 32, 33, 63, 64, 65};
  for (const std::int64_t n : edges) {
    expect_exact({n, 33, 130}, 1, 3);
    expect_exact({17, n, 130}, 2, 2);
    expect_exact({17, 9, n}, 3, 4);
  }
  for (const std::int64_t depth :
       {127, 128, 129, 255, 256, 257, 511, 513, 1023, 1024, 1025, 5000}) {
    expect_exact({5, 6, depth}, 1, 1);
    expect_exact({5, 6, depth}, 1, 8);
    expect_exact({5, 6, depth}, 3, 2);
  }
  for (const std::int64_t size : {127, 128, 129, 255, 257}) {
    expect_exact({size, 3, 300}, 1, 1);
    expect_exact({size, 3, 300}, 1, 4);
    expect_exact({2, size, 300}, 1, 1);
    expect_exact({2, size, 300}, 1, 8);
  }
  expect_exact({13000, 100, 0}, 1, 1);
  expect_exact({300, 130, 4100}, 1, 1);
  expect_exact({300, 130, 4100}, 1, 5);
}

TEST_P(BitGemmKernels, SkipTilesWithoutBits) {
  // Blocks on the diagonal, as the parts of a batch stand.
  const std::int64_t n = 2300;
  Matrix<std::uint16_t> codes(n, n, std::uint16_t{0});
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = i / 100 * 100; k < std::min(n, i / 100 * 100 + 100); ++k) {
      codes(i, k) = static_cast<std::uint16_t>((i * 7 + k * 3) % 5 == 0);
    }
  }
  const quant::BitTensor a = quant::pack_rows(testing::codes_view(codes), 1);
  for (const int t : {1, 4, 8}) {
    const BitOptions wanted = options({n, 20, n}, 1, t);
    if (!takes(wanted)) continue;
    const quant::BitTensor b = drawn_bits(20, n, t, 3);
    Matrix<std::int64_t> expected(n, 20);
    reference::bit_gemm(a, b, {expected.data(), n, 20});
    PlacedBits there(b, device_);
    EXPECT_EQ(run_sums(plan_bit_gemm(a, wanted), {{}, there.view(), {}}), narrow(expected)) << t;
  }
}

TEST_P(BitGemmKernels, TakeBlocksOfTheDiagonal) {
  // Parts of 128, 256 and 384 vertices; the last has fewer.
  const std::vector<std::int32_t> starts = {0, 0, 128, 128, 128, 128, 384, 384, 384, 384, 384};
  const std::int64_t block = 384;
  const std::int64_t rows = 700;
  const quant::BitTensor whole_b = drawn_bits(37, rows, 3, 7);
  for (const int s : {1, 2}) {
    BitOptions wanted = options({rows, 37, rows}, s, 3);
    wanted.block = block;
    if (!takes(wanted)) continue;
    Matrix<std::uint16_t> whole(rows, rows, std::uint16_t{0});
    Matrix<std::uint16_t> blocks(rows, block, std::uint16_t{0});
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int32_t start = starts[static_cast<std::size_t>(i / 64)];
      const std::int64_t width = start == 0 ? 128 : start == 128 ? 256 : rows - 384;
      for (std::int64_t k = 0; k < width; ++k) {
        const auto code = static_cast<std::uint16_t>((i * 5 + k * 11) % 7 % (1 << s));
        blocks(i, k) = whole(i, start + k) = code;
      }
    }
    const quant::BitTensor a = quant::pack_rows(testing::codes_view(blocks), s);
    Matrix<std::int64_t> expected(rows, 37);
    reference::bit_gemm(quant::pack_rows(testing::codes_view(whole), s), whole_b,
                        {expected.data(), rows, 37});
    PlacedBits a_there(a, device_), b_there(whole_b, device_);
    OnDeviceArray<std::int32_t> starts_there(starts.data(), std::ssize(starts), device_);
    BitInputs inputs{a_there.view(), b_there.view(), {}};
    inputs.block_starts = {starts_there.data(), std::ssize(starts), 1, device_};
    EXPECT_EQ(run_sums(plan_bit_gemm(wanted), inputs), narrow(expected)) << s;
  }
}

/// The rows of a few kinds in turn; every other 128 of them have no bit in the first `empty`
/// places.
struct TurningRows {
  static constexpr std::int64_t kinds = 14;

  TurningRows(std::int64_t count, std::int64_t depth, std::int64_t empty) {
    Matrix<std::uint16_t> codes = testing::drawn_codes(kinds, depth, 1, 4);
    for (std::int64_t row = 7; row < kinds; ++row) {
      std::fill_n(codes.row(row), empty, std::uint16_t{0});
    }
    few = quant::pack_rows(testing::codes_view(codes), 1);
    all = quant::bit_tensor_shape(1, count, depth);
    std::vector<std::uint32_t> words(static_cast<std::size_t>(all.padded_rows * all.words_per_row));
    for (std::int64_t row = 0; row < count; ++row) {
      std::copy_n(few.view().row(0, kind_of(row)), all.words_per_row,
                  words.data() + row * all.words_per_row);
    }
    all.words = SharedArray<std::uint32_t>(std::move(words));
  }

  static std::int64_t kind_of(std::int64_t row) { return row % 7 + row / 128 % 2 * 7; }

  std::vector<std::int32_t> products(const quant::BitTensor& b) const {
    Matrix<std::int64_t> of_kinds(kinds, b.rows);
    reference::bit_gemm(few, b, {of_kinds.data(), kinds, b.rows});
    std::vector<std::int32_t> sums;
    for (std::int64_t row = 0; row < all.rows; ++row) {
      const std::int64_t* const own = of_kinds.row(kind_of(row));
      sums.insert(sums.end(), own, own + b.rows);
    }
    return sums;
  }

  quant::BitTensor few, all;
};

/// Enough rows for the tallest blocks, even and odd numbers of them, and enough depth
/// that what a block has room for is used again; blocks that skip nothing, a half or everything of
/// an A that stays; and a last block of one column.
TEST_P(BitGemmKernels, AreExactInTallBlocks) {
  struct TallCase {
    std::int64_t rows, cols, depth, empty;
  };
  const bool on_cpu = device_.kind == DeviceKind::cpu;
  for (const auto& [count, cols, depth, empty] :
       {TallCase{13000, 100, 9100, 4550}, TallCase{13100, 100, 9100, 4550},
        TallCase{13100, 100, 9100, 0}, TallCase{13100, 257, 2100, 0},
        TallCase{13100, 257, 2100, 2100}, TallCase{13100, 256, 2100, 0}}) {
    const BitShape shape{on_cpu ? 140 : count, cols, depth};
    const TurningRows rows(shape.rows, depth, empty);
    PlacedBits a_there(rows.all, device_);
    for (const int bits : {1, 2, 3, 8}) {
      const BitOptions wanted = options(shape, 1, bits);
      if (!takes(wanted)) continue;
      SCOPED_TRACE(text(shape, 1, bits));
      const quant::BitTensor b = drawn_bits(shape.cols, shape.depth, bits, 5);
      const std::vector<std::int32_t> expected = rows.products(b);
      PlacedBits b_there(b, device_);
      EXPECT_TRUE(run_sums(plan_bit_gemm(wanted), {a_there.view(), b_there.view(), {}}) ==
                  expected);
      EXPECT_TRUE(run_sums(plan_bit_gemm(rows.all, wanted), {{}, b_there.view(), {}}) == expected)
          << "A stays";
    }
  }
}

TEST_P(BitGemmKernels, SumInMoreBitsOrSayThatTheyCannot) {
  const BitShape shape{3, 4, 100};
  for (int s = 1; s <= quant::max_bits; ++s) {
    for (int t = 1; t <= quant::max_bits; ++t) {
      if (s == 1 || t == 1 || s + t + 7 <= 31) continue;
      SCOPED_TRACE(text(shape, s, t));
      BitOptions wanted = options(shape, s, t);
      testing::expect_error(ErrorCode::invalid_argument,
                            {"may take " + std::to_string(s + t + 7) + " bits", "sums64"},
                            [&] { plan_bit_gemm(wanted); });
      wanted.output = BitOutput::sums64;
      if (!takes(wanted)) continue;
      const quant::BitTensor a = drawn_bits(shape.rows, shape.depth, s, 6);
      const quant::BitTensor b = drawn_bits(shape.cols, shape.depth, t, 7);
      Matrix<std::int64_t> expected(shape.rows, shape.cols);
      Matrix<std::int64_t> sums(shape.rows, shape.cols);
      reference::bit_gemm(a, b, {expected.data(), shape.rows, shape.cols});
      BitOutputs outputs;
      outputs.sums64 = {sums.data(), shape.rows, shape.cols};
      run(plan_bit_gemm(wanted), {a, b, {}}, outputs);
      EXPECT_TRUE(std::equal(sums.span().begin(), sums.span().end(), expected.span().begin()));
      EXPECT_TRUE(s + t < 32 || expected(0, 0) > std::int64_t{1} << 31);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BitGemmKernels,
                         ::testing::ValuesIn(testing::kernel_names("bit_gemm")),
                         testing::kernel_test_name);

}  // namespace
}  // namespace tessera::ops
