// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/precision.cuh"
#include "cuda/row_teams.cuh"
#include "ops/cuda/operands.cuh"
#include "ops/pairs/kernels.hpp"

namespace tessera::ops::on_gpu {
namespace {

/// The rows of a pair, as a team that has it reads them.
template <class T>
struct PairReading {
  cuda::Rows<const T> sources, targets;
  const std::int32_t* ids;
  std::int64_t ids_stride;

  explicit PairReading(const PairScoring& scoring)
      : sources(rows_of<T>(scoring.sources)),
        targets(rows_of<T>(scoring.targets)),
        ids(static_cast<const std::int32_t*>(scoring.pairs.data)),
        ids_stride(scoring.pairs.stride) {}

  /// Calls `visit(place, source, target)` with what each chunk of a row holds.
  template <int width, bool aligned, class Visit>
  __device__ void each(const cuda::RowTeam<width, aligned>& team, Visit&& visit) const {
    const std::int64_t source_row = ids[team.row], target_row = ids[ids_stride + team.row];
    team.each([&](const cuda::Elements<width, aligned>& place) {
      float source[width], target[width];
      cuda::Elements<width, aligned> there = place;
      there.row = source_row;
      there.load(sources, source);
      there.row = target_row;
      there.load(targets, target);
      visit(place, source, target);
    });
  }
};

template <class T>
struct Dot {
  PairReading<T> reading;
  cuda::Rows<T> y;
  std::int64_t head_width;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool has_row) const {
    float sum = 0;
    if (has_row) {
      reading.each(team, [&](const cuda::Elements<width, aligned>& place,
                             const float(&source)[width], const float(&target)[width]) {
#pragma unroll
        for (int i = 0; i < width; ++i) {
          if (aligned || i < place.count) sum += source[i] * target[i];
        }
      });
    }
    sum = team.sum(sum);
    if (!has_row || team.lane != 0) return;
    y.data[team.row * y.stride + team.begin / head_width] = cuda::narrow<T>(sum);
  }
};

template <class T>
struct Sum {
  PairReading<T> reading;
  cuda::Rows<T> y;

  template <int width, bool aligned>
  __device__ void operator()(const cuda::RowTeam<width, aligned>& team, bool has_row) const {
    if (!has_row) return;
    reading.each(team, [&](const cuda::Elements<width, aligned>& place, const float(&source)[width],
                           const float(&target)[width]) {
      float sum[width];
#pragma unroll
      for (int i = 0; i < width; ++i) sum[i] = source[i] + target[i];
      place.store(sum, y);
    });
  }
};

/// Of so many pairs, whose rows may lie on boundaries.
template <class T>
cuda::Extent extent_of(const PairReading<T>& reading, std::int64_t pairs, std::int64_t cols) {
  // Rows anywhere are read: one behind another even of a single pair.
  return cuda::Extent{std::max<std::int64_t>(pairs, 2), cols}
      .with(reading.sources)
      .with(reading.targets);
}

}  // namespace

void pair_dot(const PairScoring& scoring, Device device, Stream stream) {
  const cuda_backend::CurrentDevice current(device.index);
  cuda::visit_type(scoring.y.type, [&]<class T>(T) {
    const PairReading<T> reading(scoring);
    const std::int64_t cols = scoring.sources.cols, heads = scoring.y.cols;
    cuda::Extent extent = extent_of(reading, scoring.y.rows, cols);
    extent.rows = scoring.y.rows;
    cuda::for_rows<cuda::chunk<T>>(extent, heads,
                                   Dot<T>{reading, rows_of<T>(scoring.y), cols / heads}, stream);
  });
}

void pair_sum(const PairScoring& scoring, Device device, Stream stream) {
  const cuda_backend::CurrentDevice current(device.index);
  cuda::visit_type(scoring.y.type, [&]<class T>(T) {
    const PairReading<T> reading(scoring);
    const auto y = rows_of<T>(scoring.y);
    cuda::Extent extent = extent_of(reading, scoring.y.rows, scoring.y.cols).with(y);
    extent.rows = scoring.y.rows;
    cuda::for_rows<cuda::chunk<T>>(extent, 1, Sum<T>{reading, y}, stream);
  });
}

}  // namespace tessera::ops::on_gpu
