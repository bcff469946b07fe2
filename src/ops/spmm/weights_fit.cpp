// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/weights_fit.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>

#include "core/number_limits.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

constexpr std::int64_t grain = 1 << 16;

double largest_of(const SharedArray<float>& factors) {
  return factors.empty() ? 1 : static_cast<double>(sizes_of(factors.span()).largest);
}

double factor_of(const SharedArray<float>& factors, std::int64_t i) {
  const double size = factors.empty() ? 1 : std::abs(static_cast<double>(factors[i]));
  return std::isfinite(size) ? size : 0;
}

/// The largest weight of all edges, each the product of its factors.
double largest_weight(const Graph& graph) {
  const SharedArray<VertexId>& columns = graph.col_indices();
  return parallel_reduce(
      graph.num_rows(), even_grain(graph.num_rows()), 0.0,
      [&](std::int64_t begin, std::int64_t end) {
        double largest = 0;
        for (std::int64_t row = begin; row < end; ++row) {
          const double scale = factor_of(graph.row_scale(), row);
          for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
            largest = std::max(largest, scale * factor_of(graph.values(), e) *
                                            factor_of(graph.col_scale(), columns[e]));
          }
        }
        return largest;
      },
      [](double a, double b) { return std::max(a, b); });
}

}  // namespace

SizeRange sizes_of(std::span<const float> numbers) {
  // The bits of positive numbers are in the order of the numbers; what is left out is made neutral.
  struct Bits {
    std::uint32_t smallest = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t largest = 0;
    std::uint32_t largest_of_all = 0;
  };
  constexpr std::uint32_t infinity = 0x7f800000u;
  const auto map = [&](std::int64_t begin, std::int64_t end) {
    Bits range;
    for (std::int64_t i = begin; i < end; ++i) {
      const auto size =
          std::bit_cast<std::uint32_t>(numbers[static_cast<std::size_t>(i)]) & 0x7fffffffu;
      const std::uint32_t counted = size < infinity ? size : 0;
      range.largest_of_all = std::max(range.largest_of_all, size);
      range.largest = std::max(range.largest, counted);
      range.smallest = std::min(range.smallest, counted - 1);
    }
    return range;
  };
  const Bits range = parallel_reduce(
      static_cast<std::int64_t>(numbers.size()), grain, Bits{}, map, [](Bits a, Bits b) {
        return Bits{std::min(a.smallest, b.smallest), std::max(a.largest, b.largest),
                    std::max(a.largest_of_all, b.largest_of_all)};
      });
  SizeRange sizes;
  sizes.all_finite = range.largest_of_all < infinity;
  if (range.largest == 0) return sizes;
  sizes.smallest = std::bit_cast<float>(range.smallest + 1);
  sizes.largest = std::bit_cast<float>(range.largest);
  return sizes;
}

void check_weights_fit(const SpmmProblem& problem) {
  const Graph& graph = problem.graph;
  if (problem.edge_values_expected || !graph.is_weighted()) return;
  const double limit = limits_of(problem.precision).largest;
  const double at_most =
      largest_of(graph.row_scale()) * largest_of(graph.values()) * largest_of(graph.col_scale());
  if (at_most <= limit) return;
  const double largest = largest_weight(graph);
  if (largest <= limit) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("{} ends at {:.6g}, and the largest weight of the graph is {:.6g}",
                          to_string(problem.precision), limit, largest),
              "precision", "use bf16 or fp32, or divide the weights by a constant");
}

}  // namespace tessera::ops
