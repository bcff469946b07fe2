// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/cuts.cuh"
#include "cuda/launch.cuh"
#include "cuda/softmax.cuh"
#include "cuda/vectors.cuh"
#include "ops/attention/cuda/fused/launch.hpp"
#include "ops/cuda/dropout.cuh"

/// How a warp goes over a row: in batches of 32 numbers, each that of one edge and head, a lane
/// each (cuda::HeadLanes). Scores, exponentials and dropout are computed once for each number. For
/// the weighted sums of features the lanes turn to features, and take weights from the lanes that
/// have them.
namespace tessera::ops {

/// Some edges of a row. `slot` < 0: all of them.
struct RowPart {
  std::int64_t row = 0;
  std::int64_t slot = -1;
  EdgeOffset begin = 0;
  EdgeOffset end = 0;
  bool exists = false;
};

/// Items are pieces first, then rows that are not cut.
__device__ inline RowPart row_part(const cuda::CutRows& rows, std::int64_t item) {
  if (item < rows.num_pieces) {
    const cuda::Piece piece = rows.pieces[item];
    return {piece.row, piece.slot, piece.begin, piece.end, true};
  }
  const std::int64_t row = item - rows.num_pieces;
  const EdgeOffset begin = cuda::row_offset(rows, row);
  const EdgeOffset end = cuda::row_offset(rows, row + 1);
  return {row, -1, begin, end, end - begin <= rows.longest};
}

/// A lane's number: an edge of the present batch, and the lane's head.
struct LaneEdge {
  VertexId other = 0;  ///< the gathered vertex
  EdgeOffset position = 0;
  bool exists = false;
};

struct Score {
  float value = 0;
  float raw = 0;  ///< before leaky_relu (gat), or without the scale (dot)
};

__device__ inline float leaky_relu(float x, float slope) { return x > 0 ? x : slope * x; }

template <class T, bool aligned, int vectors>
class RowWork {
 public:
  using FeatureVector = cuda::Vector<T, aligned ? 16 : static_cast<int>(sizeof(T))>;
  static constexpr int count = FeatureVector::count;

  __device__ explicit RowWork(const AttentionLaunch& launch)
      : launch_(launch),
        lane_(static_cast<int>(threadIdx.x) % 32),
        lanes_(32, launch.slices.padded_heads),
        part_(std::int64_t{blockIdx.y} % launch.slices.per_head),
        first_head_(std::int64_t{blockIdx.y} / launch.slices.per_head * launch.slices.heads) {
    first_feature_ = first_head_ * launch.width + part_ * launch.slices.features;
    const std::int64_t left = launch.heads - first_head_;
    num_heads_ = static_cast<int>(left < launch.slices.heads ? left : launch.slices.heads);
    const std::int64_t head_end = (first_head_ + num_heads_) * launch.width;
    const std::int64_t slice_end = first_feature_ + launch.slices.features;
    const std::int64_t end = slice_end < head_end ? slice_end : head_end;
#pragma unroll
    for (int k = 0; k < vectors; ++k) {
      feature_[k] = first_feature_ +
                    (std::int64_t{k} * launch.slices.lanes + lane_ % launch.slices.lanes) * count;
      active_[k] = feature_[k] < end;
      head_of_[k] = active_[k] ? static_cast<int>(feature_[k] / launch.width - first_head_) : 0;
    }
  }

  /// This lane's head, and whether it exists.
  __device__ std::int64_t head() const { return first_head_ + lanes_.head; }
  __device__ bool has_head() const { return lanes_.head < num_heads_; }
  /// What belongs to heads, not features, is the first slice's of a head.
  __device__ bool owns_heads() const { return part_ == 0; }
  /// One lane for each head.
  __device__ bool speaks_for_head() const { return has_head() && lanes_.edge == 0; }
  __device__ const cuda::HeadLanes& lanes() const { return lanes_; }
  __device__ int batch_edges() const { return lanes_.batch_edges; }

  __device__ std::int64_t feature(int k) const { return feature_[k]; }
  /// The lanes that store features after `combine_groups`.
  __device__ bool stores(int k) const { return active_[k] && lane_ < launch_.slices.lanes; }
  /// A number of the head that feature vector k belongs to.
  __device__ float of_head(float number, int k) const {
    return __shfl_sync(~0u, number, head_of_[k]);
  }

  __device__ LaneEdge edge_at(EdgeOffset batch, EdgeOffset end) const {
    LaneEdge edge;
    const EdgeOffset place = batch + lanes_.edge;
    if (place >= end) return edge;
    edge.other = __ldg(launch_.indices + place);
    edge.position = launch_.positions == nullptr ? place : __ldg(launch_.positions + place);
    edge.exists = has_head();
    return edge;
  }

  __device__ float dropped(const LaneEdge& edge) const {
    if (!launch_.drops || !edge.exists) return 1;
    const auto element = static_cast<std::uint64_t>(edge.position * launch_.heads + head());
    return dropout_factor(launch_.dropout, element);
  }

  /// The score of this lane's number; -inf where there is none.
  __device__ Score score(std::int64_t fixed, const LaneEdge& edge) const {
    Score score;
    if (launch_.form == AttentionForm::gat) {
      if (edge.exists) {
        score.raw =
            number_at(launch_.fixed_scores, fixed) + number_at(launch_.gathered_scores, edge.other);
        score.value = leaky_relu(score.raw, launch_.slope);
      }
    } else if (launch_.form == AttentionForm::dot) {
      score.raw = head_dot(launch_.fixed_scores, fixed, launch_.gathered_scores, edge);
      score.value = launch_.scale * score.raw;
    } else if (launch_.form == AttentionForm::cosine) {
      const float inverse = launch_.inverse_lengths[fixed];
      score.raw =
          head_sum(launch_.fixed_scores, fixed, launch_.gathered_scores, edge,
                   [&](float, float t, float s, float sum) { return fmaf(t * inverse, s, sum); });
      score.value = cuda::widen(*static_cast<const T*>(launch_.factor)) * score.raw *
                    launch_.inverse_lengths[edge.other];
    } else {
      score.value = head_sum(launch_.fixed_scores, fixed, launch_.gathered_scores, edge,
                             [&](float a, float t, float s, float sum) {
                               return fmaf(a, leaky_relu(t + s, launch_.slope), sum);
                             });
    }
    if (!edge.exists) score.value = -cuda::infinity;
    return score;
  }

  /// The dot product of one head of the fixed and the gathered vertex, for every lane's number.
  __device__ float head_dot(const GpuRows& fixed_rows, std::int64_t fixed,
                            const GpuRows& gathered_rows, const LaneEdge& edge) const {
    return head_sum(fixed_rows, fixed, gathered_rows, edge,
                    [](float, float t, float s, float sum) { return fmaf(t, s, sum); });
  }

  /// sums[k] += weight * the gathered vertex's features, over the edges of a batch.
  __device__ void add_weighted(const GpuRows& rows, const LaneEdge& edge, int num_edges,
                               float weight, float (&sums)[vectors][count]) const {
    for_batch(edge, num_edges, [&](std::int64_t other, int source, bool exists) {
#pragma unroll
      for (int k = 0; k < vectors; ++k) {
        const float of_edge = __shfl_sync(~0u, weight, source + head_of_[k]);
        if (!exists || !active_[k]) continue;
        float values[count];
        load(rows, other, feature_[k], values);
#pragma unroll
        for (int i = 0; i < count; ++i) sums[k][i] = fmaf(of_edge, values[i], sums[k][i]);
      }
    });
  }

  /// The same of leaky_relu'(fixed + gathered), and of leaky_relu into `activated`.
  __device__ void add_additive(std::int64_t fixed, const LaneEdge& edge, int num_edges,
                               float weight, float (&sums)[vectors][count],
                               float (&activated)[vectors][count], bool wants_activated) const {
    for_batch(edge, num_edges, [&](std::int64_t other, int source, bool exists) {
#pragma unroll
      for (int k = 0; k < vectors; ++k) {
        const float of_edge = __shfl_sync(~0u, weight, source + head_of_[k]);
        if (!exists || !active_[k]) continue;
        float own[count];
        float values[count];
        load(launch_.fixed_scores, fixed, feature_[k], own);
        load(launch_.gathered_scores, other, feature_[k], values);
#pragma unroll
        for (int i = 0; i < count; ++i) {
          const float sum = own[i] + values[i];
          sums[k][i] = fmaf(of_edge, sum > 0 ? 1.0f : launch_.slope, sums[k][i]);
          if (wants_activated) {
            activated[k][i] = fmaf(of_edge, leaky_relu(sum, launch_.slope), activated[k][i]);
          }
        }
      }
    });
  }

  /// Lanes that summed the same features of different edges add up.
  __device__ void combine_groups(float (&sums)[vectors][count]) const {
    for (int distance = launch_.slices.lanes; distance < 32; distance *= 2) {
#pragma unroll
      for (int k = 0; k < vectors; ++k) {
#pragma unroll
        for (float& sum : sums[k]) sum += __shfl_xor_sync(~0u, sum, distance);
      }
    }
  }

  __device__ void store(const GpuOutput& to, std::int64_t row, int k,
                        const float (&values)[count]) const {
    FeatureVector::narrowed(values).store(static_cast<T*>(to.data) + row * to.stride + feature_[k]);
  }
  /// A number of this lane's head.
  __device__ void store_head(const GpuOutput& to, std::int64_t row, float value) const {
    static_cast<T*>(to.data)[row * to.stride + head()] = cuda::narrow<T>(value);
  }
  __device__ void load_vector(int k, float (&values)[count]) const {
    load({launch_.vector, 0}, 0, feature_[k], values);
  }

 private:
  __device__ float number_at(const GpuRows& rows, std::int64_t row) const {
    return cuda::widen(static_cast<const T*>(rows.data)[row * rows.stride + head()]);
  }
  __device__ static void load(const GpuRows& rows, std::int64_t row, std::int64_t feature,
                              float (&values)[count]) {
    FeatureVector::load(static_cast<const T*>(rows.data) + row * rows.stride + feature)
        .widen_to(values);
  }

  /// Calls body(vertex, first lane with numbers of its edge, exists) for the edges of a batch, as
  /// many at once as there are groups of lanes; all lanes take part in each call.
  template <class Body>
  __device__ void for_batch(const LaneEdge& edge, int num_edges, Body&& body) const {
    const int groups = 32 / launch_.slices.lanes;
    for (int first = 0; first < num_edges; first += groups) {
      const int place = first + lane_ / launch_.slices.lanes;
      const int source = place * lanes_.padded;
      const VertexId other = __shfl_sync(~0u, edge.other, source);
      body(std::int64_t{other}, source, place < num_edges);
    }
  }

  /// For every lane's number: a sum over the features of its head. Teams of `dot_lanes` lanes take
  /// the numbers of their own lanes in turn. combine(a, t, s, sum) adds one feature of the vector,
  /// the fixed and the gathered vertex.
  template <class Combine>
  __device__ float head_sum(const GpuRows& fixed_rows, std::int64_t fixed,
                            const GpuRows& gathered_rows, const LaneEdge& edge,
                            Combine&& combine) const {
    const int team = launch_.dot_lanes;
    const int place = lane_ & (team - 1);
    float own = 0;
    for (int turn = 0; turn < team; ++turn) {
      const int owner = lane_ - place + turn;
      const std::int64_t other = __shfl_sync(~0u, edge.other, owner);
      const bool exists = __shfl_sync(~0u, static_cast<int>(edge.exists), owner) != 0;
      float sum = 0;
      if (exists) {
        const std::int64_t begin = (first_head_ + (owner & (lanes_.padded - 1))) * launch_.width;
        for (std::int64_t f = begin + place * count; f < begin + launch_.width; f += team * count) {
          float t[count], s[count], a[count] = {};
          load(fixed_rows, fixed, f, t);
          load(gathered_rows, other, f, s);
          if (launch_.vector != nullptr) load({launch_.vector, 0}, 0, f, a);
#pragma unroll
          for (int i = 0; i < count; ++i) sum = combine(a[i], t[i], s[i], sum);
        }
      }
      for (int distance = team / 2; distance >= 1; distance /= 2) {
        sum += __shfl_xor_sync(~0u, sum, distance);
      }
      if (place == turn) own = sum;
    }
    return own;
  }

  const AttentionLaunch& launch_;
  int lane_;
  cuda::HeadLanes lanes_;
  std::int64_t part_;        ///< which slice of its head
  std::int64_t first_head_;  ///< of the slice
  std::int64_t first_feature_;
  int num_heads_;
  std::int64_t feature_[vectors];  ///< the first of each of this lane's vectors
  bool active_[vectors];
  int head_of_[vectors];  ///< within the slice
};

}  // namespace tessera::ops
