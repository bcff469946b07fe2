// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/async_copy.cuh"
#include "cuda/finite_bf16.cuh"
#include "cuda/vectors.cuh"
#include "cuda/wgmma.cuh"
#include "ops/windows/pattern.cuh"
#include "ops/windows/stages.cuh"

/// How gathered rows of X come into shared memory, in the order that matrix units read. Rows of X
/// lie on 16-byte boundaries and fill whole units of 16 bytes, be it with what nobody stores. Steps
/// that a stage does not have are neither brought nor multiplied.
namespace tessera::ops {

/// Rows of 64 features are 128 bytes, their 16-byte units exchanged by the row's number modulo 8 so
/// that neither writing rows nor reading columns makes banks collide. Wider rows continue in
/// another block of the same kind.
template <int width, int rows>
struct StageLayout {
  static constexpr int num_blocks = width > 64 ? width / 64 : 1;
  static constexpr int block_bytes = rows * 128;
  static constexpr int plane_bytes = num_blocks * block_bytes;

  /// Where the 16 bytes from feature 8 * unit on lie.
  __device__ static std::uint32_t offset(int row, int unit) {
    return static_cast<std::uint32_t>(unit / 8 * block_bytes + row * 128 +
                                      ((unit % 8) ^ (row % 8)) * 16);
  }
  /// The same unit `rows_on` rows further on, if `address` is that of a row whose number is a
  /// multiple of a power of two above `rows_on`: the number changes in the bits for the row and in
  /// those of the exchange.
  __device__ static std::uint32_t further(std::uint32_t address, int rows_on) {
    return address ^ static_cast<std::uint32_t>(rows_on * (128 + 16));
  }
};

/// Rows of X in a stage: as many as there is room for, or registers to bring them. Values of edges
/// take room too. A block of four groups has a processor for itself.
template <class T, int width, bool valued, int groups = 1>
constexpr int stage_rows() {
  const int most = valued ? tiles::tile_columns : 128;
  const int wanted = sizeof(T) == 2 && width == 128 ? 64 : sizeof(T) == 2 ? 128 : 4096 / width;
  const int together = groups == 4 ? 2 * wanted : wanted;
  return together < most ? together : most;
}

/// The part of a stage that a thread brings: the same 16 bytes of some neighbouring rows.
template <class T, int width, int rows_, int threads>
struct RowShare {
  static constexpr int rows = rows_;
  static constexpr int elements = 16 / static_cast<int>(sizeof(T));
  static constexpr int units = width / elements;
  static constexpr int count = rows * units / threads;

  int unit;
  int first_row;
  bool active;         ///< whether the row has these features
  const char* source;  ///< in the first row of X
  std::uint32_t row_bytes;

  __device__ explicit RowShare(const TallLaunch& launch)
      : unit(static_cast<int>(threadIdx.x) % units),
        first_row(static_cast<int>(threadIdx.x) / units * count),
        row_bytes(static_cast<std::uint32_t>(launch.features.x_stride * sizeof(T))) {
    const int in_panel = unit * elements;
    const std::int64_t feature = launch.features.panel(blockIdx.y) + in_panel;
    active = in_panel < launch.features.panel_features && feature < launch.features.end;
    source = static_cast<const char*>(launch.features.x) + feature * static_cast<int>(sizeof(T));
    // One register pair, not a sum that is formed again for every row.
    asm volatile("" : "+l"(source));
  }
  /// Whether there are such features and rows: they are all of the same step.
  __device__ bool live(int num_steps) const { return active && first_row < num_steps * 16; }
  /// The entries of this thread in an array with one per row of a stage.
  template <class Entry>
  __device__ void read(const Entry* entries, Entry (&own)[count]) const {
    using Vector =
        std::conditional_t<count == 1, uint1, std::conditional_t<count == 2, uint2, uint4>>;
    static_assert(sizeof(Entry) == 4 && (count <= 2 || count % 4 == 0));
    const auto* const from = reinterpret_cast<const Vector*>(entries + first_row);
#pragma unroll
    for (int i = 0; i < count; i += static_cast<int>(sizeof(Vector)) / 4) {
      const Vector several = from[i * 4 / static_cast<int>(sizeof(Vector))];
      memcpy(own + i, &several, sizeof(several));
    }
  }
  __device__ const char* of(VertexId column) const {
    return source + static_cast<std::uint64_t>(static_cast<std::uint32_t>(column)) * row_bytes;
  }
  /// Asks for the rows of a stage's columns; the first goes to `to`.
  template <class Layout>
  __device__ void copy(int num_steps, const VertexId* listed, std::uint32_t to) const {
    if (!live(num_steps)) return;
    VertexId columns[count];
    read(listed, columns);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      cuda::copy_16_async(Layout::further(to, i), of(columns[i]));
    }
  }
};

/// 16-bit rows are copied as they are, two stages ahead, by threads that share them as `Share`
/// says.
template <class T, int width_, bool scaled_, int groups, bool aligned_ = true, bool valued_ = false,
          bool quads_ = false,
          class Share = RowShare<T, width_, stage_rows<T, width_, valued_, groups>(), groups * 128>>
class CopyLoader {
 public:
  using Source = T;
  using Element = T;
  static constexpr int width = width_;
  static constexpr int threads = groups * 128;
  static constexpr int rows = Share::rows;
  static constexpr bool valued = valued_;
  static constexpr bool quads = quads_;
  static constexpr bool by_warps = false;
  static constexpr int planes = 1;
  static constexpr int num_stages = 3;
  static constexpr bool scaled = scaled_;
  static constexpr bool aligned = aligned_;  ///< rows of Y, as those of X
  static constexpr bool copies = true;       ///< rows arrive by themselves
  static constexpr bool exact_sums = false;
  static constexpr int min_blocks = groups == 1 ? (valued ? 3 : 4) : groups == 2 ? 2 : 1;
  using Layout = StageLayout<width, rows>;
  using Feed = StageFeed<rows, threads, scaled, valued, quads>;
  using Record = typename Feed::Record;
  static constexpr int stage_bytes = Layout::plane_bytes;

  __device__ CopyLoader(const TallLaunch& launch, std::uint32_t stages)
      : share_(launch), to_(stages + Layout::offset(share_.first_row, share_.unit)) {}

  __device__ void first(int num_steps, Record record) { load(num_steps, record, 0); }
  __device__ void second(int num_steps, Record record) { load(num_steps, record, 1); }
  /// While the stage in place `now` is multiplied; the stage after next has so many steps.
  __device__ void advance(int num_steps, Record, Record after_next, int now) {
    load(num_steps, after_next, now == 0 ? 2 : now - 1);
  }

 private:
  __device__ void load(int num_steps, Record record, int place) {
    share_.template copy<Layout>(num_steps, record.columns(),
                                 to_ + static_cast<std::uint32_t>(place * stage_bytes));
  }

  Share share_;
  std::uint32_t to_;
};

/// The same for kernels whose warps multiply their own 16 rows.
template <class Loader>
struct OnWarps : Loader {
  using Loader::Loader;
  static constexpr bool by_warps = true;
};

/// fp32 rows, which are split into bf16 planes on the way (high, low, and lower still): through
/// registers, loaded two stages and stored one stage ahead.
template <int width_, int planes_, int groups, bool aligned_ = true, bool valued_ = false,
          bool quads_ = false>
class SplitLoader {
 public:
  using Source = float;
  using Element = __nv_bfloat16;
  static constexpr int width = width_;
  static constexpr int threads = groups * 128;
  static constexpr int rows = stage_rows<float, width, valued_, groups>();
  static constexpr bool valued = valued_;
  static constexpr bool quads = quads_;
  static constexpr bool by_warps = false;
  static constexpr int planes = planes_;
  static constexpr int num_stages = 2;
  static constexpr bool scaled = false;  ///< rows are multiplied as they arrive
  static constexpr bool aligned = aligned_;
  static constexpr bool copies = false;
  /// Whether stages are added up in fp32, not by the matrix unit.
  static constexpr bool exact_sums = planes == 3;
  static constexpr int min_blocks = groups == 4 ? 1 : groups == 1 ? 3 : 2;
  using Layout = StageLayout<width, rows>;
  using Share = RowShare<float, width, rows, threads>;
  using Feed = StageFeed<rows, threads, !valued, valued, quads>;
  using Record = typename Feed::Record;
  static constexpr int stage_bytes = planes * Layout::plane_bytes;

  __device__ SplitLoader(const TallLaunch& launch, std::uint32_t stages)
      : launch_(launch), share_(launch), to_(stages + offset(share_.first_row, share_.unit)) {}

  __device__ void first(int num_steps, Record record) {
    pull(num_steps, record);
    store(record, 0);
  }
  __device__ void second(int num_steps, Record record) { pull(num_steps, record); }
  __device__ void advance(int num_steps, Record next, Record after_next, int now) {
    store(next, 1 - now);
    pull(num_steps, after_next);
  }

 private:
  /// Units of four features become half a unit of bf16.
  __device__ static std::uint32_t offset(int row, int unit) {
    return Layout::offset(row, unit / 2) + static_cast<std::uint32_t>(unit % 2 * 8);
  }

  __device__ void pull(int num_steps, Record record) {
    live_ = share_.live(num_steps);
    if (!live_) return;
    VertexId columns[Share::count];
    share_.read(record.columns(), columns);
#pragma unroll
    for (int i = 0; i < Share::count; ++i) {
      loaded_[i] = __ldg(reinterpret_cast<const uint4*>(share_.of(columns[i])));
    }
  }

  /// The matrix unit must see what is written here. The fence waits for loads under way too, so it
  /// comes before the next ones are asked for.
  __device__ void store(Record record, int place) {
    if (live_) {
      if constexpr (!valued) {
        if (launch_.matrix.scales != nullptr) scale_rows(record);
      }
      const std::uint32_t to = to_ + static_cast<std::uint32_t>(place * stage_bytes);
#pragma unroll
      for (int i = 0; i < Share::count; ++i) store_planes(Layout::further(to, i), loaded_[i]);
    }
    cuda::fence_shared_for_wgmma();
  }

  __device__ void scale_rows(Record record) {
    std::uint32_t scales[Share::count];
    share_.read(record.scales(), scales);
#pragma unroll
    for (int i = 0; i < Share::count; ++i) {
      const auto scaled_word = [&](std::uint32_t word) {
        return __float_as_uint(__uint_as_float(word) * __uint_as_float(scales[i]));
      };
      loaded_[i] = make_uint4(scaled_word(loaded_[i].x), scaled_word(loaded_[i].y),
                              scaled_word(loaded_[i].z), scaled_word(loaded_[i].w));
    }
  }

  /// Each plane holds what the planes before it left: products with 0 and 1 are exact, so the sum
  /// is as good as the planes together, 2^-17 of a feature for two and fp32 itself for three.
  __device__ static void store_planes(std::uint32_t at, const uint4& raw) {
    std::uint32_t low[planes], high[planes];
    split(__uint_as_float(raw.x), __uint_as_float(raw.y), low);
    split(__uint_as_float(raw.z), __uint_as_float(raw.w), high);
#pragma unroll
    for (int plane = 0; plane < planes; ++plane) {
      asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(at + plane * Layout::plane_bytes),
                   "r"(low[plane]), "r"(high[plane])
                   : "memory");
    }
  }

  __device__ static void split(float first, float second, std::uint32_t (&pairs)[planes]) {
    if constexpr (planes == 3) {
      split_exactly(first, second, pairs);
    } else {
      cuda::split_in_two_planes(first, second, pairs);
    }
  }

  const TallLaunch& launch_;
  Share share_;
  std::uint32_t to_;
  bool live_ = false;  ///< whether there are loaded rows
  uint4 loaded_[Share::count];
};

}  // namespace tessera::ops
