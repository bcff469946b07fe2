// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>

#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

template <class From, class To>
void copy_rows(MatrixView<const From> x, MatrixView<To> y) {
  for_each_row(x.rows, x.cols, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < x.cols; ++j) {
      // There is no direct way from fp64 to bf16, nor back.
      y(i, j) = To(static_cast<Wide<To>>(static_cast<Wide<From>>(x(i, j))));
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
  for_each_row(x.rows, x.cols, [&](std::int64_t i) {
    const T* const from = x.row(i);
    T* const to = y.row(i);
    if (beta == 0) {
      for (std::int64_t j = 0; j < x.cols; ++j) to[j] = T(alpha * from[j]);
    } else {
      for (std::int64_t j = 0; j < x.cols; ++j) to[j] = T(alpha * from[j] + beta * to[j]);
    }
  });
}

}  // namespace

void run_on_cpu(const FillCall& call) {
  visit_stored(call.y.type, [&]<class T>() {
    const MatrixView<T> y = call.y.as<T>();
    for_each_row(y.rows, y.cols,
                 [&](std::int64_t i) { std::fill_n(y.row(i), y.cols, rounded_to<T>(call.value)); });
  });
}

void run_on_cpu(const CopyCall& call) {
  visit_stored(call.x.type, [&]<class From>() {
    visit_stored(call.y.type, [&]<class To>() { copy_rows(call.x.as<From>(), call.y.as<To>()); });
  });
}

void run_on_cpu(const TransposeCall& call) {
  visit_stored(call.x.type, [&]<class T>() { transpose_tiles(call.x.as<T>(), call.y.as<T>()); });
}

void run_on_cpu(const AddScaledCall& call) {
  visit_stored(call.x.type, [&]<class T>() {
    double factor = call.offset;
    if (!call.learned.absent()) factor += static_cast<double>(call.learned.as<T>()(0, 0));
    add_scaled_rows(static_cast<Wide<T>>(factor), call.x.as<T>(), static_cast<Wide<T>>(call.beta),
                    call.y.as<T>());
  });
}

void run_on_cpu(const ScaleRowsCall& call) {
  const MatrixView<const float> factors = call.scale.as<float>();
  visit_stored(call.x.type, [&]<class From>() {
    visit_stored(call.y.type, [&]<class To>() {
      const MatrixView<const From> from = call.x.as<From>();
      const MatrixView<To> to = call.y.as<To>();
      for_each_row(from.rows, from.cols, [&](std::int64_t i) {
        const float factor = factors(i, 0);
        for (std::int64_t j = 0; j < from.cols; ++j) {
          to(i, j) = To(factor * static_cast<float>(from(i, j)));
        }
      });
    });
  });
}

void run_on_cpu(const DotCall& call) {
  visit_stored(call.x.type, [&]<class T>() {
    const MatrixView<const T> a = call.x.as<T>();
    const MatrixView<const T> b = call.y.as<T>();
    const auto sum = sum_each_row(a.rows, 1, [&](std::int64_t i, double* sums) {
      for (std::int64_t j = 0; j < a.cols; ++j) {
        *sums += static_cast<double>(a(i, j)) * static_cast<double>(b(i, j));
      }
    });
    call.result.as<T>()(0, 0) = rounded_to<T>(sum[0]);
  });
}

}  // namespace tessera::ops
