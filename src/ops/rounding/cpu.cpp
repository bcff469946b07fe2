// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/dense/cpu_dense_ops.hpp"
#include "ops/dense/row_ranges.hpp"
#include "ops/plan/check.hpp"
#include "ops/rounding/formula.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

template <class T>
struct Reach {
  T above = 0;
  T below = 0;

  void take(T value) {
    above = std::max(above, value);
    below = std::max(below, -value);
  }
};

/// X with the factors of its rows, which become codes together.
template <class T>
struct Scaled {
  MatrixView<const T> x;
  MatrixView<const float> scale;  ///< absent: 1

  T factor(std::int64_t row) const {
    return scale.data == nullptr ? T{1} : static_cast<T>(scale(row, 0));
  }
};

template <class T>
Reach<T> reach_of(const Scaled<T>& from, std::int64_t begin, std::int64_t end) {
  Reach<T> reach;
  for (std::int64_t i = begin; i < end; ++i) {
    const T factor = from.factor(i);
    for (std::int64_t j = 0; j < from.x.cols; ++j) reach.take(from.x(i, j) * factor);
  }
  return reach;
}

template <class T>
Reach<T> both(const Reach<T>& a, const Reach<T>& b) {
  return {std::max(a.above, b.above), std::max(a.below, b.below)};
}

/// One for all, or one for each column.
template <class T>
using Reaches = std::vector<Reach<T>>;

template <class T>
Reaches<T> reaches_of_columns(const Scaled<T>& from) {
  const Reaches<T> none(static_cast<std::size_t>(from.x.cols));
  return parallel_reduce(
      from.x.rows, 1024, none,
      [&](std::int64_t begin, std::int64_t end) {
        Reaches<T> found = none;
        for (std::int64_t i = begin; i < end; ++i) {
          const T factor = from.factor(i);
          for (std::int64_t j = 0; j < from.x.cols; ++j) {
            found[static_cast<std::size_t>(j)].take(from.x(i, j) * factor);
          }
        }
        return found;
      },
      [](Reaches<T> a, const Reaches<T>& b) {
        for (std::size_t j = 0; j < a.size(); ++j) a[j] = both(a[j], b[j]);
        return a;
      });
}

/// Ranges of columns as far as `ColumnLimit` lets them reach.
template <class T>
void limit_columns(const Scaled<T>& from, int bits, Reaches<T>& reaches) {
  const auto farthest = [&](std::size_t j) { return std::max(reaches[j].above, reaches[j].below); };
  std::vector<ColumnLimit> limits(reaches.size());
  for (std::int64_t i = 0; i < ColumnLimit::num_rows(from.x.rows); ++i) {
    const std::int64_t row = ColumnLimit::row(i, from.x.rows);
    const T factor = from.factor(row);
    for (std::size_t j = 0; j < limits.size(); ++j) {
      limits[j].take(from.x(row, static_cast<std::int64_t>(j)) * factor, farthest(j));
    }
  }
  for (std::size_t j = 0; j < limits.size(); ++j) {
    const T most = limits[j](farthest(j), bits);
    reaches[j] = {std::min(reaches[j].above, most), std::min(reaches[j].below, most)};
  }
}

template <class T>
void keep(const Reach<T>& reach, float* range) {
  range[0] = static_cast<float>(reach.above);
  range[1] = static_cast<float>(reach.below);
}

template <class T>
Reach<T> given(const float* range) {
  return {static_cast<T>(range[0]), static_cast<T>(range[1])};
}

template <class T>
Reaches<T> find_reaches(const Scaled<T>& from, bool by_columns) {
  if (by_columns) return reaches_of_columns(from);
  return {parallel_reduce(
      from.x.rows, 256, Reach<T>(),
      [&](std::int64_t begin, std::int64_t end) { return reach_of(from, begin, end); }, both<T>)};
}

/// Found and kept, or given.
template <class T>
Reaches<T> reaches_for(const RoundingCall& call, const Scaled<T>& from, bool by_columns) {
  Reaches<T> reaches;
  if (call.found_ranges == nullptr) {
    const std::int64_t count = by_columns ? from.x.cols : 1;
    for (std::int64_t i = 0; i < count; ++i) reaches.push_back(given<T>(call.ranges + i * 2));
    return reaches;
  }
  reaches = find_reaches(from, by_columns);
  if (by_columns && ColumnLimit::applies(call.bits)) limit_columns(from, call.bits, reaches);
  for (std::size_t i = 0; i < reaches.size(); ++i) keep(reaches[i], call.found_ranges + i * 2);
  return reaches;
}

template <class T>
void round(const RoundingCall& call) {
  const auto y = call.y.as<T>();
  Scaled<T> from{call.x.as<T>(), {}};
  if (call.row_scale.data != nullptr) from.scale = call.row_scale.as<float>();
  const auto& x = from.x;
  const auto round_row = [&](std::int64_t i, auto&& steps_of_column) {
    const T factor = from.factor(i);
    for (std::int64_t j = 0; j < x.cols; ++j) y(i, j) = steps_of_column(j)(x(i, j), factor);
  };
  if (call.range == RoundingRange::rows) {
    return for_each_row(x.rows, x.cols, [&](std::int64_t i) {
      const bool finds = call.found_ranges != nullptr;
      const Reach<T> reach = finds ? reach_of(from, i, i + 1) : given<T>(call.ranges + i * 2);
      if (finds) keep(reach, call.found_ranges + i * 2);
      const CodeSteps<T> steps(reach.above, reach.below, call.bits);
      round_row(i, [&](std::int64_t) -> const CodeSteps<T>& { return steps; });
    });
  }
  const bool by_columns = call.range == RoundingRange::columns;
  std::vector<CodeSteps<T>> steps;
  for (const Reach<T>& reach : reaches_for(call, from, by_columns)) {
    steps.emplace_back(reach.above, reach.below, call.bits);
  }
  for_each_row(x.rows, x.cols, [&](std::int64_t i) {
    round_row(i, [&](std::int64_t j) -> const CodeSteps<T>& {
      return steps[by_columns ? static_cast<std::size_t>(j) : 0];
    });
  });
}

}  // namespace

void run_on_cpu(const RoundingCall& call) {
  // Not bf16 (run.cpp).
  call.x.type == ElementType::fp64 ? round<double>(call) : round<float>(call);
}

}  // namespace tessera::ops
