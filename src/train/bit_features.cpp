// SPDX-License-Identifier: Apache-2.0
#include "train/bit_features.hpp"

#include <algorithm>
#include <cmath>

#include "tessera/core/parallel.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t grain = 64;

/// As quant::CodeSteps, whose lower bound is a multiple of its step.
struct Coder {
  float step, zero, last;

  Coder(const quant::Affine& affine, std::size_t range)
      : step(affine.scale[range]),
        zero(std::rint(-affine.lower[range] / step)),
        last(static_cast<float>(affine.max_code())) {}

  std::uint32_t code(float x) const {
    return static_cast<std::uint32_t>(std::clamp(std::rint(x / step) + zero, 0.0f, last));
  }
  /// What a code stands for, without its sign.
  double size(std::uint32_t code) const {
    return std::abs(static_cast<double>((static_cast<float>(code) - zero) * step));
  }
};

/// As train::row_normalise.
float factor_of(double sum) { return sum > 0 ? static_cast<float>(1 / sum) : 1.0f; }

}  // namespace

BitFeatures::BitFeatures(std::int64_t vertices, const quant::Affine& range, std::int64_t features)
    : range_(range),
      shape_(quant::bit_tensor_shape(range.bits, vertices, features)),
      words_(shape_.num_words()) {
  std::fill(words_.begin(), words_.end(), 0u);
}

quant::BitTensorView<std::uint32_t> BitFeatures::view() { return shape_.over(words_.data()); }

quant::BitTensorView<const std::uint32_t> BitFeatures::codes() const {
  return shape_.over(words_.data());
}

/// Returns the sum of what the codes stand for, without their signs.
double BitFeatures::take_row(const float* x, float scale, std::int64_t row) {
  const auto to = view();
  double sum = 0;
  for (std::int64_t word = 0; word * 32 < to.depth; ++word) {
    std::uint32_t planes[quant::max_bits] = {};
    const std::int64_t end = std::min(to.depth, word * 32 + 32);
    for (std::int64_t k = word * 32; k < end; ++k) {
      const Coder coder(range_, range_.range_of(row, k));
      const std::uint32_t code = coder.code(x[k] * scale);
      sum += coder.size(code);
      for (int p = 0; p < to.bits; ++p) planes[p] |= (code >> p & 1u) << (k % 32);
    }
    for (int p = 0; p < to.bits; ++p) to.row(p, row)[word] = planes[p];
  }
  return sum;
}

void BitFeatures::take(MatrixView<const float> x, bool row_normalise) {
  if (row_normalise && row_scale_.empty()) row_scale_ = Buffer<float>(x.rows);
  parallel_for(x.rows, grain, [&](std::int64_t row) {
    const double sum = take_row(x.row(row), 1, row);
    if (row_normalise) row_scale_[row] = factor_of(sum);
  });
}

void BitFeatures::take(const Graph& sparse, bool row_normalise) {
  if (row_normalise && row_scale_.empty()) row_scale_ = Buffer<float>(sparse.num_rows());
  const auto to = view();
  const Coder coder(range_, 0);
  const std::uint32_t zero = coder.code(0);
  const auto& offsets = sparse.row_offsets();
  parallel_for(sparse.num_rows(), grain, [&](std::int64_t row) {
    for (int p = 0; p < to.bits; ++p) {
      for (std::int64_t word = 0; word * 32 < to.depth; ++word) {
        const std::int64_t left = to.depth - word * 32;
        const std::uint32_t inside = left >= 32 ? ~0u : (1u << left) - 1;
        to.row(p, row)[word] = (zero >> p & 1u) != 0 ? inside : 0u;
      }
    }
    double sum = 0;
    for (EdgeOffset e = offsets[row]; e < offsets[row + 1]; ++e) {
      const std::uint32_t code = coder.code(sparse.has_values() ? sparse.values()[e] : 1.0f);
      sum += coder.size(code);
      const std::int64_t k = sparse.col_indices()[e];
      for (int p = 0; p < to.bits; ++p) {
        std::uint32_t& word = to.row(p, row)[k / 32];
        word = (word & ~(1u << (k % 32))) | (code >> p & 1u) << (k % 32);
      }
    }
    if (row_normalise) row_scale_[row] = factor_of(sum);
  });
}

void BitFeatures::take_scaled(MatrixView<const float> x, std::span<const float> row_scale) {
  parallel_for(x.rows, grain, [&](std::int64_t row) {
    take_row(x.row(row), row_scale.empty() ? 1.0f : row_scale[static_cast<std::size_t>(row)], row);
  });
}

}  // namespace tessera::train
