// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/spmm/cuda/reduce.cuh"

namespace tessera::ops {

/// A team gathers one vector of features over some edges of a row, and reduces it in registers.
template <RowsPolicy policy, class T, bool aligned, class Reduction>
class TeamGather {
 public:
  using FeatureVector = cuda::Vector<T, aligned ? 16 : static_cast<int>(sizeof(T))>;
  using Element = typename Reduction::Element;
  static constexpr int width = FeatureVector::count;

  /// `first_vector` is the position of the team's first vector in a row of X. Lanes beyond the last
  /// feature load the first one instead and write nothing: no load in the loop has a condition.
  __device__ TeamGather(const RowsLaunch& launch, VertexId row, int first_vector)
      : launch_(launch),
        lane_(static_cast<int>(threadIdx.x) % policy.team()),
        at_{row, (first_vector + lane_ % policy.lanes) * width},
        active_(at_.feature < launch.features),
        row_bytes_(static_cast<std::uint32_t>(launch.x_stride * sizeof(T))) {
    if (!active_) at_.feature = 0;
    features_ = static_cast<const char*>(launch.x) + std::int64_t{at_.feature} * sizeof(T);
#pragma unroll
    for (Element& element : elements_) element = Reduction::none();
  }

  /// A row has fewer than 2^31 edges: 32 bits count them. The ids of the next step are on their way
  /// while the features of this one are.
  __device__ void gather(EdgeOffset begin, EdgeOffset end) {
    const int count = end > begin ? static_cast<int>(end - begin) : 0;
    if constexpr (policy.shared_ids) {
      gather_passing_ids(begin, count);
    } else {
      gather_own_ids(begin, count);
    }
  }

  /// Afterwards the first group's lanes hold the results of the team.
  __device__ void combine_groups() {
    const int shift = static_cast<int>(threadIdx.x) % 32 / policy.team() * policy.team();
    const unsigned team_mask =
        policy.team() == 32 ? ~0u : ((1u << (policy.team() % 32)) - 1) << shift;
#pragma unroll
    for (int distance = policy.lanes; distance < policy.team(); distance *= 2) {
#pragma unroll
      for (Element& element : elements_) {
        Reduction::merge(element, Reduction::from_lane(team_mask, element, distance));
      }
    }
  }

  /// True for the lanes that have something to write after `combine_groups`.
  __device__ bool writes() const { return active_ && lane_ < policy.lanes; }
  __device__ const ReducedRow& at() const { return at_; }
  __device__ const Element (&elements() const)[width] { return elements_; }

 private:
  /// The columns of one step's edges that fall to this lane.
  struct Columns {
    VertexId ids[policy.unroll];
  };

  __device__ int group() const { return lane_ / policy.lanes; }

  /// All but the last step are whole, so that all their loads are in flight together.
  __device__ void gather_own_ids(EdgeOffset begin, int left) {
    const VertexId* indices = launch_.indices + begin + group();
    Columns next = loaded(indices, left);
#pragma unroll 1
    while (left >= policy.step()) {
      const Columns columns = next;
      indices += policy.step();
      left -= policy.step();
      next = loaded(indices, left);
      add<true>(begin, policy.step(), columns);
      begin += policy.step();
    }
    if (left > 0) add<false>(begin, left, next);
  }

  /// The warp loads 32 ids at once, and every lane gets those of its edges from the others.
  __device__ void gather_passing_ids(EdgeOffset begin, int left) {
    const VertexId* indices = launch_.indices + begin + lane_;
    VertexId next = lane_ < left ? __ldg(indices) : 0;
    for (; left >= 32; left -= 32, begin += 32) {
      const VertexId mine = next;
      indices += 32;
      if (lane_ + 32 < left) next = __ldg(indices);
#pragma unroll
      for (int offset = 0; offset < 32; offset += policy.step()) {
        add<true>(begin + offset, left, passed_round(mine, offset));
      }
    }
    for (int offset = 0; offset < left; offset += policy.step()) {
      add<false>(begin + offset, left - offset, passed_round(next, offset));
    }
  }

  __device__ Columns loaded(const VertexId* indices, int left) const {
    Columns columns;
    if (left >= policy.step()) {
#pragma unroll
      for (int u = 0; u < policy.unroll; ++u) columns.ids[u] = __ldg(indices + u * policy.edges);
    } else {
#pragma unroll
      for (int u = 0; u < policy.unroll; ++u) {
        const bool live = u * policy.edges + group() < left;
        columns.ids[u] = live ? __ldg(indices + u * policy.edges) : 0;
      }
    }
    return columns;
  }

  __device__ Columns passed_round(VertexId mine, int offset) const {
    Columns columns;
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      columns.ids[u] = __shfl_sync(~0u, mine, offset + u * policy.edges + group());
    }
    return columns;
  }

  /// Adds the edges of one step from `begin` on; unless `whole`, only `left` of them exist.
  template <bool whole>
  __device__ void add(EdgeOffset begin, int left, const Columns& columns) {
    FeatureVector rows[policy.unroll];
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      const bool live = whole || u * policy.edges + group() < left;
      const auto offset =
          static_cast<std::uint64_t>(static_cast<std::uint32_t>(columns.ids[u])) * row_bytes_;
      rows[u] = live ? FeatureVector::load(features_ + offset) : FeatureVector::zero();
    }
#pragma unroll
    for (int u = 0; u < policy.unroll; ++u) {
      const int edge = u * policy.edges + group();
      float values[width];
      rows[u].widen_to(values);
      Reduction::add(launch_, at_, {begin + edge, columns.ids[u], whole || edge < left}, values,
                     elements_);
    }
  }

  const RowsLaunch& launch_;
  int lane_;
  ReducedRow at_;
  bool active_;
  const char* features_;     ///< this lane's, of the first row of X
  std::uint32_t row_bytes_;  ///< from one row of X to the next
  Element elements_[width];
};

}  // namespace tessera::ops
