// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/sums.cuh"
#include "cuda/team_row.cuh"

/// Sums over the rows of a matrix of logits, each row by a team of lanes. All lanes of a warp take
/// part in what goes over a team; teams whose row ends before it begins get a number without
/// meaning.
namespace tessera::ops {

static_assert(cuda::sum_threads == cuda::team_threads);

using cuda::TeamRow;

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

/// -log softmax(logits)[label], and its gradient times `share`.
template <class T, int width, bool aligned, int kept>
__device__ double row_cross_entropy(const TeamRow<T, width, aligned, kept>& row, std::int32_t label,
                                    float share, cuda::Rows<T> gradient,
                                    GradientSums<T, width, kept>& sums) {
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
#pragma unroll
    for (int i = 0; i < width; ++i) {
      if (i < place.count) sum += static_cast<double>(expf(values[i] - largest));
    }
  });
  sum = row.team().sum(sum);
  // One lane has the label's logit, the others 0.
  of_label = row.team().sum(of_label);
  if (gradient.data != nullptr) {
    const auto factor = static_cast<float>(1 / sum);
    for_gradients(row, gradient, sums,
                  [&](const Place& place, const float(&values)[width], float(&gradients)[width]) {
#pragma unroll
                    for (int i = 0; i < width; ++i) {
                      const float probability = expf(values[i] - largest) * factor;
                      gradients[i] = (probability - (place.col + i == label ? 1.0f : 0.0f)) * share;
                    }
                  });
  }
  return log(sum) + static_cast<double>(largest) - static_cast<double>(of_label);
}

/// The sum over the row of the binary cross-entropies, this lane's part of it, and their gradients.
template <class T, int width, bool aligned, int kept>
__device__ double row_binary(const TeamRow<T, width, aligned, kept>& row, float share,
                             cuda::Rows<const float> targets, cuda::Rows<T> gradient,
                             GradientSums<T, width, kept>& sums) {
  using Place = cuda::Elements<width, aligned>;
  double sum = 0;
  const auto look = [&](const Place& place, const float(&values)[width], float(&gradients)[width]) {
    float wanted[width];
    place.load(targets, wanted);
#pragma unroll
    for (int i = 0; i < width; ++i) {
      const float z = values[i];
      // Written with exp(-|z|), which cannot overflow.
      const float power = expf(-fabsf(z));
      const float positive = z < 0 ? 0.0f : z;
      if (i < place.count) sum += static_cast<double>(positive - z * wanted[i] + log1pf(power));
      const float sigmoid = (z < 0 ? power : 1.0f) / (1.0f + power);
      gradients[i] = (sigmoid - wanted[i]) * share;
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

/// Calls `visit(team, target)` for rows that are a grid apart, so that the number of sums does not
/// grow with them. `target(row)` is what is known of a row, of which nothing means that it has no
/// part: it is read a row ahead. All lanes of a warp leave together.
template <int width, bool aligned, class Target, class Visit>
__device__ void for_team_rows(std::int64_t rows, std::int64_t cols, int lanes, Target&& target,
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
  Known next = team.row < rows ? target(team.row) : Known{};
  for (; first < rows; first += step, team.row += step) {
    const Known known = next;
    next = team.row + step < rows ? target(team.row + step) : Known{};
    visit(team, known);
  }
}

/// Calls `run(width, aligned, kept, lanes)`, three of them as types, with what suits such rows. A
/// lane that keeps several single values needs fewer others to add with.
template <class T, class Run>
void with_row_shape(const cuda::Extent& extent, Run&& run) {
  constexpr int chunk = cuda::chunk<T>;
  constexpr int singles = 4;
  const auto choose = [&](auto width, auto aligned, auto kept) {
    constexpr int most = decltype(width)::value * decltype(kept)::value;
    if (extent.cols <= 32 * most) {
      run(width, aligned, kept, cuda::team_lanes((extent.cols + most - 1) / most));
    } else {
      run(width, aligned, std::integral_constant<int, 0>{}, 32);
    }
  };
  if (extent.aligned && extent.cols % chunk == 0) {
    choose(std::integral_constant<int, chunk>{}, std::true_type{},
           std::integral_constant<int, 1>{});
  } else {
    choose(std::integral_constant<int, 1>{}, std::false_type{},
           std::integral_constant<int, singles>{});
  }
}

}  // namespace tessera::ops
