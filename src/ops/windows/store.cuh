// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/divide.cuh"
#include "cuda/offsets.cuh"
#include "cuda/vectors.cuh"
#include "ops/dense/cuda/epilogue.cuh"
#include "ops/windows/quad_rows.cuh"
#include "ops/windows/row_image.cuh"
#include "ops/windows/stages.cuh"

/// What becomes of the sums of a window.
namespace tessera::ops {

/// A thread holds two rows of its warp's 16: for every 8 features the two at 2 * (lane % 4). Y is
/// the first that the cache may forget: rows of X are needed again, those of Y not.
template <class T, int width, bool aligned, bool epilogue, int image_bytes>
class TallStore {
 public:
  /// Stores the rows first_row .. first_row + last_row, by way of `image`, memory of the warp of so
  /// many bytes, unless they lie on boundaries.
  __device__ TallStore(const TallLaunch& launch, VertexId first_row, int last_row, char* image)
      : launch_(launch),
        first_row_(first_row),
        last_row_(last_row),
        image_(image),
        lane_(static_cast<int>(threadIdx.x) % 32),
        first_feature_(launch.features.panel(blockIdx.y)),
        end_feature_(min(first_feature_ + launch.features.panel_features, launch.features.end)) {}

  __device__ void operator()(float (&sums)[width / 2]) const {
    if constexpr (epilogue) {
      // It is long: there is code for one half alone, and the sums of the other move up.
#pragma unroll 1
      for (int half = 0; half < 2; ++half) {
        store_row(half, sums, 0);
#pragma unroll
        for (int block = 0; block < width / 8; ++block) {
          sums[place(0, block)] = sums[place(1, block)];
          sums[place(0, block) + 1] = sums[place(1, block) + 1];
        }
      }
    } else {
#pragma unroll
      for (int half = 0; half < 2; ++half) store_row(half, sums, half);
    }
  }

 private:
  /// The first or second of a thread's rows, whose sums stand as those of a half.
  __device__ void store_row(int number, float (&sums)[width / 2], int half) const {
    const int row = static_cast<int>(threadIdx.x) / 32 * 16 + number * 8 + lane_ / 4;
    const bool exists = row <= last_row_;
    const VertexId in_window = first_row_ + (exists ? row : 0);
    const VertexId target =
        launch_.work.row_map != nullptr ? __ldg(launch_.work.row_map + in_window) : in_window;
    const float scale =
        launch_.epilogue.row_scale != nullptr ? __ldg(launch_.epilogue.row_scale + target) : 1.0f;
    if (launch_.epilogue.rest != nullptr) {
      multiply(sums, half, launch_.epilogue.unit);
      if (cuda::degree_at(launch_.matrix.rest_offsets, in_window) != 0) {
        add_rest(sums, half, in_window);  // others have no sums there
      }
      multiply(sums, half, scale);
    } else {
      // The unit is a power of two: nothing is rounded twice.
      multiply(sums, half, launch_.epilogue.unit * scale);
    }
    if (launch_.epilogue.row_divisor != nullptr) {
      divide(sums, half, cuda::DivideBy(__ldg(launch_.epilogue.row_divisor + target)));
    }
    to_y(sums, half, target, exists);
  }

  /// A row's features: two in every four of a thread's sums.
  __device__ static int place(int half, int block) { return 4 * block + 2 * half; }

  __device__ static void multiply(float (&sums)[width / 2], int half, float factor) {
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      sums[place(half, block)] *= factor;
      sums[place(half, block) + 1] *= factor;
    }
  }
  /// A product with the reciprocal would round once more.
  __device__ static void divide(float (&sums)[width / 2], int half, const cuda::DivideBy& divided) {
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      float& first = sums[place(half, block)];
      float& second = sums[place(half, block) + 1];
      first = divided(first);
      second = divided(second);
    }
  }

  __device__ void add_rest(float (&sums)[width / 2], int half, VertexId row) const {
    const float* const rest =
        launch_.epilogue.rest + row * launch_.epilogue.rest_stride + first_feature_ + lane_ % 4 * 2;
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      const float2 pair = __ldcg(reinterpret_cast<const float2*>(rest + block * 8));
      sums[place(half, block)] += pair.x;
      sums[place(half, block) + 1] += pair.y;
    }
  }

  __device__ void to_y(float (&sums)[width / 2], int half, VertexId row, bool exists) const {
    if constexpr (epilogue) {
      apply_epilogue(sums, half, row);
      with_output_type<T>(launch_.epilogue.output, [&]<class Out>(std::type_identity<Out>) {
        put<Out>(sums, half, row, exists);
      });
    } else {
      put<T>(sums, half, row, exists);
    }
  }

  /// The first of a thread's features; its pairs are 8 apart.
  __device__ std::int64_t feature() const { return first_feature_ + lane_ % 4 * 2; }
  /// Features from there on: pair number `block` is there if 8 * block is less.
  __device__ int features_left() const { return static_cast<int>(end_feature_ - feature()); }

  /// Each part of it once for all pairs of a row.
  __device__ void apply_epilogue(float (&sums)[width / 2], int half, VertexId row) const {
    const EpilogueLaunch& parts = launch_.epilogue;
    if (parts.residual != nullptr) {
      add_stored_pairs(parts.residual, row * parts.residual_stride, residual_factor<T>(parts), sums,
                       half);
    }
    if (parts.bias != nullptr) add_stored_pairs(parts.bias, 0, 1, sums, half);
    const DeviceFormula formula(parts.formula);
    formula.activate([&](auto&& change) {
#pragma unroll
      for (int block = 0; block < width / 8; ++block) {
        change(sums[place(half, block)]);
        change(sums[place(half, block) + 1]);
      }
    });
    if (formula.drops) drop(formula.dropout, sums, half, row);
  }

  /// Random numbers are drawn in a loop, a bit for each feature: they are long.
  __device__ void drop(const DropoutConstants& dropout, float (&sums)[width / 2], int half,
                       VertexId row) const {
    const std::int64_t first = row * launch_.features.count + feature();
    const std::uint32_t kept =
        aligned ? kept_in_quads(dropout, first) : kept_anywhere(dropout, first);
    const auto kept_factor = static_cast<float>(dropout.kept_factor);
#pragma unroll
    for (int i = 0; i < width / 4; ++i) {
      sums[place(half, i / 2) + i % 2] *= (kept >> i & 1) != 0 ? kept_factor : 0.0f;
    }
  }

  /// Bits 2 * block and 2 * block + 1 say whether this lane's features of a block are kept, of
  /// which the first is element `first`.
  __device__ static std::uint32_t kept_anywhere(const DropoutConstants& dropout,
                                                std::int64_t first) {
    const std::uint32_t step = present_step(dropout);
    std::uint32_t kept = 0;
#pragma unroll 1
    for (int block = 0; block < width / 8; ++block) {
      const auto element = static_cast<std::uint64_t>(first + 8 * block);
      const std::uint32_t bits =
          kept_bits(dropout, step, element / 4) | kept_bits(dropout, step, element / 4 + 1) << 4;
      kept |= (bits >> element % 4 & 3) << 2 * block;
    }
    return kept;
  }

  /// The same where rows have whole counters: two neighbouring lanes have the features of one, and
  /// draw for every second block each.
  __device__ std::uint32_t kept_in_quads(const DropoutConstants& dropout,
                                         std::int64_t first) const {
    const std::uint32_t step = present_step(dropout);
    const int parity = lane_ % 2;
    std::uint32_t own = 0;
#pragma unroll 2
    for (int pair = 0; pair < width / 16; ++pair) {
      const auto element = static_cast<std::uint64_t>(first + 8 * (2 * pair + parity));
      own |= kept_bits(dropout, step, element / 4) << 4 * pair;
    }
    const std::uint32_t others = __shfl_xor_sync(~0u, own, 1);
    const std::uint32_t even = (parity == 0 ? own : others) >> 2 * parity & 0x33333333u;
    const std::uint32_t odd = (parity == 0 ? others : own) >> 2 * parity & 0x33333333u;
    return even | odd << 2;
  }

  /// Four pairs are loaded before the first is added.
  __device__ void add_stored_pairs(const void* from, std::int64_t at, float factor,
                                   float (&sums)[width / 2], int half) const {
    using Pair = cuda::Vector<T, 2 * static_cast<int>(sizeof(T))>;
    const T* const stored = static_cast<const T*>(from) + at + feature();
    const int left = features_left();
    const bool whole = reinterpret_cast<std::uintptr_t>(stored) % sizeof(typename Pair::Raw) == 0;
#pragma unroll
    for (int first = 0; first < width / 8; first += 4) {
      float pairs[4][2] = {};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int block = first + i;
        if (8 * block >= left) continue;
        if (whole && (aligned || 8 * block + 1 < left)) {
          Pair::load(stored + 8 * block).widen_to(pairs[i]);
        } else {
          pairs[i][0] = cuda::widen(stored[8 * block]);
          if (aligned || 8 * block + 1 < left) pairs[i][1] = cuda::widen(stored[8 * block + 1]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sums[place(half, first + i)] += factor * pairs[i][0];
        sums[place(half, first + i) + 1] += factor * pairs[i][1];
      }
    }
  }

  template <class Out>
  __device__ void put(const float (&sums)[width / 2], int half, VertexId row, bool exists) const {
    Out* const y = static_cast<Out*>(launch_.features.y) + row * launch_.features.y_stride;
    if constexpr (aligned && sizeof(T) == 2 && sizeof(Out) == 2) {
      whole_units(y, sums, half, exists);
    } else if constexpr (!aligned) {
      through_image(y, sums, half, exists);
    } else {
      const int left = exists ? features_left() : 0;
      Out* const stored = y + feature();
#pragma unroll
      for (int block = 0; block < width / 8; ++block) {
        const float pair[2] = {sums[place(half, block)], sums[place(half, block) + 1]};
        if (8 * block >= left) continue;
        if constexpr (sizeof(Out) == 4) {
          __stcs(reinterpret_cast<float2*>(stored + 8 * block), make_float2(pair[0], pair[1]));
        } else {
          cuda::Vector<Out, 4>::narrowed(pair).store(stored + 8 * block);
        }
      }
    }
  }

  /// Four lanes trade the pairs of four blocks of 8 features: each has the 8 of one of them then.
  template <class Out>
  __device__ static uint4 traded_unit(const float (&sums)[width / 2], int half, int block) {
    std::uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = place(half, block + i);
      const Out pair[2] = {cuda::narrow<Out>(sums[at]), cuda::narrow<Out>(sums[at + 1])};
      memcpy(&words[i], pair, sizeof(pair));
    }
    transpose_quad(words);
    return make_uint4(words[0], words[1], words[2], words[3]);
  }

  /// 16-bit features: lanes store 16 bytes each, and together they fill whole sectors.
  template <class Out>
  __device__ void whole_units(Out* y, const float (&sums)[width / 2], int half, bool exists) const {
#pragma unroll
    for (int block = 0; block < width / 8; block += 4) {
      const uint4 unit = traded_unit<Out>(sums, half, block);
      const std::int64_t first = first_feature_ + (block + lane_ % 4) * 8;
      if (exists && first < end_feature_) {
        __stcs(reinterpret_cast<uint4*>(y + first), unit);
      }
    }
  }

  /// Rows of Y that begin anywhere.
  template <class Out>
  __device__ void through_image(Out* y, const float (&sums)[width / 2], int half,
                                bool exists) const {
    const RowImage<Out, width, image_bytes> image(image_);
    const bool follow = launch_.features.y_stride == end_feature_ - first_feature_ &&
                        launch_.work.row_map == nullptr;
    image.store(y + first_feature_, static_cast<int>(end_feature_ - first_feature_), follow,
                __popc(__ballot_sync(~0u, exists)) / 4, [&](int block) {
                  return make_float2(sums[place(half, block)], sums[place(half, block) + 1]);
                });
  }

  const TallLaunch& launch_;
  VertexId first_row_;
  int last_row_;
  char* image_;
  int lane_;
  std::int64_t first_feature_;
  std::int64_t end_feature_;
};

}  // namespace tessera::ops
