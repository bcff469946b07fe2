// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/blocks_8x8.cuh"
#include "ops/attention/cuda/pairs/ahead/edges.cuh"

/// What a warp is going to read, on its way to shared memory: rows of several steps, be they of one
/// item or of the next ones, and what belongs to the own rows of these. Of gathered rows a lane
/// brings what it will look at itself, and lies where all can read 8 x 8 blocks; own rows are
/// brought by all lanes together.
///
/// Vertices are asked for a step before their rows, offsets an item before its vertices, so that
/// nobody looks at what was asked for just now.
namespace tessera::ops::ahead {

/// What a pass reads.
struct PairReads {
  int num_own;  ///< matrices: scores, values, outputs
  int num_met;  ///< scores, values
  bool log_sums;
  bool states;  ///< of the vertices that are met
  int ahead;    ///< steps
};

template <class T, int width, int part_edges, PairReads reads>
class PairFeed {
  using Edges = PairEdges<part_edges>;
  using Row = LaneRow<T, width>;
  static constexpr int num_parts = Edges::num_parts;
  static constexpr int row_units = width / 8;
  static constexpr int row_bytes = width * 2;
  static constexpr int lane_units = 32 * 16;  ///< bytes of a unit of each lane

  /// Of an item; its own rows lie behind.
  struct alignas(16) Part {
    VertexId row;  ///< < 0: none
    int count;     ///< edges from this part's first on
    int steps;     ///< of the item
    float log_sum;
  };
  static constexpr int item_bytes =
      (num_parts * (static_cast<int>(sizeof(Part)) + reads.num_own * row_bytes) + 127) / 128 * 128;
  static constexpr int step_bytes =
      (reads.num_met * 2 * Row::chunks + (reads.states ? 1 : 0)) * lane_units;
  static constexpr int places = reads.ahead + 1;  ///< for steps, and for the items they begin

 public:
  static constexpr int bytes = places * (item_bytes + step_bytes);  ///< per warp

  __device__ PairFeed(const RowsAttentionLaunch& launch, char* memory)
      : launch_(launch),
        memory_(memory),
        units_(cuda::shared_address(memory) +
               static_cast<unsigned>(place_of(WarpLane::group(), WarpLane::quarter()) * 16)),
        blocks_(cuda::shared_address(memory) + block_row(WarpLane::number())),
        item_(warp_of_grid()) {
    // Exchanged with itself: the compiler would find it anew in each step.
    units_ = __shfl_sync(~0u, units_, WarpLane::number());
    blocks_ = __shfl_sync(~0u, blocks_, WarpLane::number());
    if (item_ >= num_items(launch)) return;
    ask_offsets(item_);
    enter();
  }

  /// Calls begin(), then step() for each of its steps and finish(item) for every item of the warp.
  template <class Begin, class Step, class Finish>
  __device__ void for_items(Begin&& begin, Step&& step, Finish&& finish) {
    unsigned item = item_;
    if (item >= num_items(launch_)) return;
    int waiting = reads.ahead;
    int steps = 0;
#pragma unroll 1
    while (true) {
      // Others may still look at what lies there.
      __syncwarp();
      ask();
      place_ = place_ == reads.ahead * step_bytes ? 0 : place_ + step_bytes;
      if (--waiting >= 0) continue;
      cuda::wait_for_copies<reads.ahead>();
      __syncwarp();
      if (steps == 0) {
        taken_item_ = next_item(taken_item_);
        steps = part_at(0)->steps;
        has_one_row_ = is_piece(launch_, item);
        begin();
      }
      step();
      if (--steps > 0) continue;
      finish(item);
      item += num_warps();
      if (item >= num_items(launch_)) return;
    }
  }

  // Of the item.
  __device__ bool has_one_row() const { return has_one_row_; }
  /// Edges of a part that a step takes.
  __device__ int turn() const { return has_one_row_ ? 2 * 8 : part_edges; }
  __device__ VertexId row(int part) const { return part_at(part)->row; }
  /// Edges from the first of this part on.
  __device__ int count(int part) const { return part_at(part)->count; }
  __device__ float log_sum(int part) const { return part_at(part)->log_sum; }
  __device__ Row own(int matrix, int part) const {
    const char* const from = own_row(taken_item_, matrix, part) + WarpLane::quarter() * 16;
    Row row;
#pragma unroll
    for (int chunk = 0; chunk < Row::chunks; ++chunk) {
      row.of[chunk] = *reinterpret_cast<const uint4*>(from + chunk * 64);
    }
    return row;
  }

  __device__ T own_feature(int matrix, int part, int feature) const {
    return reinterpret_cast<const T*>(own_row(taken_item_, matrix, part))[feature];
  }
  /// 16 features of the own rows of the edges of a step, as `load_tile` has those of the met ones.
  __device__ void load_own_tile(std::uint32_t (&features)[4], int matrix, int tile) const {
    const int lane = WarpLane::number();
    const int part = lane / 16 * Edges::parts_of_half + lane % 8 / part_edges;
    cuda::load_blocks_transposed(features,
                                 cuda::shared_address(own_row(taken_item_, matrix, part)) +
                                     static_cast<unsigned>((2 * tile + lane / 8 % 2) * 16));
  }
  __device__ PairResult result(unsigned item, int part) const {
    PairResult result;
    if (is_piece(launch_, item)) {
      result.one_row = true;
      result.piece = piece_of(launch_, item);
      result.has_edges = result.piece.count > 0;
      if (part == 0) result.row = result.piece.row;
      return result;
    }
    if (part < num_parts) {
      result.row = row(part);
      result.has_edges = count(part) > 0;
    }
    return result;
  }

  // Of the step.
  __device__ Row met(int matrix, int half) const {
    Row row;
#pragma unroll
    for (int chunk = 0; chunk < Row::chunks; ++chunk) {
      uint4& unit = row.of[chunk];
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(unit.x), "=r"(unit.y), "=r"(unit.z), "=r"(unit.w)
                   : "r"(unit_at(matrix, half, chunk))
                   : "memory");
    }
    return row;
  }
  /// 16 features of the edges of the step: g and g + 8 of edges 2q and 2q + 1 of the first half,
  /// then of the second.
  __device__ void load_tile(std::uint32_t (&features)[4], int matrix, int tile) const {
    cuda::load_blocks_transposed(features, (blocks_ ^ static_cast<unsigned>(tile % 2 * 32)) +
                                               place_ +
                                               (matrix * 2 * Row::chunks + tile / 2) * lane_units);
  }
  __device__ float2 state(int half) const {
    float2 state;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];"
                 : "=f"(state.x), "=f"(state.y)
                 : "r"(state_at(half))
                 : "memory");
    return state;
  }

 private:
  __device__ static int next_item(int place) { return place == reads.ahead ? 0 : place + 1; }
  /// Of a quarter of 32 features of an edge: exchanged, so that banks do not collide when one of
  /// eight edges is read.
  __device__ static int place_of(int edge, int quarter) {
    return edge * 4 + (quarter ^ (edge / 2 % 4));
  }
  /// Of the first tile, as `load_tile` takes it from this lane: two units of the first half, then
  /// of the second.
  __device__ static unsigned block_row(int lane) {
    return static_cast<unsigned>(lane / 16 * Row::chunks * lane_units +
                                 place_of(lane % 8, lane / 8 % 2) * 16);
  }
  __device__ std::uint32_t unit_at(int matrix, int half, int chunk) const {
    return units_ + place_ + ((matrix * 2 + half) * Row::chunks + chunk) * lane_units;
  }
  __device__ std::uint32_t state_at(int half) const {
    return unit_at(reads.num_met, 0, 0) + half * 8;
  }
  __device__ char* item_at(int item) const {
    return memory_ + places * step_bytes + item * item_bytes;
  }
  __device__ const Part* part_at(int part) const {
    return reinterpret_cast<const Part*>(item_at(taken_item_)) + part;
  }
  __device__ char* own_row(int item, int matrix, int part) const {
    return item_at(item) + num_parts * sizeof(Part) + (matrix * num_parts + part) * row_bytes;
  }

  __device__ void ask() {
    if (edges_.steps > 0) {
      if (edges_.done == 0) {
        asked_item_ = next_item(asked_item_);
        copy_item();
      }
      copy_step();
      go_on();
    }
    cuda::commit_copies();
  }
  __device__ void go_on() {
    if (--edges_.steps > 0) {
      edges_.done += edges_.turn;
      vertices_ = PairVertices::load(edges_);
      return;
    }
    item_ += num_warps();
    if (item_ < num_items(launch_)) enter();
  }
  /// Finds the edges of the item, whose offsets have been asked for, and asks for what follows.
  __device__ void enter() {
    edges_ = is_piece(launch_, item_) ? piece_edges<part_edges>(launch_, item_)
                                      : offsets_.edges(launch_, item_);
    vertices_ = PairVertices::load(edges_);
    ask_offsets(item_ + num_warps());
  }
  __device__ void ask_offsets(unsigned item) {
    if (item < num_items(launch_) && !is_piece(launch_, item)) offsets_.load(launch_, item);
  }

  __device__ void copy_step() const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const bool exists = edges_.exists(half);
      const VertexId vertex = vertices_.ids[half];
#pragma unroll
      for (int matrix = 0; matrix < reads.num_met; ++matrix) {
        const char* const from =
            lane_features<width>(matrix == 0 ? launch_.gathered_scores : launch_.gathered_values)
                .at(vertex);
#pragma unroll
        for (int chunk = 0; chunk < Row::chunks; ++chunk) {
          copy_or_zero<16>(unit_at(matrix, half, chunk), from + chunk * 64, exists);
        }
      }
      if constexpr (reads.states) {
        copy_or_zero<8>(state_at(half), launch_.row_state + vertex * launch_.heads + blockIdx.y,
                        exists);
      }
    }
  }
  /// A lane brings a unit of a row of which it has edges.
  __device__ void copy_item() const {
    constexpr int lanes = 32 / Edges::parts_of_half;
    const int half = WarpLane::number() % lanes / row_units;
    const int unit = WarpLane::number() % row_units;
    if (half >= 2) return;
    const int part = Edges::part_of(half);
    const VertexId row = half == 0 ? edges_.rows[0] : edges_.rows[1];
    const bool exists = row >= 0;
    const AttentionRows matrices[3] = {launch_.own_scores, launch_.own_values, launch_.outputs};
#pragma unroll
    for (int matrix = 0; matrix < reads.num_own; ++matrix) {
      const FeatureRows rows(matrices[matrix].data, matrices[matrix].row_bytes / 2, width,
                             unit * 8);
      copy_or_zero<16>(cuda::shared_address(own_row(asked_item_, matrix, part)) + unit * 16,
                       rows.at(exists ? row : 0), exists);
    }
    if (unit != 0) return;
    Part* const to = reinterpret_cast<Part*>(item_at(asked_item_)) + part;
    to->row = row;
    to->count = (half == 0 ? edges_.left[0] : edges_.left[1]) + Edges::slot();
    to->steps = edges_.steps;
    if constexpr (reads.log_sums) {
      copy_or_zero<4>(cuda::shared_address(&to->log_sum),
                      launch_.log_sum + (exists ? row : 0) * launch_.log_sum_stride + blockIdx.y,
                      exists);
    }
  }
  template <int size>
  __device__ static void copy_or_zero(std::uint32_t to, const void* from, bool exists) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(size),
                 "r"(exists ? size : 0)
                 : "memory");
  }

  const RowsAttentionLaunch& launch_;
  char* const memory_;
  std::uint32_t units_, blocks_;  ///< of this lane, in the first place
  // The step that is asked for next.
  unsigned item_;
  Edges edges_;
  PairVertices vertices_;
  ItemOffsets<part_edges> offsets_;  ///< of the item after it
  /// Where the step lies that was taken last, and where the next one that is asked for will.
  int place_ = 0;
  // Among the places of items.
  int asked_item_ = reads.ahead, taken_item_ = reads.ahead;
  bool has_one_row_ = false;
};

/// Starts a kernel whose warps have a feed each.
template <class Pairs>
void launch_pairs(void (*kernel)(RowsAttentionLaunch), const RowsAttentionLaunch& launch,
                  Stream stream) {
  constexpr int bytes = rows_attention_warps * Pairs::Feed::bytes;
  if constexpr (bytes > 48 * 1024) {
    cuda_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
               "asking for shared memory");
  }
  cuda::launch_overlapped(kernel, dim3(launch.num_blocks, launch.shape.num_slices),
                          rows_attention_threads, std::size_t{bytes}, stream, launch);
}

}  // namespace tessera::ops::ahead
