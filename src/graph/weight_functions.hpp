// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "tessera/graph/coo.hpp"

/// What edges weigh: the one place where a weight function is written down. Gather-apply-scatter
/// calls it for every edge as it goes, gather-apply-reduce when it makes rows of the edges, and
/// gradients through edge weights take its derivative; on the CPU and on a GPU, in fp32 and fp64.
///
/// A function gives the weight of an edge of its value and the numbers of its target and source,
/// and what that weight changes by with the value. To add one: a struct here, a case in
/// `visit_weight`, and a name in `WeightFunction`.
namespace tessera {

struct ProductWeight {
  template <class S>
  constexpr S operator()(S value, S row_number, S col_number) const {
    return value * row_number * col_number;
  }
  template <class S>
  constexpr S by_value(S, S row_number, S col_number) const {
    return row_number * col_number;
  }
};

struct GaussianWeight {
  template <class S>
  constexpr S operator()(S value, S row_number, S col_number) const {
    return value * by_value(value, row_number, col_number);
  }
  template <class S>
  constexpr S by_value(S, S row_number, S col_number) const {
    using std::exp;
    const S distance = row_number - col_number;
    return exp(-distance * distance);
  }
};

/// Calls `visit` with the function of this name.
template <class Visit>
decltype(auto) visit_weight(WeightFunction function, Visit&& visit) {
  if (function == WeightFunction::gaussian) return visit(GaussianWeight{});
  return visit(ProductWeight{});
}

}  // namespace tessera
