// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "cuda/sums.cuh"
#include "cuda/team_row.cuh"
#include "ops/loss/number_cost.hpp"
#include "ops/loss/targets.hpp"

/// Sums over the rows of a matrix of logits, each row by a team of lanes. All lanes of a warp take
/// part in what goes over a team; teams whose row ends before it begins get a number without
/// meaning.
namespace tessera::ops {

static_assert(cuda::sum_threads == cuda::team_threads);

using cuda::TeamRow;

/// Blocks on a multiprocessor: what a lane keeps of its rows and columns takes registers.
inline constexpr int row_blocks = 3;

/// A grid that fills a large GPU with them. It does not depend on the GPU, as sums must not.
inline dim3 row_grid(std::int64_t rows, int lanes) {
  const std::int64_t teams = cuda::sum_threads / lanes;
  return dim3(static_cast<unsigned>(std::clamp<std::int64_t>(
      (rows + teams - 1) / teams, 1, cuda::wanted_blocks / 4 * row_blocks)));
}

/// The sums of the gradient's columns that a lane has, over its rows; of what is stored.
template <class T, int width, int kept>
struct GradientSums {
  static constexpr int count = kept * width;  ///< none where rows are long
  double values[count > 0 ? count : 1] = {};

  __device__ void add(int chunk, const float (&gradients)[width]) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      values[chunk * width + i] += static_cast<double>(cuda::widen(cuda::narrow<T>(gradients[i])));
    }
  }
};

/// Calls `visit(place, values, gradients)`, which computes the gradients of a lane's chunks, stores
/// them, and adds them to the sums.
template <class T, int width, bool aligned, int kept, class Visit>
__device__ void for_gradients(const TeamRow<T, width, aligned, kept>& row, cuda::Rows<T> gradient,
                              GradientSums<T, width, kept>& sums, Visit&& visit) {
  using Place = cuda::Elements<width, aligned>;
  if constexpr (kept > 0) {
    row.each_numbered([&](int i, const Place& place, const float(&values)[width]) {
      float gradients[width];
      visit(place, values, gradients);
      place.store(gradients, gradient);
      sums.add(i, gradients);
    });
  } else {
    row.each([&](const Place& place, const float(&values)[width]) {
      float gradients[width];
      visit(place, values, gradients);
      place.store(gradients, gradient);
    });
  }
}

/// -log softmax(logits) as far as wanted, and its gradient times `share`. Chunks are added in
/// double, so that long rows keep their digits; what is done once for a row is done in fp32.
template <class T, int width, bool aligned, int kept>
__device__ float row_cross_entropy(const TeamRow<T, width, aligned, kept>& row, std::int32_t label,
                                   const WantedShares<float>& wanted, float share,
                                   cuda::Rows<T> gradient, GradientSums<T, width, kept>& sums) {
  using Place = cuda::Elements<width, aligned>;
  float largest = -INFINITY;
  float of_label = 0;
  row.each([&](const Place& place, const float(&values)[width]) {
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i >= place.count) break;
      largest = fmaxf(largest, values[i]);
      if (place.col + i == label) of_label = values[i];
    }
  });
  largest = row.team().largest(largest);
  double sum = 0;
  row.each([&](const Place& place, const float(&values)[width]) {
    float of_chunk = 0;
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i < place.count) of_chunk += expf(values[i] - largest);
    }
    sum += static_cast<double>(of_chunk);
  });
  const auto whole = static_cast<float>(row.team().sum(sum));
  // One lane has the label's logit, the others 0.
  of_label = row.team().sum(of_label);
  float missed = largest - of_label;
  if (wanted.of_other > 0) {
    double all = 0;
    row.each([&](const Place& place, const float(&values)[width]) {
#pragma unroll
      for (int i = 0; i < width; ++i) {
        if (i < place.count) all += static_cast<double>(largest - values[i]);
      }
    });
    const auto of_all = static_cast<float>(row.team().sum(all));
    missed = wanted.of_other * (of_all - missed) + wanted.of_label * missed;
  }
  if (gradient.data != nullptr) {
    const float factor = 1 / whole;
    for_gradients(row, gradient, sums,
                  [&](const Place& place, const float(&values)[width], float(&gradients)[width]) {
#pragma unroll
                    for (int i = 0; i < width; ++i) {
                      const float probability = expf(values[i] - largest) * factor;
                      const float of_column =
                          place.col + i == label ? wanted.of_label : wanted.of_other;
                      gradients[i] = (probability - of_column) * share;
                    }
                  });
  }
  return logf(whole) + missed;
}

/// The binary cross-entropy of an element.
struct BinaryElement {
  __device__ float operator()(float z, float wanted, float& slope) const {
    // Written with exp(-|z|), which cannot overflow.
    const float power = expf(-fabsf(z));
    const float positive = z < 0 ? 0.0f : z;
    const float sigmoid = (z < 0 ? power : 1.0f) / (1.0f + power);
    slope = sigmoid - wanted;
    return positive - z * wanted + log1pf(power);
  }
};

/// What an element costs beside a wanted number, or nothing where none is known.
struct NumberElement {
  NumberCost<float> cost;

  __device__ float operator()(float value, float wanted, float& slope) const {
    slope = 0;
    return isnan(wanted) ? 0.0f : cost(value - wanted, slope);
  }
};

/// The sum over the row of what its elements cost, this lane's part of it, and their gradients.
template <class T, int width, bool aligned, int kept, class Element>
__device__ double row_elements(const TeamRow<T, width, aligned, kept>& row, float share,
                               cuda::Rows<const float> targets, cuda::Rows<T> gradient,
                               GradientSums<T, width, kept>& sums, const Element& element) {
  using Place = cuda::Elements<width, aligned>;
  double sum = 0;
  const auto look = [&](const Place& place, const float(&values)[width], float(&gradients)[width]) {
    float wanted[width];
    place.load(targets, wanted);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      float slope = 0;
      const float cost = element(values[i], wanted[i], slope);
      if (i < place.count) sum += static_cast<double>(cost);
      gradients[i] = slope * share;
    }
  };
  if (gradient.data != nullptr) {
    for_gradients(row, gradient, sums, look);
  } else {
    row.each([&](const Place& place, const float(&values)[width]) {
      float gradients[width];
      look(place, values, gradients);
    });
  }
  return sum;
}

/// Calls `visit(row, target)` for rows that are a grid apart, so that the number of sums does not
/// grow with them. `target(row)` is what is known of a row, of which nothing means that it has no
/// part: it is read two rows ahead, and the row itself, where it `counts(target)`, one ahead. Rows
/// that do not count end before they begin. All lanes of a warp leave together.
template <class T, int width, bool aligned, int kept, class Target, class Counts, class Visit>
__device__ void for_team_rows(std::int64_t rows, std::int64_t cols, int lanes,
                              cuda::Rows<const T> logits, Target&& target, Counts&& counts,
                              Visit&& visit) {
  const int teams = cuda::sum_threads / lanes;
  const std::int64_t step = std::int64_t{gridDim.x} * teams;
  cuda::RowTeam<width, aligned> team;
  team.lanes = lanes;
  team.lane = static_cast<int>(threadIdx.x) % lanes;
  team.cols = cols;
  std::int64_t first = std::int64_t{blockIdx.x} * teams;
  team.row = first + static_cast<int>(threadIdx.x) / lanes;
  using Known = decltype(target(team.row));
  const auto known_of = [&](std::int64_t row) { return row < rows ? target(row) : Known{}; };
  const auto row_of = [&](const Known& known) {
    team.end = counts(known) ? cols : 0;
    return TeamRow<T, width, aligned, kept>(team, logits);
  };
  Known known = known_of(team.row);
  Known next = known_of(team.row + step);
  auto row = row_of(known);
  for (; first < rows; first += step) {
    team.row += step;
    const Known after = known_of(team.row + step);
    const auto row_after = row_of(next);
    visit(row, known);
    row = row_after;
    known = next;
    next = after;
  }
}

/// Calls `run(width, aligned, kept, lanes)`, three of them as types, with what suits such rows: as
/// few lanes as can keep a row among them, for what is done once for a row each of them does.
template <class T, class Run>
void with_row_shape(const cuda::Extent& extent, Run&& run) {
  constexpr int chunk = cuda::chunk<T>;
  constexpr int singles = 4;
  constexpr int most_chunks = 8 / chunk;
  const auto with_chunks = [&](auto self, auto kept, std::int64_t chunks, int lanes) {
    constexpr int count = decltype(kept)::value;
    if constexpr (count < most_chunks) {
      if (chunks > std::int64_t{count} * lanes) {
        return self(self, std::integral_constant<int, count + 1>{}, chunks, lanes);
      }
    }
    run(std::integral_constant<int, chunk>{}, std::true_type{}, kept, lanes);
  };
  constexpr std::integral_constant<int, 0> none;
  // What follows the last chunk of a row, up to a boundary, is read with it.
  if (extent.in_chunks(chunk, true) && (extent.rows > 1 || extent.cols % chunk == 0)) {
    const std::int64_t chunks = (extent.cols + chunk - 1) / chunk;
    const int lanes = cuda::team_lanes((chunks + most_chunks - 1) / most_chunks);
    if (chunks > std::int64_t{most_chunks} * lanes) {
      run(std::integral_constant<int, chunk>{}, std::true_type{}, none, lanes);
    } else {
      with_chunks(with_chunks, std::integral_constant<int, 1>{}, chunks, lanes);
    }
  } else if (extent.cols <= 32 * singles) {
    run(std::integral_constant<int, 1>{}, std::false_type{}, std::integral_constant<int, singles>{},
        cuda::team_lanes((extent.cols + singles - 1) / singles));
  } else {
    run(std::integral_constant<int, 1>{}, std::false_type{}, none, 32);
  }
}

}  // namespace tessera::ops
