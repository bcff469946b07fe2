// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tessera/ops/bits.hpp"

#include "ops/bits/kernel.hpp"
#include "ops/bits/reference.hpp"
#include "support/bits.hpp"
#include "support/kernel_names.hpp"

/// What tests of the kernels of bit products share.
namespace tessera::ops {

using testing::drawn_bits;
using testing::OnDeviceArray;
using testing::PlacedBits;

struct BitShape {
  std::int64_t rows, cols, depth;
};

inline std::string text(const BitShape& shape, int s, int t) {
  return std::to_string(shape.rows) + "x" + std::to_string(shape.cols) + "x" +
         std::to_string(shape.depth) + ", " + std::to_string(s) + " by " + std::to_string(t);
}

/// Runs a plan of 32-bit sums and brings them back.
inline std::vector<std::int32_t> run_sums(const BitPlan& plan, const BitInputs& inputs) {
  const BitOptions& options = plan.options();
  std::vector<std::int32_t> sums(static_cast<std::size_t>(options.rows * options.cols), -77);
  OnDeviceArray<std::int32_t> there(sums.data(), options.rows * options.cols, options.device);
  BitOutputs outputs;
  outputs.sums32 = {there.data(), options.rows, options.cols, options.device};
  run(plan, inputs, outputs);
  there.fetch(sums.data());
  return sums;
}

/// Runs a plan of codes as bytes and brings them back, with what fills rows up.
inline Matrix<std::uint8_t> run_bytes(const BitPlan& plan, const BitInputs& inputs) {
  const BitOptions& options = plan.options();
  Matrix<std::uint8_t> bytes(options.rows, padded_bytes(options.cols), std::uint8_t{0xA5});
  OnDeviceArray<std::uint8_t> there(bytes.data(), bytes.size(), options.device);
  BitOutputs outputs;
  outputs.bytes = {there.data(), options.rows, options.cols, bytes.cols(), options.device};
  run(plan, inputs, outputs);
  there.fetch(bytes.data());
  return bytes;
}

inline std::vector<std::int32_t> narrow(const Matrix<std::int64_t>& sums) {
  return {sums.span().begin(), sums.span().end()};
}

/// The same codes in rows of fewer words.
inline quant::BitTensor cut_rows(const quant::BitTensor& tensor, std::int64_t words) {
  quant::BitTensor cut = tensor;
  cut.words_per_row = words;
  Buffer<std::uint32_t> all(tensor.bits * tensor.padded_rows * words);
  for (std::int64_t line = 0; line < tensor.bits * tensor.padded_rows; ++line) {
    std::copy_n(tensor.words.data() + line * tensor.words_per_row, words,
                all.data() + line * words);
  }
  cut.words = std::move(all);
  return cut;
}

class BitGemmKernels : public ::testing::TestWithParam<std::string> {
 protected:
  Device device_ = testing::device_of(GetParam());

  BitOptions options(const BitShape& shape, int s, int t) const {
    BitOptions options;
    options.device = device_;
    options.kernel = GetParam();
    options.rows = shape.rows;
    options.cols = shape.cols;
    options.depth = shape.depth;
    options.a_bits = s;
    options.b_bits = t;
    return options;
  }

  bool takes(const BitOptions& options) const {
    return testing::kernel_named(bit_gemm_kernels(), GetParam())
        .why_not({Graph(), options, nullptr, false})
        .empty();
  }

  void expect_exact(const BitShape& shape, int s, int t) const {
    const BitOptions wanted = options(shape, s, t);
    if (!takes(wanted)) return;
    SCOPED_TRACE(text(shape, s, t));
    const quant::BitTensor a = drawn_bits(shape.rows, shape.depth, s, 1);
    const quant::BitTensor b = drawn_bits(shape.cols, shape.depth, t, 2);
    Matrix<std::int64_t> expected(shape.rows, shape.cols);
    reference::bit_gemm(a, b, {expected.data(), shape.rows, shape.cols});
    PlacedBits a_there(a, device_), b_there(b, device_);
    EXPECT_EQ(run_sums(plan_bit_gemm(wanted), {a_there.view(), b_there.view(), {}}),
              narrow(expected));
    EXPECT_EQ(run_sums(plan_bit_gemm(a, wanted), {{}, b_there.view(), {}}), narrow(expected))
        << "A stays";
  }
};

class BitAggregateKernels : public ::testing::TestWithParam<std::string> {
 protected:
  Device device_ = testing::device_of(GetParam());

  BitOptions options(std::int64_t cols, int bits) const {
    BitOptions options;
    options.device = device_;
    options.kernel = GetParam();
    options.cols = cols;
    options.b_bits = bits;
    return options;
  }

  bool takes(const Graph& graph, const BitOptions& options) const {
    BitProblem problem{graph, options, nullptr, true};
    problem.options.rows = graph.num_rows();
    problem.options.depth = graph.num_cols();
    return testing::kernel_named(bit_aggregate_kernels(), GetParam()).why_not(problem).empty();
  }

  void expect_exact(const Graph& graph, std::int64_t cols, int bits) const {
    SCOPED_TRACE(std::to_string(cols) + " columns of " + std::to_string(bits) + " bits");
    const BitOptions wanted = options(cols, bits);
    if (!takes(graph, wanted)) return;
    const quant::BitTensor b = drawn_bits(graph.num_cols(), cols, bits, 8);
    Matrix<std::int64_t> expected(graph.num_rows(), cols);
    reference::bit_aggregate(graph, b, {expected.data(), expected.rows(), cols});
    PlacedBits there(b, device_);
    EXPECT_EQ(run_sums(plan_bit_aggregate(graph, wanted), {{}, there.view(), {}}),
              narrow(expected));
    BitOptions of_short = wanted;
    of_short.b_words = (cols + 31) / 32;
    PlacedBits short_there(cut_rows(b, of_short.b_words), device_);
    EXPECT_EQ(run_sums(plan_bit_aggregate(graph, of_short), {{}, short_there.view(), {}}),
              narrow(expected))
        << "short rows";
  }
};

/// Everything that an epilogue can have, against its formula.
struct EpilogueCase {
  explicit EpilogueCase(std::int64_t rows, std::int64_t cols, Device device)
      : rows_(rows),
        cols_(cols),
        device_(device),
        numbers_(static_cast<std::size_t>(2 * (4 * rows + 7 * cols))) {
    for (std::size_t i = 0; i < numbers_.size(); ++i) {
      numbers_[i] = static_cast<float>(static_cast<double>(i * 37 % 101) / 40.0 - 1.1);
    }
    there_.emplace_back(numbers_.data(), static_cast<std::int64_t>(numbers_.size()), device);
  }

  BitEpilogue parts() { return parts_at(there_.front().data(), device_); }
  BitEpilogue host_parts() { return parts_at(numbers_.data(), {}); }

 private:
  BitEpilogue parts_at(float* at, Device device) const {
    const auto take = [&](std::int64_t rows, std::int64_t cols) {
      const MatrixView<const float> part(at, rows, cols, device);
      at += rows * cols;
      return part;
    };
    BitEpilogue parts;
    parts.row_scale = take(rows_, 1);
    parts.row_terms = take(rows_, 2);
    parts.col_scale = take(1, cols_);
    parts.col_terms = take(2, cols_);
    parts.bias = take(1, cols_);
    parts.norm_scale = take(1, cols_);
    parts.norm_shift = take(1, cols_);
    parts.result_scale = take(rows_, 1);
    return parts;
  }

  std::int64_t rows_, cols_;
  Device device_;
  std::vector<float> numbers_;
  std::vector<OnDeviceArray<float>> there_;
};

}  // namespace tessera::ops
