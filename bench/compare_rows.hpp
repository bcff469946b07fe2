// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/ops/spmm.hpp"

#include "bench/gate.hpp"
#include "bench/placed.hpp"
#include "bench/sample.hpp"
#include "ops/spmm/reference.hpp"

/// How the results of products with a graph are checked.
namespace tessera::bench {

inline bool is_strict(const std::string& kernel) {
  const std::vector<ops::KernelInfo> kernels = ops::kernels("spmm");
  const auto named = std::find_if(kernels.begin(), kernels.end(),
                                  [&](const ops::KernelInfo& info) { return info.name == kernel; });
  return named == kernels.end() || named->strict;
}

/// What the sum of a row is multiplied by at the end.
inline double factor_of(const Graph& graph, ops::Reduction reduction, VertexId row) {
  const double scale = graph.has_row_scale() ? std::abs(graph.row_scale()[row]) : 1.0;
  const bool divided = reduction == ops::Reduction::mean && graph.degree(row) > 0;
  return divided ? scale / static_cast<double>(graph.degree(row)) : scale;
}

/// The largest error of the rows of a graph.
inline double largest_row_error(const Graph& graph, ops::Reduction reduction,
                                const ErrorMeasure& measure, MatrixView<const double> computed,
                                MatrixView<const double> expected,
                                MatrixView<const double> magnitude) {
  double worst = 0;
  for (VertexId i = 0; i < graph.num_rows(); ++i) {
    const double factor = factor_of(graph, reduction, i);
    for (std::int64_t j = 0; j < computed.cols; ++j) {
      const double partial = factor > 0 ? magnitude(i, j) / factor : magnitude(i, j);
      worst = std::max(worst,
                       measure.error_of(computed(i, j), expected(i, j), magnitude(i, j), partial));
    }
  }
  return worst;
}

/// Compares the sampled rows of a sum over `sample` with the reference.
template <class T>
Gate compare_rows(const RowSample& sample, ops::Reduction reduction, const Placed<T>& x,
                  Placed<T>& y, Precision precision, const std::string& kernel) {
  const Matrix<double> sources = x.input_rows(sample.cols);
  const Matrix<double> computed = y.result_rows(sample.rows);
  Matrix<double> expected(computed.rows(), computed.cols());
  Matrix<double> magnitude(computed.rows(), computed.cols());
  // Features have nothing to do with each other: each thread takes some.
  constexpr std::int64_t slice = 16;
  parallel_ranges(computed.cols(), slice, [&](std::int64_t begin, std::int64_t end) {
    const auto some = [&](auto view) {
      return decltype(view)(view.data + begin, view.rows, end - begin, view.stride);
    };
    ops::reference::spmm(sample.graph, reduction, some(sources.view()), {}, some(expected.view()));
    ops::reference::spmm_magnitude(sample.graph, reduction, some(sources.view()), {},
                                   some(magnitude.view()));
  });
  MeasureOf of{precision, is_strict(kernel), longest_row(sample.graph)};
  for (VertexId row = 0; row < sample.graph.num_rows(); ++row) {
    of.factor = std::max(of.factor, factor_of(sample.graph, reduction, row));
  }
  const ErrorMeasure measure(of);
  return {largest_row_error(sample.graph, reduction, measure, computed, expected, magnitude),
          measure.bound(), computed.rows(), y.rows()};
}

}  // namespace tessera::bench
