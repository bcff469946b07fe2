// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/row_ranges.hpp"
#include "ops/wide_rows.hpp"

namespace tessera::ops {
namespace {

template <class From, class To>
void copy_rows(MatrixView<const From> x, MatrixView<To> y) {
  for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < x.cols; ++j) {
        // There is no direct way from fp64 to bf16, nor back.
        y(i, j) = To(static_cast<Wide<To>>(static_cast<Wide<From>>(x(i, j))));
      }
    }
  });
}

/// Square tiles, so that both matrices are read and written by whole cache lines.
template <class T>
void transpose_tiles(MatrixView<const T> x, MatrixView<T> y) {
  constexpr std::int64_t tile = 16;
  const std::int64_t tile_rows = (x.rows + tile - 1) / tile;
  for_row_ranges(tile_rows, tile * x.cols, [&](std::int64_t begin, std::int64_t end) {
    const std::int64_t last_row = std::min(end * tile, x.rows);
    for (std::int64_t top = begin * tile; top < last_row; top += tile) {
      const std::int64_t bottom = std::min(top + tile, last_row);
      for (std::int64_t left = 0; left < x.cols; left += tile) {
        const std::int64_t right = std::min(left + tile, x.cols);
        for (std::int64_t j = left; j < right; ++j) {
          for (std::int64_t i = top; i < bottom; ++i) y(j, i) = x(i, j);
        }
      }
    }
  });
}

template <class T>
void add_scaled_rows(Wide<T> alpha, MatrixView<const T> x, Wide<T> beta, MatrixView<T> y) {
  for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const from = x.row(i);
      T* const to = y.row(i);
      if (beta == 0) {
        for (std::int64_t j = 0; j < x.cols; ++j) to[j] = T(alpha * from[j]);
      } else {
        for (std::int64_t j = 0; j < x.cols; ++j) to[j] = T(alpha * from[j] + beta * to[j]);
      }
    }
  });
}

}  // namespace

void CpuDenseOps::fill(Operand y, double value, Stream) const {
  visit_floating(y.type, [&](auto element) {
    using T = decltype(element);
    const MatrixView<T> view = y.as<T>();
    for_row_ranges(y.rows, y.cols, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::fill_n(view.row(i), view.cols, rounded_to<T>(value));
      }
    });
  });
}

void CpuDenseOps::copy(ConstOperand x, Operand y, Stream) const {
  visit_stored(x.type, [&]<class From>() {
    visit_stored(y.type, [&]<class To>() { copy_rows(x.as<From>(), y.as<To>()); });
  });
}

void CpuDenseOps::upload(ConstOperand x, Operand y, Stream stream) const { copy(x, y, stream); }

void CpuDenseOps::download(ConstOperand x, Operand y, Stream stream) const { copy(x, y, stream); }

void CpuDenseOps::transpose(ConstOperand x, Operand y, Stream) const {
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    transpose_tiles(x.as<T>(), y.as<T>());
  });
}

void CpuDenseOps::add_scaled(const ScaleFactor& alpha, ConstOperand x, double beta, Operand y,
                             Stream) const {
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    double factor = alpha.offset;
    if (!alpha.learned.absent()) factor += static_cast<double>(alpha.learned.as<T>()(0, 0));
    add_scaled_rows(static_cast<Wide<T>>(factor), x.as<T>(), static_cast<Wide<T>>(beta), y.as<T>());
  });
}

void CpuDenseOps::scale_rows(ConstOperand x, ConstOperand scale, Operand y, Stream) const {
  const MatrixView<const float> factors = scale.as<float>();
  visit_stored(x.type, [&]<class From>() {
    visit_stored(y.type, [&]<class To>() {
      const MatrixView<const From> from = x.as<From>();
      const MatrixView<To> to = y.as<To>();
      for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const float factor = factors(i, 0);
          for (std::int64_t j = 0; j < x.cols; ++j) {
            to(i, j) = To(factor * static_cast<float>(from(i, j)));
          }
        }
      });
    });
  });
}

void CpuDenseOps::dot(ConstOperand x, ConstOperand y, Operand result, Stream,
                      const DenseWorkspace*) const {
  visit_floating(x.type, [&](auto element) {
    using T = decltype(element);
    const MatrixView<const T> a = x.as<T>();
    const MatrixView<const T> b = y.as<T>();
    const auto add_rows = [&](std::int64_t begin, std::int64_t end, double* sum) {
      for (std::int64_t i = begin; i < end; ++i) {
        for (std::int64_t j = 0; j < a.cols; ++j) {
          *sum += static_cast<double>(a(i, j)) * static_cast<double>(b(i, j));
        }
      }
    };
    result.as<T>()(0, 0) = rounded_to<T>(sum_over_rows(a.rows, 1, add_rows)[0]);
  });
}

}  // namespace tessera::ops
