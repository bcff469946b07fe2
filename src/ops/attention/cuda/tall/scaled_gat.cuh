// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/tall/results.cuh"
#include "ops/attention/cuda/tall/scaled_windows.cuh"

/// The forward pass of GAT over windows of 64 rows.
namespace tessera::ops {

template <class T, int width>
class ScaledGat : public ScaledWindows<ScaledGat<T, width>, T, width, false> {
  using Base = ScaledWindows<ScaledGat<T, width>, T, width, false>;
  friend Base;
  using Base::failing_, Base::first_head, Base::first_row, Base::first_unit, Base::minus_l_,
      Base::lane;
  using Base::head_units, Base::warp_heads;
  using Base::launch_, Base::piece_, Base::shared_, Base::sums_, Base::tile_of, Base::warp;
  using typename Base::Sums, typename Base::Tile;

 public:
  using Base::Base, Base::block_features;

 private:
  /// Bases follow scores that lie so far above them, in powers of two.
  static constexpr float base_slack = 8;

  __device__ float& base_of(int h, int block, int row) const {
    return shared_.bases[warp()][h][block * 16 + row * 8 + lane() / 4];
  }

  __device__ void fold_all(int turn) {
#pragma unroll
    for (int h = 0; h < warp_heads; ++h) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        base_of(h, i / 2, i % 2) = fold(h, i / 2, i % 2, tile_of(turn).c[first_head() + h]);
      }
    }
  }
  /// The sums of a head and row in units of 2^base of the row, which it returns.
  __device__ float fold(int h, int block, int row, const float2& c) {
    const float own_exponent = c.x - minus_l_[h][block][row];
    const float sloped_exponent = c.y - launch_.slope * minus_l_[h][block][row];
    float base = own_exponent > 0 ? own_exponent : sloped_exponent;
    float own = power_of_2(own_exponent - base) / SignCells::unit;
    float sloped = power_of_2(sloped_exponent - base) / SignCells::unit;
    // Without an edge so far, whatever the terms are.
    if (!sums_[h][block].has_edges(row)) {
      base = lowest_base;
      own = sloped = 0;
    }
    sums_[h][block].scale_row(row, own, sloped);
    return base;
  }

  /// Every cell by its own exponential, relative to the largest score of its row so far.
  __device__ void add_unscaled(int turn, const std::uint32_t (&bits)[2], int num_steps) {
    const Tile& tile = tile_of(turn);
#pragma unroll
    for (int h = 0; h < warp_heads; ++h) {
#pragma unroll
      for (int block = 0; block < 2; ++block) {
        const TilePattern pattern{bits[block]};
        raise_bases(h, block, tile, pattern, num_steps);
        const float bases[2] = {base_of(h, block, 0), base_of(h, block, 1)};
#pragma unroll 1
        for (int step = 0; step < num_steps; ++step) {
          const StepPattern cells(pattern, step);
          if (!cells.has_edges()) continue;
          StepWeights<__nv_bfloat16> weights;
          each_score(h, block, tile, step, [&](int place, float even, float odd) {
            const float base = bases[place % 2];
            weights.set(place, cells.masked(power_of_2(even - base), place, 0),
                        cells.masked(power_of_2(odd - base), place, 1));
          });
          Sums& sums = sums_[h][block];
          std::uint32_t parts[4];
          tile.load_parts(parts, step, first_head() + h);
          Sums::add_unscaled_weights(sums.plus_weights, weights, parts);
#pragma unroll
          for (int group = 0; group < head_units; ++group) {
            std::uint32_t own[4];
            tile.load_rows(own, step, first_unit() + h * head_units + group, 0);
            Sums::add_unscaled(sums.plus[group], weights, own);
          }
        }
      }
    }
  }
  __device__ void raise_bases(int h, int block, const Tile& tile, const TilePattern& pattern,
                              int num_steps) {
    float top[2] = {-cuda::infinity, -cuda::infinity};
#pragma unroll 1
    for (int step = 0; step < num_steps; ++step) {
      const StepPattern cells(pattern, step);
      each_score(h, block, tile, step, [&](int place, float even, float odd) {
        float& of_row = top[place % 2];
        of_row = fmaxf(of_row, cells.has(place, 0) ? even : -cuda::infinity);
        of_row = fmaxf(of_row, cells.has(place, 1) ? odd : -cuda::infinity);
      });
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 1));
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 2));
      const float base = base_of(h, block, row);
      __syncwarp();
      if (!(top[row] > base + base_slack)) continue;
      const float factor = power_of_2(base - top[row]);
      sums_[h][block].scale_row(row, factor, factor);
      base_of(h, block, row) = top[row];
    }
    __syncwarp();
  }
  __device__ void finish(int turn) {
    const WindowResults<T, width, block_features> results(launch_);
#pragma unroll
    for (int h = 0; h < warp_heads; ++h) {
      const int head = first_head() + h;
#pragma unroll
      for (int block = 0; block < 2; ++block) {
#pragma unroll
        for (int row = 0; row < 2; ++row) {
          const float base =
              failing_ ? base_of(h, block, row) : fold(h, block, row, tile_of(turn).c[head]);
          const Sums& sums = sums_[h][block];
          float pairs[head_units][2];
#pragma unroll
          for (int group = 0; group < head_units; ++group) {
            pairs[group][0] = sums.plus[group][2 * row] + sums.minus[group][2 * row];
            pairs[group][1] = sums.plus[group][2 * row + 1] + sums.minus[group][2 * row + 1];
          }
          results.store(piece_, first_row() + block * 16 + row * 8 + lane() / 4,
                        first_unit() * 8 + h * width, pairs, base,
                        sums.plus_total(row) + sums.minus_total(row));
        }
      }
    }
    results.finish(piece_);
  }
};

}  // namespace tessera::ops
