// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/overlap.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/plane_counts.cuh"
#include "ops/bits/cuda/store_sums.cuh"

/// Planes whose chunks all threads of a block bring. Two blocks may share K.
namespace tessera::ops {

template <class Policy>
class PlanesLoader {
 public:
  static constexpr int threads = Policy::groups * 128;
  static constexpr int rows_at_once = threads / 8;

  __device__ PlanesLoader(const BitProduct& product, std::int64_t first_row, std::int64_t first_col,
                          const std::int32_t* parts, int first_part,
                          const PlanesMemory<Policy>& memory)
      : product_(product),
        parts_(parts),
        first_part_(first_part),
        row_(static_cast<int>(threadIdx.x) / 8),
        unit_(static_cast<int>(threadIdx.x) % 8),
        first_row_(first_row),
        first_col_(first_col),
        memory_(memory) {}

  /// The chunk of A, with the first plane that it meets.
  __device__ void load_a(const PlanesTurn<Policy::run>& turn) const {
    if (turn.plane != product_.b.planes - 1) return;
    load_rows<Policy::rows>(memory_.a_slot(turn.at()), product_.a, 0, first_row_, word_of(turn));
  }
  __device__ void load_b(const PlanesTurn<Policy::run>& turn, int slot) const {
    load_rows<Policy::width>(memory_.b_slot(slot), product_.b, turn.plane, first_col_,
                             word_of(turn));
  }

 private:
  /// This thread's first word of a row.
  __device__ std::int64_t word_of(const PlanesTurn<Policy::run>& turn) const {
    const int index = first_part_ + turn.at();
    const std::int64_t chunk = parts_ == nullptr ? index : parts_[index];
    return chunk * chunk_words + unit_ * 4;
  }

  template <int count>
  __device__ void load_rows(std::uint32_t slot, const BitRows& from, int plane, std::int64_t first,
                            std::int64_t word) const {
    using Layout = cuda::RowLayout<chunk_bytes>;
    const std::uint32_t* at =
        from.words + plane * from.plane_words + (first + row_) * from.row_words + word;
#pragma unroll
    for (int row = 0; row < count; row += rows_at_once) {
      if (count % rows_at_once != 0 && row + row_ >= count) break;
      const std::uint32_t to = slot + Layout::offset(row + row_, unit_);
      if (first + row + row_ < from.rows && word < from.row_words) {
        cuda::copy_16_async(to, at);
      } else {
        cuda::zero_16_async(to, from.words);
      }
      at += rows_at_once * from.row_words;
    }
  }

  const BitProduct& product_;
  const std::int32_t* parts_;
  int first_part_;
  int row_;
  int unit_;
  std::int64_t first_row_;
  std::int64_t first_col_;
  PlanesMemory<Policy> memory_;
};

template <class Policy>
__device__ void multiply_planes(const BitProduct& product, char* memory) {
  constexpr int ahead = Policy::b_slots - 2;
  static_assert(Policy::a_slots >=
                    (ahead + Policy::run - 1) / Policy::run * Policy::run + Policy::run ||
                Policy::run == 1);
  const auto cluster = cooperative_groups::this_cluster();
  const int ranks = static_cast<int>(cluster.num_blocks());
  const int tile = static_cast<int>(blockIdx.x) / ranks;
  const std::int64_t first_row = std::int64_t{tile} * Policy::rows;
  const std::int64_t first_col = std::int64_t{blockIdx.y} * Policy::width;
  const int all_chunks = static_cast<int>((product.a.row_words + chunk_words - 1) / chunk_words);
  const PartRange range =
      part_range(product.index, all_chunks, tile, static_cast<int>(cluster.block_rank()), ranks);
  const int planes = product.b.planes;
  const int turns = range.count * planes;
  const int group = static_cast<int>(threadIdx.x) / 128;

  const PlanesMemory<Policy> slots{cuda::AlignedShared(memory).address};
  const PlanesLoader<Policy> loader(product, first_row, first_col, product.index.parts, range.first,
                                    slots);
  const PlanesTurn<Policy::run> start{0, 0, planes - 1};
  // An A that stays is there before B is.
  PlanesTurn<Policy::run> next = start;
  for (int turn = 0; product.a_stays && turn < min(ahead, turns); ++turn) {
    loader.load_a(next);
    next.advance(range.count, planes);
  }
  cuda::wait_for_previous();
  next = start;
  for (int turn = 0; turn < ahead; ++turn) {
    if (turn < turns) {
      if (!product.a_stays) loader.load_a(next);
      loader.load_b(next, turn);
      next.advance(range.count, planes);
    }
    cuda::commit_copies();
  }

  PlaneCounts<Policy> counts;
  PlanesTurn<Policy::run> now = start;
  int slot = 0;
  int next_slot = ahead;
  for (int turn = 0; turn < turns; ++turn) {
    cuda::wait_for_copies<ahead - 1>();
    cuda::fence_shared_for_wgmma();
    __syncthreads();
    if (turn + ahead < turns) {
      loader.load_a(next);
      loader.load_b(next, next_slot);
      next.advance(range.count, planes);
    }
    cuda::commit_copies();
    counts.add(now, range.count, slots.a_slot(now.at()), slots.b_slot(slot));
    now.advance(range.count, planes);
    slot = slot + 1 < Policy::b_slots ? slot + 1 : 0;
    next_slot = next_slot + 1 < Policy::b_slots ? next_slot + 1 : 0;
  }
  counts.finish();
  cuda::wait_for_copies<0>();
  __syncthreads();
  store_sums<Policy::width, Policy::groups>(product, first_row, first_col, group, counts.sums,
                                            reinterpret_cast<std::int32_t*>(memory));
}

template <class Policy>
__global__ __launch_bounds__(Policy::groups * 128,
                             1) void multiply_planes_kernel(const BitProduct product) {
#ifdef TESSERA_HAS_WGMMA
  extern __shared__ __align__(1024) char shared[];
  cuda::let_next_begin();
  multiply_planes<Policy>(product, shared);
#else
  __trap();
#endif
}

namespace {

template <class Policy>
constexpr BitFunction function_of = clustered_function<Policy, multiply_planes_kernel<Policy>,
                                                       chunk_words, planes_shared_bytes<Policy>>();

}  // namespace

const BitFunction planes_functions[3][2] = {
    {function_of<PlanesPolicy<1, 64, PlanesOrder::one, 6, 6>>,
     function_of<PlanesPolicy<1, 32, PlanesOrder::one, 8, 8>>},
    {function_of<PlanesPolicy<1, 64, PlanesOrder::twin, 6, 8>>,
     function_of<PlanesPolicy<1, 32, PlanesOrder::twin, 6, 8>>},
    {function_of<PlanesPolicy<1, 64, PlanesOrder::runs, 8, 6>>,
     function_of<PlanesPolicy<1, 32, PlanesOrder::runs, 8, 6>>},
};

}  // namespace tessera::ops
