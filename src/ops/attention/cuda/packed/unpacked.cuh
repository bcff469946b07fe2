// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/gat.cuh"
#include "ops/attention/cuda/tall/steps.cuh"

namespace tessera::ops {

/// A piece of a window by an exponential per cell and bf16 features as they are, tile by tile in
/// `memory`. It is seldom needed, and nothing is under way meanwhile.
template <int width, int features>
__device__ void attend_unpacked(const TallAttentionLaunch& launch, const tiles::Piece& piece,
                                char* memory) {
  using T = __nv_bfloat16;
  constexpr int heads = features / width;
  constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
  using Rows = TileRows<features>;
  const int first_head = static_cast<int>(blockIdx.y) * heads;
  struct Stage {
    float r[heads][tiles::tile_columns];
  };
  auto& stage = *reinterpret_cast<Stage*>(memory + Rows::bytes);
  const typename Rows::Copy values(launch.value, launch.value_stride,
                                   std::int64_t{first_head} * width, launch.heads * width);
  GatTiles<T, width, heads> form(launch, first_head);
  form.begin_window(piece);
  HeadSums<T, width> sums[heads];
  for (int done = 0; done < piece.num_steps; done += tile_steps) {
    const int steps = min(piece.num_steps - done, tile_steps);
    const int num_columns = steps * tiles::step_columns;
    const VertexId* const columns =
        launch.columns + (std::int64_t{piece.first_step} + done) * tiles::step_columns;
    __syncthreads();
    VertexId rows[Rows::share];
    Rows::load_ids(rows, columns, num_columns);
    values.start(cuda::shared_address(memory), rows, num_columns);
    cuda::commit_copies();
    for (int i = static_cast<int>(threadIdx.x); i < heads * num_columns;
         i += tall_attention_threads) {
      const int head = first_head + i / num_columns;
      const int column = i % num_columns;
      const T* const from = static_cast<const T*>(launch.source) +
                            std::int64_t{__ldg(columns + column)} * launch.source_stride;
      stage.r[i / num_columns][column] =
          head < launch.heads ? cuda::widen(__ldg(from + head)) * log2_of_e : 0.0f;
    }
    const std::int64_t tile = std::int64_t{piece.first_tile} + done / tile_steps;
    const TilePattern pattern{__ldg(launch.words + tile * tall_attention_threads + threadIdx.x)};
    cuda::wait_for_copies<0>();
    __syncthreads();
    add_exponentials<Rows>(sums, form, stage, cuda::shared_address(memory), pattern, steps);
  }
  finish_piece<T, width * heads>(launch, piece, sums);
}

}  // namespace tessera::ops
