// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/check.hpp"
#include "ops/cpu_dense_ops.hpp"
#include "ops/rounding/formula.hpp"
#include "ops/row_ranges.hpp"
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

template <class T>
Reach<T> reach_of(MatrixView<const T> x, std::int64_t begin, std::int64_t end) {
  Reach<T> reach;
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t j = 0; j < x.cols; ++j) reach.take(x(i, j));
  }
  return reach;
}

template <class T>
void round_rows(MatrixView<const T> x, MatrixView<T> y, std::int64_t begin, std::int64_t end,
                const CodeSteps<T>& steps) {
  for (std::int64_t i = begin; i < end; ++i) {
    for (std::int64_t j = 0; j < x.cols; ++j) y(i, j) = steps(x(i, j));
  }
}

template <class T>
void round_columns(MatrixView<const T> x, MatrixView<T> y, int bits) {
  using Reaches = std::vector<Reach<T>>;
  const Reaches none(static_cast<std::size_t>(x.cols));
  const Reaches reaches = parallel_reduce(
      x.rows, 1024, none,
      [&](std::int64_t begin, std::int64_t end) {
        Reaches found = none;
        for (std::int64_t i = begin; i < end; ++i) {
          for (std::int64_t j = 0; j < x.cols; ++j) {
            found[static_cast<std::size_t>(j)].take(x(i, j));
          }
        }
        return found;
      },
      [](Reaches a, const Reaches& b) {
        for (std::size_t j = 0; j < a.size(); ++j) {
          a[j] = {std::max(a[j].above, b[j].above), std::max(a[j].below, b[j].below)};
        }
        return a;
      });
  std::vector<CodeSteps<T>> steps;
  for (const Reach<T>& reach : reaches) steps.emplace_back(reach.above, reach.below, bits);
  for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t j = 0; j < x.cols; ++j) {
        y(i, j) = steps[static_cast<std::size_t>(j)](x(i, j));
      }
    }
  });
}

}  // namespace

void CpuDenseOps::round_to_codes(const RoundingCall& call, Stream) const {
  visit_floating(call.x.type, [&](auto element) {
    using T = decltype(element);
    const auto x = call.x.as<T>();
    const auto y = call.y.as<T>();
    if (call.range == RoundingRange::rows) {
      for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const Reach<T> reach = reach_of<T>(x, i, i + 1);
          round_rows<T>(x, y, i, i + 1, {reach.above, reach.below, call.bits});
        }
      });
      return;
    }
    if (call.range == RoundingRange::columns) return round_columns<T>(x, y, call.bits);
    const Reach<T> reach = parallel_reduce(
        x.rows, 256, Reach<T>(),
        [&](std::int64_t begin, std::int64_t end) { return reach_of<T>(x, begin, end); },
        [](const Reach<T>& a, const Reach<T>& b) {
          return Reach<T>{std::max(a.above, b.above), std::max(a.below, b.below)};
        });
    const CodeSteps<T> steps(reach.above, reach.below, call.bits);
    for_row_ranges(x.rows, x.cols, [&](std::int64_t begin, std::int64_t end) {
      round_rows<T>(x, y, begin, end, steps);
    });
  });
}

}  // namespace tessera::ops
