// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>
#include <cstdint>
#include <type_traits>

#include "cuda/launch.cuh"
#include "cuda/mma_rows.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/overlapped_pair.cuh"
#include "cuda/wgmma.cuh"
#include "ops/windows/launch.hpp"
#include "ops/windows/loaders.cuh"
#include "ops/windows/merge.cuh"
#include "ops/windows/pattern.cuh"
#include "ops/windows/store.cuh"
#include "tiles/value_bits.hpp"

/// Sums over tall windows on matrix units: Hopper's, which take 64 rows at once, or, for every GPU,
/// those that take 16 rows of each warp.
///
/// A block computes `height` rows at once, 64 for each group of four warps. The rows of X that a
/// window uses are gathered once into shared memory and multiplied by all of the window's rows; the
/// pattern is expanded from bits in registers. Blocks stay and go through a list of stages
/// (tiles/stages.hpp), be they of one window or another, without a seam. While stage k is
/// multiplied,
///
///     rows of X of stages k + 1 and k + 2      and columns and bits of k + 3 and k + 4
///
/// are under way. There is one barrier a stage.
namespace tessera::ops {

inline constexpr int stage_alignment = 1024;

template <class Loader>
constexpr int tall_shared_bytes(std::int32_t stage_units) {
  return Loader::num_stages * Loader::stage_bytes + Loader::Feed::bytes +
         ValueRing<Loader::threads>::bytes(stage_units);
}

/// Where every place of a stage has an edge.
template <class Loader>
constexpr std::int32_t most_stage_units() {
  constexpr int halves = Loader::rows * 2 / tiles::tile_columns;
  return Loader::valued ? halves * tiles::units_of(tiles::most_entries(Loader::threads)) : 0;
}

/// Adds one stage to the sums, on Hopper without waiting for it.
template <class Loader>
class Multiply {
 public:
  using Record = typename Loader::Record;
  static constexpr int max_steps = Record::max_steps;
  static constexpr int tiles = Record::max_tiles;
  static constexpr int tile_steps = max_steps / tiles;
  static constexpr bool splits = !std::is_same_v<typename Loader::Source, typename Loader::Element>;
  static constexpr int terms = Loader::valued && splits           ? 3
                               : Loader::scaled || Loader::valued ? 2
                                                                  : 1;

  __device__ Multiply(Record record, int bit_shift, std::uint32_t rows) : rows_(rows) {
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      // A tile that the stage does not have has old bits and is not multiplied.
      const std::uint32_t word =
          tile_steps < 4 ? record.word(tile) >> bit_shift : record.word(tile);
      if constexpr (Loader::scaled) {
        expand_scaled(word, record.scales() + tile * 64, fragments_[0][tile], fragments_[1][tile]);
      } else {
        expand_pattern<typename Loader::Element>(word, fragments_[0][tile]);
      }
    }
#pragma unroll
    for (int i = 0; i < terms * max_steps; ++i) {
      cuda::keep_in_place(fragments_[i / max_steps][i % max_steps / tile_steps][i % tile_steps]);
    }
  }

  /// A stage of one tile, or half of one, whose edges have values. One without steps has old bits.
  __device__ Multiply(Record record, int num_steps, int bit_shift, const std::uint32_t* values,
                      int skipped, std::uint32_t rows)
      : rows_(rows) {
    static_assert(tiles == 1);
    const std::uint32_t starts = record.starts();
    const auto before = static_cast<std::uint32_t>(skipped);
    // A stage that begins with the second half of a tile has that alone.
    const bool second = tile_steps < 4 && bit_shift != 0;
    const std::uint32_t firsts[2] = {(second ? starts >> 16 : starts & 0xffffu) - before,
                                     (starts >> 16) - before};
    const std::uint32_t word = num_steps == 0 ? 0u : record.word(0);
    expand_values<tile_steps>(tile_steps < 4 ? word >> bit_shift : word, firsts, values,
                              [&](int step, int place, std::uint32_t even, std::uint32_t odd) {
                                set_pair(step, place, even, odd);
                              });
#pragma unroll
    for (int i = 0; i < terms * max_steps; ++i) {
      cuda::keep_in_place(fragments_[i / max_steps][0][i % max_steps]);
    }
  }

  __device__ void operator()(int num_steps, float (&sums)[Loader::width / 2]) const {
    if constexpr (Loader::by_warps) {
#pragma unroll
      for (int step = 0; step < max_steps; ++step) {
        if (step < num_steps) add(step, sums);
      }
    } else {
      ask(num_steps, sums);
    }
  }

 private:
  __device__ void ask(int num_steps, float (&sums)[Loader::width / 2]) const {
    if (num_steps == max_steps) {
      cuda::wgmma_fence();
#pragma unroll
      for (int step = 0; step < max_steps; ++step) add(step, sums);
    } else {
#pragma unroll
      for (int step = 0; step + 1 < max_steps; ++step) {
        if (step < num_steps) {
          cuda::wgmma_fence();
          add(step, sums);
        }
      }
    }
    cuda::wgmma_fence();
    cuda::wgmma_commit();
  }

  /// The values of two neighbouring columns, in as many terms as their products take.
  __device__ void set_pair(int step, int place, std::uint32_t even, std::uint32_t odd) {
    if constexpr (splits) {
      std::uint32_t pairs[3];
      split_exactly(__uint_as_float(even), __uint_as_float(odd), pairs);
#pragma unroll
      for (int term = 0; term < terms; ++term) fragments_[term][0][step][place] = pairs[term];
    } else {
      fragments_[0][0][step][place] = __byte_perm(even, odd, 0x5410);
      fragments_[1][0][step][place] = __byte_perm(even, odd, 0x7632);
    }
  }

  __device__ void add(int step, float (&sums)[Loader::width / 2]) const {
#pragma unroll
    for (int plane = 0; plane < Loader::planes; ++plane) {
#pragma unroll
      for (int term = 0; term < terms; ++term) {
        // The smallest term of a value times what the first plane left is below 2^-22 of both.
        if (terms == 3 && plane == 1 && term == 2) continue;
        const auto& fragment = fragments_[term][step / tile_steps][step % tile_steps];
        if constexpr (Loader::by_warps) {
          const auto offset =
              static_cast<std::uint32_t>(step * 16 * 128 + plane * Loader::Layout::plane_bytes);
          cuda::multiply_rows<typename Loader::Element>(sums, fragment, rows_ + offset,
                                                        Loader::Layout::block_bytes);
        } else {
          const std::uint64_t b = cuda::wgmma_descriptor(rows_, Loader::Layout::block_bytes) +
                                  static_cast<std::uint64_t>(step) * cuda::wgmma_step +
                                  plane * std::uint64_t{Loader::Layout::plane_bytes >> 4};
          cuda::wgmma<typename Loader::Element>(sums, fragment, b);
        }
      }
    }
  }

  std::uint32_t rows_;  ///< of the stage, in shared memory
  std::uint32_t fragments_[terms][tiles][tile_steps][4];
};

/// Adds one stage to the sums on sparse tensor cores, without waiting for it: 32 columns at once,
/// in quads of which every row uses at most two (tiles/quad_tiles.hpp).
template <class Loader>
class MultiplyQuads {
 public:
  using Record = typename Loader::Record;
  using Element = typename Loader::Element;
  static constexpr int tiles = Record::max_tiles;
  static constexpr int max_products = Record::max_steps / 2;
  static constexpr int tile_products = max_products / tiles;
  static_assert(!Loader::scaled && !Loader::valued && !Loader::by_warps);
  static_assert(tile_products == 1 || tile_products == 2);

  __device__ MultiplyQuads(Record record, int bit_shift, std::uint32_t rows) : rows_(rows) {
    constexpr std::uint32_t one = std::is_same_v<Element, __nv_bfloat16> ? 0x3f80u : 0x3c00u;
    // A stage of half a tile may be the second half.
    const bool second = tile_products == 1 && bit_shift != 0;
#pragma unroll
    for (int tile = 0; tile < tiles; ++tile) {
      indices_[tile] = record.indices(tile, second);
      const std::uint32_t entries = record.entries(tile) >> (second ? 4 : 0);
#pragma unroll
      for (int i = 0; i < 4 * tile_products; ++i) {
        fragments_[tile * tile_products + i / 4][i % 4] = (entries >> i & 0x00010001u) * one;
      }
    }
#pragma unroll
    for (int product = 0; product < max_products; ++product) {
      cuda::keep_in_place(fragments_[product]);
    }
    cuda::keep_in_place(indices_);
  }

  __device__ void operator()(int num_steps, float (&sums)[Loader::width / 2]) const {
    if (num_steps == Record::max_steps) {
      cuda::wgmma_fence();
      add_up_to<max_products>(sums);
    } else {
      add_some<0>(num_steps / 2, sums);
    }
    cuda::wgmma_fence();
    cuda::wgmma_commit();
  }

 private:
  template <int end>
  __device__ void add_up_to(float (&sums)[Loader::width / 2]) const {
    if constexpr (end > 0) {
      add_up_to<end - 1>(sums);
      add<end - 1>(sums);
    }
  }

  /// Not all of them.
  template <int product>
  __device__ void add_some(int count, float (&sums)[Loader::width / 2]) const {
    if constexpr (product + 1 < max_products) {
      if (product < count) {
        cuda::wgmma_fence();
        add<product>(sums);
      }
      add_some<product + 1>(count, sums);
    }
  }

  template <int product>
  __device__ void add(float (&sums)[Loader::width / 2]) const {
#pragma unroll
    for (int plane = 0; plane < Loader::planes; ++plane) {
      const std::uint64_t b = cuda::wgmma_descriptor(rows_, Loader::Layout::block_bytes) +
                              std::uint64_t{2 * product} * cuda::wgmma_step +
                              plane * std::uint64_t{Loader::Layout::plane_bytes >> 4};
      cuda::wgmma_sparse<Element, product % tile_products>(sums, fragments_[product], b,
                                                           indices_[product / tile_products]);
    }
  }

  std::uint32_t rows_;  ///< of the stage, in shared memory
  std::uint32_t indices_[tiles];
  std::uint32_t fragments_[max_products][4];
};

/// Stores the sums of a window. `rows` are those of a stage, which nobody needs any more. Sums that
/// are multiplied on end elsewhere (aggregate_update/cuda/windows), never here.
template <class Loader>
requires(!requires { Loader::update_cols; }) __device__
    void end_window(const TallLaunch& launch, VertexId first_row, int last_row, char* rows,
                    float (&sums)[Loader::width / 2]) {
  constexpr int image_bytes = Loader::stage_bytes / (Loader::threads / 32);
  // Other warps may still multiply them.
  if constexpr (!Loader::aligned) __syncthreads();
  const TallStore<typename Loader::Source, Loader::width, Loader::aligned, has_epilogue<Loader>,
                  image_bytes>
      store(launch, first_row, last_row, rows + threadIdx.x / 32 * image_bytes);
  store(sums);
}

/// The sums of a piece are complete, and with them perhaps those of its window.
template <class Loader>
__device__ void finish(const TallLaunch& launch, const tiles::Stage& stage, char* rows,
                       float (&sums)[Loader::width / 2]) {
  VertexId first_row = stage.target;
  if (stage.end == tiles::StageEnd::slot) {
    const tiles::CutWindow window = launch.work.slot_windows[stage.target];
    if (!merge_pieces<Loader>(launch, window, stage.target, sums)) return;
    first_row = window.first_row;
  }
  end_window<Loader>(launch, first_row, stage.last_row, rows, sums);
}

template <bool first, class A, class B>
__device__ constexpr auto& either(A& a, B& b) {
  if constexpr (first) {
    return a;
  } else {
    return b;
  }
}

template <class Loader>
__device__ void sum_stages(const TallLaunch& launch, char* memory) {
  using Values = ValueRing<Loader::threads>;
  const std::uint32_t rows = cuda::shared_address(memory);
  const typename Loader::Feed feed(launch, memory + Loader::num_stages * Loader::stage_bytes);
  feed.start();
  cuda::wait_as_follower(launch.work.follows);
  if (launch.work.leads) cuda::let_next_begin();
  Loader loader(launch, rows);
  const Values values(launch,
                      memory + Loader::num_stages * Loader::stage_bytes + Loader::Feed::bytes);
  if constexpr (Loader::valued) values.ask(0, feed.values(0));
  loader.first(feed.stage(0).num_steps, feed.record(0));
  cuda::commit_copies();
  if constexpr (Loader::valued) values.ask(1, feed.values(1));
  loader.second(feed.stage(1).num_steps, feed.record(1));
  cuda::commit_copies();

  float sums[Loader::width / 2] = {};
  float of_stage[Loader::width / 2];
  auto& growing = either<Loader::exact_sums>(of_stage, sums);
  for (int turn = 0, place = 0;; ++turn) {
    // All but the latest group: the rows of this stage, and the record of the stage after next.
    cuda::wait_for_copies<1>();
    if constexpr (Loader::copies && !Loader::by_warps) cuda::fence_shared_for_wgmma();
    __syncthreads();
    const tiles::Stage stage = feed.stage(turn);
    if (stage.end == tiles::StageEnd::work) break;
    if constexpr (Loader::exact_sums) {
#pragma unroll
      for (float& sum : of_stage) sum = 0;
    }
    cuda::keep_in_place(growing);
    const std::uint32_t stage_rows = rows + static_cast<std::uint32_t>(place * Loader::stage_bytes);
    if constexpr (Loader::valued) {
      Multiply<Loader>(feed.record(turn), stage.num_steps, stage.bit_shift, values.place(turn),
                       feed.values(turn).skipped, stage_rows)(stage.num_steps, growing);
      values.ask(turn + 2, feed.values(turn + 2));
    } else {
      using Stage =
          typename std::conditional_t<Loader::quads, std::type_identity<MultiplyQuads<Loader>>,
                                      std::type_identity<Multiply<Loader>>>::type;
      Stage(feed.record(turn), stage.bit_shift, stage_rows)(stage.num_steps, growing);
    }
    loader.advance(feed.stage(turn + 2).num_steps, feed.record(turn + 1), feed.record(turn + 2),
                   place);
    feed.advance(turn);
    cuda::commit_copies();
    if constexpr (!Loader::by_warps) cuda::wgmma_wait();
    cuda::keep_in_place(growing);
    if constexpr (Loader::exact_sums) {
#pragma unroll
      for (int i = 0; i < Loader::width / 2; ++i) sums[i] += of_stage[i];
    }
    if (stage.end != tiles::StageEnd::none) {
      if (stage.end == tiles::StageEnd::stretch) {
        if (stage.after_stretch != 0) add_stretches<Loader::width>(launch, sums);
        put_aside<Loader::width>(launch, sums);
      } else {
        if (stage.after_stretch != 0) add_stretches<Loader::width>(launch, sums);
        finish<Loader>(launch, stage, memory + place * Loader::stage_bytes, sums);
      }
#pragma unroll
      for (float& sum : sums) sum = 0;
    }
    place = place + 1 < Loader::num_stages ? place + 1 : 0;
  }
  // What was asked for beyond the end must have arrived before the memory is another block's.
  cuda::wait_for_copies<0>();
}

template <class Loader>
__global__ __launch_bounds__(Loader::threads,
                             Loader::min_blocks) void sum_tall_windows(const TallLaunch launch) {
  cuda::begin_leader(launch.work.leads);
  extern __shared__ __align__(stage_alignment) char shared[];
#ifdef TESSERA_HAS_WGMMA
  sum_stages<Loader>(launch, shared);
#else
  if constexpr (Loader::by_warps) {
    sum_stages<Loader>(launch, shared);
  } else {
    __trap();
  }
#endif
  cuda::end_follower(launch.work.follows);
}

template <class Loader>
void launch_tall(const TallLaunch& launch, Stream stream) {
  const dim3 grid(static_cast<unsigned>(launch.work.num_workers),
                  cuda::num_blocks(launch.features.end - launch.features.begin,
                                   launch.features.panel_features));
  const auto bytes = static_cast<std::size_t>(tall_shared_bytes<Loader>(launch.matrix.stage_units));
  cuda::launch_overlapped(sum_tall_windows<Loader>, grid, Loader::threads, bytes, stream, launch);
}

template <class Loader>
int resident_tall_blocks(std::int32_t stage_units) {
  return cuda::resident_blocks(sum_tall_windows<Loader>, Loader::threads,
                               tall_shared_bytes<Loader>(stage_units),
                               tall_shared_bytes<Loader>(most_stage_units<Loader>()));
}

template <class Loader>
constexpr TallFunction make_tall_function() {
  return {Loader::width, Loader::rows / 16, launch_tall<Loader>, resident_tall_blocks<Loader>};
}

}  // namespace tessera::ops
