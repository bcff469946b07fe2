// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "cuda/precision.cuh"
#include "cuda/vectors.cuh"
#include "ops/messages/cuda/rows/launch.hpp"

/// A team of lanes has a row, each lane some of its features, and goes over the row's edges. It
/// alone writes the row's results, so that one pass over the edges by source gives both gradients.
/// Rows that are cut have a team for each piece, and a second launch merges their sums.
namespace tessera::ops {

/// Edges of a row whose loads are in flight together.
inline constexpr int message_batch = 4;

/// A message; not-a-number passes relu.
template <Message kind>
__device__ float message_of(float x, float edge) {
  if constexpr (kind == Message::product) return x * edge;
  const float sum = x + edge;
  return kind == Message::relu && sum <= 0 ? 0.0f : sum;
}

/// What the gradient of a message gives to its source, and to its edge.
template <Message kind>
__device__ float2 parts_of_gradient(float x, float edge, float grad) {
  if constexpr (kind == Message::product) return {grad * edge, grad * x};
  const float passed = kind == Message::relu && x + edge <= 0 ? 0.0f : grad;
  return {passed, passed};
}

template <Message kind, bool backward, class T, int bytes>
class MessagesRow {
 public:
  using Vector = cuda::Vector<T, bytes>;
  static constexpr int width = Vector::count;

  __device__ MessagesRow(const MessagesLaunch& launch, int feature, std::int64_t row)
      : launch_(launch), feature_(feature), row_(row) {
#pragma unroll
    for (float& sum : sums_) sum = 0;
    if constexpr (backward) Vector::load(place(launch.x, row)).widen_to(own_);
  }

  __device__ void go_over(EdgeOffset begin, EdgeOffset end) {
    const MessageRowsOf& gathered = backward ? launch_.grad_y : launch_.x;
    for (EdgeOffset first = begin; first < end; first += message_batch) {
      std::int64_t at[message_batch];
      Vector others[message_batch], edges[message_batch];
#pragma unroll
      for (int i = 0; i < message_batch; ++i) {
        const bool live = first + i < end;
        const EdgeOffset edge = live ? first + i : begin;
        at[i] = launch_.positions == nullptr ? edge : __ldg(launch_.positions + edge);
        if (launch_.edge_rows != nullptr) at[i] = __ldg(launch_.edge_rows + at[i]);
        others[i] = Vector::load_if(live, place(gathered, __ldg(launch_.others + edge)));
        edges[i] = Vector::load_if(live, place(launch_.edges, at[i]));
      }
#pragma unroll
      for (int i = 0; i < message_batch; ++i) {
        if (first + i < end) add(others[i], edges[i], at[i]);
      }
    }
  }

  __device__ void store() const {
    if (launch_.sums == nullptr) return;
    Vector::narrowed(sums_).store(static_cast<T*>(launch_.sums) + row_ * launch_.sums_stride +
                                  feature_);
  }
  __device__ void store_in(std::int32_t slot) const {
    if (launch_.sums == nullptr) return;
    float* const to = launch_.slots + std::int64_t{slot} * launch_.features + feature_;
#pragma unroll
    for (int i = 0; i < width; ++i) to[i] = sums_[i];
  }

 private:
  __device__ const void* place(const MessageRowsOf& rows, std::int64_t row) const {
    return static_cast<const T*>(rows.data) + row * rows.stride + feature_;
  }

  __device__ void add(const Vector& from_other, const Vector& from_edge, std::int64_t at) {
    float other[width], edge[width];
    from_other.widen_to(other);
    from_edge.widen_to(edge);
    if constexpr (backward) {
      float of_edge[width];
#pragma unroll
      for (int i = 0; i < width; ++i) {
        const float2 parts = parts_of_gradient<kind>(own_[i], edge[i], other[i]);
        sums_[i] += parts.x;
        of_edge[i] = parts.y;
      }
      if (launch_.grad_edges == nullptr) return;
      Vector::narrowed(of_edge).store(static_cast<T*>(launch_.grad_edges) +
                                      at * launch_.grad_edges_stride + feature_);
    } else {
#pragma unroll
      for (int i = 0; i < width; ++i) sums_[i] += message_of<kind>(other[i], edge[i]);
    }
  }

  const MessagesLaunch& launch_;
  int feature_;
  std::int64_t row_;
  float own_[width];
  float sums_[width];
};

/// The team's number, and the first feature of this lane.
struct MessagesTeam {
  std::int64_t number;
  int feature;
};
template <int width>
__device__ MessagesTeam messages_team(int lanes) {
  const std::int64_t thread = std::int64_t{blockIdx.x} * messages_block_threads + threadIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  return {thread / lanes, (static_cast<int>(blockIdx.y) * lanes + lane) * width};
}

template <Message kind, bool backward, class T, int bytes>
__global__ __launch_bounds__(messages_block_threads) void messages_rows(
    const MessagesLaunch launch) {
  cuda::begin_overlapped();
  using Row = MessagesRow<kind, backward, T, bytes>;
  const MessagesTeam team = messages_team<Row::width>(launch.lanes);
  if (team.number >= launch.rows.num_rows || team.feature >= launch.features) return;
  const EdgeOffset begin = cuda::fixed_offset_at(launch.rows.offsets, team.number);
  const EdgeOffset end = cuda::fixed_offset_at(launch.rows.offsets, team.number + 1);
  if (end - begin > launch.rows.longest) return;
  Row row(launch, team.feature, team.number);
  row.go_over(begin, end);
  row.store();
}

template <Message kind, bool backward, class T, int bytes>
__global__ __launch_bounds__(messages_block_threads) void messages_pieces(
    const MessagesLaunch launch) {
  cuda::begin_overlapped();
  using Row = MessagesRow<kind, backward, T, bytes>;
  const MessagesTeam team = messages_team<Row::width>(launch.lanes);
  if (team.number >= launch.rows.num_pieces || team.feature >= launch.features) return;
  const cuda::Piece piece = launch.rows.pieces[team.number];
  Row row(launch, team.feature, piece.row);
  row.go_over(piece.begin, piece.end);
  row.store_in(piece.slot);
}

/// A thread for each feature of each row that was cut.
template <class T>
__global__ __launch_bounds__(messages_block_threads) void join_messages(
    const MessagesLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t thread = std::int64_t{blockIdx.x} * messages_block_threads + threadIdx.x;
  if (thread >= launch.rows.num_cut_rows * launch.features) return;
  const cuda::CutRow row = launch.rows.cut_rows[thread / launch.features];
  const std::int64_t feature = thread % launch.features;
  double sum = 0;
  for (std::int64_t i = 0; i < row.num_slots; ++i) {
    sum += launch.slots[(row.first_slot + i) * launch.features + feature];
  }
  static_cast<T*>(launch.sums)[row.row * launch.sums_stride + feature] =
      cuda::narrow<T>(static_cast<float>(sum));
}

template <Message kind, bool backward, class T, int bytes>
void launch_messages(const MessagesLaunch& launch, Stream stream) {
  constexpr int width = cuda::Vector<T, bytes>::count;
  const unsigned blocks_of_features = cuda::num_blocks(launch.features, launch.lanes * width);
  const int teams = messages_block_threads / launch.lanes;
  cuda::launch_overlapped(messages_rows<kind, backward, T, bytes>,
                          dim3(cuda::num_blocks(launch.rows.num_rows, teams), blocks_of_features),
                          messages_block_threads, stream, launch);
  if (launch.rows.num_pieces == 0) return;
  cuda::launch_overlapped(messages_pieces<kind, backward, T, bytes>,
                          dim3(cuda::num_blocks(launch.rows.num_pieces, teams), blocks_of_features),
                          messages_block_threads, stream, launch);
  if (launch.sums == nullptr) return;
  cuda::launch_overlapped(
      join_messages<T>,
      dim3(cuda::num_blocks(launch.rows.num_cut_rows * launch.features, messages_block_threads)),
      messages_block_threads, stream, launch);
}

template <MessagesKey key>
MessagesPasses MessagesKernels<key>::get() {
  using T = cuda::Stored<key.precision>;
  constexpr int bytes = key.aligned ? 16 : static_cast<int>(sizeof(T));
  return {{launch_messages<Message::sum, false, T, bytes>,
           launch_messages<Message::relu, false, T, bytes>,
           launch_messages<Message::product, false, T, bytes>},
          {launch_messages<Message::sum, true, T, bytes>,
           launch_messages<Message::relu, true, T, bytes>,
           launch_messages<Message::product, true, T, bytes>}};
}

}  // namespace tessera::ops
