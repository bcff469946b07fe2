// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "ops/bits/cuda/emit.cuh"
#include "ops/bits/cuda/half_windows.hpp"
#include "ops/spmm/cuda/tall/kernel.cuh"

/// Codes summed over tall windows, as spmm/cuda/tall sums features: rows are gathered as bytes and
/// become fp16 on their way into shared memory. A byte with zeros before it is a subnormal number
/// of fp16, so many times 2^-24. Sums below 2^24 times that are exact in fp32, in the matrix unit,
/// too.
namespace tessera::ops {

inline constexpr float byte_unit = 16777216.0f;

/// Through registers: loaded two stages and stored one stage ahead.
template <int width_>
class ByteLoader {
 public:
  using Source = __half;
  using Element = __half;
  static constexpr int width = width_;
  static constexpr int threads = 128;
  static constexpr int rows = stage_rows<__half, width, false>();
  static constexpr bool valued = false;
  static constexpr bool by_warps = false;
  static constexpr int planes = 1;
  static constexpr int num_stages = 2;
  static constexpr bool scaled = false;
  static constexpr int min_blocks = width > 64 ? 3 : 4;
  using Layout = StageLayout<width, rows>;
  using Share = RowShare<std::uint8_t, width, rows, threads>;
  using Feed = StageFeed<rows, threads, false, false>;
  using Record = typename Feed::Record;
  static constexpr int stage_bytes = Layout::plane_bytes;

  __device__ ByteLoader(const TallLaunch& launch, std::uint32_t stages)
      : share_(launch), to_(stages + Layout::offset(share_.first_row, share_.unit * 2)) {}

  __device__ void first(int num_steps, Record record) {
    pull(num_steps, record);
    store(0);
  }
  __device__ void second(int num_steps, Record record) { pull(num_steps, record); }
  __device__ void advance(int num_steps, Record after_next, int now) {
    store(1 - now);
    pull(num_steps, after_next);
  }

 private:
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

  /// As ConvertLoader::store: the fence comes before the next rows are asked for.
  __device__ void store(int place) {
    if (live_) {
      const std::uint32_t to = to_ + static_cast<std::uint32_t>(place * stage_bytes);
#pragma unroll
      for (int i = 0; i < Share::count; ++i) {
        const std::uint32_t at = Layout::further(to, i);
        store_eight(at, loaded_[i].x, loaded_[i].y);
        store_eight(at ^ 16u, loaded_[i].z, loaded_[i].w);
      }
    }
    cuda::fence_shared_for_wgmma();
  }

  __device__ static void store_eight(std::uint32_t at, std::uint32_t low, std::uint32_t high) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(pair<0x4140>(low)),
                 "r"(pair<0x4342>(low)), "r"(pair<0x4140>(high)), "r"(pair<0x4342>(high))
                 : "memory");
  }

  /// Two bytes as fp16.
  template <unsigned places>
  __device__ static std::uint32_t pair(std::uint32_t bytes) {
    return __byte_perm(bytes, 0, places);
  }

  Share share_;
  std::uint32_t to_;
  bool live_ = false;  ///< whether there are loaded rows
  uint4 loaded_[Share::count];
};

/// The sums of a window pass through shared memory, so that a lane finishes 16 columns of a row: of
/// the fragments a thread holds two rows of its warp's 16, for every 8 columns the two at
/// 2 * (lane % 4). Units of four sums change places so that neither writing nor reading makes banks
/// collide.
template <int width>
class ByteWindowStore {
 public:
  static constexpr int lanes = width / 16;
  static constexpr int warp_rows = width > 64 ? 8 : 16;  ///< at a time
  static constexpr int warp_bytes = warp_rows * width * 4;
  static_assert(warp_rows * lanes % 32 == 0);

  /// `memory` is one stage's; all warps are done with it.
  __device__ ByteWindowStore(const AggregateResult& out, VertexId first_row, char* memory)
      : out_(out),
        first_row_(first_row),
        lane_(static_cast<int>(threadIdx.x) % 32),
        warp_(static_cast<int>(threadIdx.x) / 32),
        sums_(reinterpret_cast<float*>(memory + warp_ * warp_bytes)) {}

  __device__ void operator()(const float (&sums)[width / 2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      write(half, sums);
      if (half * 8 + 8 < warp_rows) continue;
      __syncwarp();
#pragma unroll 1
      for (int i = 0; i < warp_rows * lanes; i += 32) {
        finish_unit(half * 8 + 8 - warp_rows, (i + lane_) / lanes, (i + lane_) % lanes);
      }
      __syncwarp();
    }
  }

 private:
  __device__ void write(int half, const float (&sums)[width / 2]) const {
    const int row = (half * 8 + lane_ / 4) % warp_rows;
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      float* const to = place(row, block * 2 + lane_ % 4 / 2) + lane_ % 2 * 2;
      *reinterpret_cast<float2*>(to) = make_float2(sums[block * 4 + half * 2] * byte_unit,
                                                   sums[block * 4 + half * 2 + 1] * byte_unit);
    }
  }

  __device__ float* place(int row, int four) const {
    return sums_ + row * width + (four ^ (four >> 3 & 3) ^ (row & 3) << 1) * 4;
  }

  __device__ void finish_unit(int first, int row, int unit) const {
    float sums[16];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 four = *reinterpret_cast<const float4*>(place(row, unit * 4 + i));
      memcpy(sums + i * 4, &four, sizeof(four));
    }
    const std::int64_t target = std::int64_t{first_row_} + warp_ * 16 + first + row;
    emit<lanes>(out_, target, std::int64_t{blockIdx.y} * width + unit * 16, target < out_.all_rows,
                sums);
  }

  const AggregateResult& out_;
  VertexId first_row_;
  int lane_;
  int warp_;
  float* sums_;
};

template <class Loader>
__device__ void finish_bytes(const TallLaunch& launch, const AggregateResult& out,
                             const tiles::Stage& stage, float (&sums)[Loader::width / 2],
                             char* memory) {
  VertexId first_row = stage.target;
  if (stage.end == tiles::StageEnd::slot) {
    const tiles::CutWindow window = launch.work.slot_windows[stage.target];
    if (!merge_pieces<Loader::width>(launch, window, stage.target, sums)) return;
    first_row = window.first_row;
  }
  static_assert(4 * ByteWindowStore<Loader::width>::warp_bytes <= Loader::stage_bytes);
  // Other warps may still multiply what is there.
  __syncthreads();
  ByteWindowStore<Loader::width>(out, first_row, memory)(sums);
}

/// As sum_stages of spmm/cuda/tall.
template <class Loader>
__device__ void sum_byte_stages(const TallLaunch& launch, const AggregateResult& out,
                                char* memory) {
  const std::uint32_t rows = cuda::shared_address(memory);
  const typename Loader::Feed feed(launch, memory + Loader::num_stages * Loader::stage_bytes);
  feed.start_stages();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  feed.start_records();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  cuda::wait_for_previous();
  Loader loader(launch, rows);
  loader.first(feed.stage(0).num_steps, feed.record(0));
  cuda::commit_copies();
  loader.second(feed.stage(1).num_steps, feed.record(1));
  cuda::commit_copies();

  float sums[Loader::width / 2] = {};
  for (int turn = 0, place = 0;; ++turn) {
    cuda::wait_for_copies<1>();
    __syncthreads();
    const tiles::Stage stage = feed.stage(turn);
    if (stage.end == tiles::StageEnd::work) break;
    cuda::keep_in_place(sums);
    const std::uint32_t stage_rows = rows + static_cast<std::uint32_t>(place * Loader::stage_bytes);
    Multiply<Loader>(feed.record(turn), stage.bit_shift, stage_rows)(stage.num_steps, sums);
    loader.advance(feed.stage(turn + 2).num_steps, feed.record(turn + 2), place);
    feed.advance(turn);
    cuda::commit_copies();
    cuda::wgmma_wait();
    cuda::keep_in_place(sums);
    if (stage.end != tiles::StageEnd::none) {
      finish_bytes<Loader>(launch, out, stage, sums, memory + place * Loader::stage_bytes);
#pragma unroll
      for (float& sum : sums) sum = 0;
    }
    place = 1 - place;
  }
  // What was asked for beyond the end must have arrived before the memory is another block's.
  cuda::wait_for_copies<0>();
}

template <class Loader>
constexpr int half_windows_shared_bytes =
    Loader::num_stages* Loader::stage_bytes + Loader::Feed::bytes;

template <class Loader>
__global__ __launch_bounds__(Loader::threads,
                             Loader::min_blocks) void sum_half_windows(const TallLaunch launch,
                                                                       const AggregateResult out) {
#ifdef TESSERA_HAS_WGMMA
  cuda::let_next_begin();
  extern __shared__ __align__(stage_alignment) char shared[];
  sum_byte_stages<Loader>(launch, out, shared);
#else
  __trap();
#endif
}

template <int width>
constexpr HalfWindowsFunction half_windows_function() {
  using Loader = ByteLoader<width>;
  return {width, Loader::rows / 16,
          [](const TallLaunch& launch, const AggregateResult& out, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.work.num_workers),
                            cuda::num_blocks(out.cols, width));
            cuda::launch_overlapped(sum_half_windows<Loader>, grid, Loader::threads,
                                    static_cast<std::size_t>(half_windows_shared_bytes<Loader>),
                                    stream, launch, out);
          },
          [] {
            return cuda::resident_blocks(sum_half_windows<Loader>, Loader::threads,
                                         half_windows_shared_bytes<Loader>,
                                         half_windows_shared_bytes<Loader>);
          }};
}

}  // namespace tessera::ops
