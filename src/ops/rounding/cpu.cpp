// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

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
