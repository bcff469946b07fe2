// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "ops/bits/cuda/byte_windows.hpp"
#include "ops/bits/finish_many.hpp"
#include "ops/spmm/cuda/tall/kernel.cuh"

/// Codes summed over tall windows, as spmm/cuda/tall sums features: rows are gathered as bytes and
/// become fp16 on their way into shared memory, which holds whole numbers up to 2048. Sums below
/// 2^24 are exact in fp32, in the matrix unit, too.
namespace tessera::ops {

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
  static constexpr int planes = 1;
  static constexpr int num_stages = 2;
  static constexpr bool scaled = false;
  static constexpr int min_blocks =
      width > 64 ? 2 : 3;  ///< the sums of 128 columns need the registers
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

  /// Two bytes as fp16: 0x6400 + b is 1024 + b.
  template <unsigned places>
  __device__ static std::uint32_t pair(std::uint32_t bytes) {
    const std::uint32_t above = __byte_perm(bytes, 0x64646464u, places);
    const std::uint32_t base = 0x64006400u;
    __half2 numbers, bases;
    memcpy(&numbers, &above, sizeof(above));
    memcpy(&bases, &base, sizeof(base));
    numbers = __hsub2(numbers, bases);
    std::uint32_t result;
    memcpy(&result, &numbers, sizeof(result));
    return result;
  }

  Share share_;
  std::uint32_t to_;
  bool live_ = false;  ///< whether there are loaded rows
  uint4 loaded_[Share::count];
};

/// The sums of a window: a thread holds two rows of its warp's 16, for every 8 columns the two at
/// 2 * (lane % 4).
template <int width>
class ByteWindowStore {
 public:
  __device__ ByteWindowStore(const ByteWindowsResult& out, VertexId first_row, int last_row)
      : out_(out),
        first_row_(first_row),
        last_row_(last_row),
        quad_(static_cast<int>(threadIdx.x) % 4),
        first_col_(std::int64_t{blockIdx.y} * width) {}

  __device__ void operator()(const float (&sums)[width / 2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = static_cast<int>(threadIdx.x) / 32 * 16 + half * 8 +
                      static_cast<int>(threadIdx.x) % 32 / 4;
      const std::int64_t target = std::int64_t{first_row_} + row;
      const bool exists = row <= last_row_;
      switch (out_.result.kind) {
        case BitResultKind::sums:
          store_numbers(sums, half, target, exists, out_.result.sums);
          break;
        case BitResultKind::values:
          store_numbers(sums, half, target, exists, out_.result.values);
          break;
        default: store_codes(sums, half, target, exists); break;
      }
    }
  }

 private:
  __device__ static int place(int half, int block) { return 4 * block + 2 * half; }

  /// Of eight values the column of value i, from the first of four tiles of 8 columns; the last
  /// column where there is none.
  __device__ std::int64_t column_of(int block, int i) const {
    const std::int64_t col = first_col_ + (block + i / 2) * 8 + quad_ * 2 + i % 2;
    return col < out_.cols ? col : out_.cols - 1;
  }

  /// Two values of each of four tiles, as the epilogue makes them.
  __device__ void values_of(const float (&sums)[width / 2], int half, int block,
                            std::int64_t target, const FinishRow& row, float (&values)[8]) const {
    const BitFinish& finish = out_.result.finish;
    const auto column = [&](int i) { return column_of(block, i); };
#pragma unroll
    for (int i = 0; i < 8; ++i) values[i] = sums[place(half, block + i / 2) + i % 2];
    if (finish.own != 0) {
#pragma unroll
      for (int i = 0; i < 8; ++i) values[i] = finish.with_own(target, column(i), values[i]);
    }
    finish_values(finish, row, column, values);
  }

  template <class T>
  __device__ void store_numbers(const float (&sums)[width / 2], int half, std::int64_t target,
                                bool exists, T* numbers) const {
    if (!exists) return;
    FinishRow row;
    if constexpr (std::is_same_v<T, float>) row = out_.result.finish.row(target);
#pragma unroll
    for (int block = 0; block < width / 8; block += 4) {
      float values[8];
      if constexpr (std::is_same_v<T, float>) {
        values_of(sums, half, block, target, row, values);
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) values[i] = sums[place(half, block + i / 2) + i % 2];
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const std::int64_t col = first_col_ + (block + i / 2) * 8 + quad_ * 2 + i % 2;
        if (col >= out_.cols) continue;
        if constexpr (std::is_same_v<T, float>) {
          numbers[target * out_.result.stride + col] = values[i];
        } else {
          numbers[target * out_.result.stride + col] = __float2int_rn(values[i]);
        }
      }
    }
  }

  /// Four lanes trade their pairs of codes, so that each has 8 neighbouring columns of 32.
  __device__ void store_codes(const float (&sums)[width / 2], int half, std::int64_t target,
                              bool exists) const {
    const BitResult& result = out_.result;
    FinishRow row;
    if (exists) row = result.finish.row(target);
#pragma unroll
    for (int block = 0; block < width / 8; block += 4) {
      std::uint32_t words[4] = {};
      if (exists) {
        float values[8];
        std::uint32_t codes[8];
        values_of(sums, half, block, target, row, values);
        finish_codes(
            result.finish, [&](int i) { return column_of(block, i); }, values, codes);
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const std::int64_t col = first_col_ + (block + i / 2) * 8 + quad_ * 2 + i % 2;
          if (col < out_.cols) words[i / 2] |= codes[i] << (i % 2 * 8);
        }
      }
      transpose_quad(words);
      const std::uint32_t low = words[0] | words[1] << 16;
      const std::uint32_t high = words[2] | words[3] << 16;
      const std::int64_t first = first_col_ + block * 8;
      if (result.kind == BitResultKind::rows) {
        store_planes(low, high, target, first / 32);
      } else if (exists && first + quad_ * 8 < (out_.cols + 15) / 16 * 16) {
        *reinterpret_cast<uint2*>(result.bytes + target * result.stride + first + quad_ * 8) =
            make_uint2(low, high);
      }
    }
    if (result.kind == BitResultKind::rows && blockIdx.y + 1 == gridDim.y) clear_words(target);
  }

  /// Bit `plane` of four bytes as four bits.
  __device__ static std::uint32_t plane_of(std::uint32_t bytes, int plane) {
    return (bytes >> plane & 0x01010101u) * 0x01020408u >> 24;
  }

  __device__ void store_planes(std::uint32_t low, std::uint32_t high, std::int64_t target,
                               std::int64_t word) const {
    const PackedCodes& to = out_.result.codes;
    for (int plane = 0; plane < to.bits; ++plane) {
      std::uint32_t bits = (plane_of(low, plane) | plane_of(high, plane) << 4) << (quad_ * 8);
      bits |= __shfl_xor_sync(0xFFFFFFFFu, bits, 1);
      bits |= __shfl_xor_sync(0xFFFFFFFFu, bits, 2);
      if (plane % 4 == quad_ && target < out_.all_rows && word < to.words_per_row) {
        to.words[(plane * to.padded_rows + target) * to.words_per_row + word] = bits;
      }
    }
  }

  /// What fills a row of words up behind the last block of columns.
  __device__ void clear_words(std::int64_t target) const {
    const PackedCodes& to = out_.result.codes;
    if (target >= out_.all_rows) return;
    for (int plane = quad_; plane < to.bits; plane += 4) {
      std::uint32_t* const words = to.words + (plane * to.padded_rows + target) * to.words_per_row;
      for (std::int64_t word = (first_col_ + width) / 32; word < to.words_per_row; ++word) {
        words[word] = 0;
      }
    }
  }

  const ByteWindowsResult& out_;
  VertexId first_row_;
  int last_row_;
  int quad_;
  std::int64_t first_col_;
};

template <class Loader>
__device__ void finish_bytes(const TallLaunch& launch, const ByteWindowsResult& out,
                             const tiles::Stage& stage, float (&sums)[Loader::width / 2]) {
  VertexId first_row = stage.target;
  if (stage.end == tiles::StageEnd::slot) {
    const tiles::CutWindow window = launch.work.slot_windows[stage.target];
    if (!merge_pieces<Loader::width>(launch, window, stage.target, sums)) return;
    first_row = window.first_row;
  }
  ByteWindowStore<Loader::width>(out, first_row, stage.last_row)(sums);
}

/// As sum_stages of spmm/cuda/tall.
template <class Loader>
__device__ void sum_byte_stages(const TallLaunch& launch, const ByteWindowsResult& out,
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
      finish_bytes<Loader>(launch, out, stage, sums);
#pragma unroll
      for (float& sum : sums) sum = 0;
    }
    place = 1 - place;
  }
  // What was asked for beyond the end must have arrived before the memory is another block's.
  cuda::wait_for_copies<0>();
}

template <class Loader>
constexpr int byte_windows_shared_bytes =
    Loader::num_stages* Loader::stage_bytes + Loader::Feed::bytes;

template <class Loader>
__global__ __launch_bounds__(Loader::threads, Loader::min_blocks) void sum_byte_windows(
    const TallLaunch launch, const ByteWindowsResult out) {
#ifdef TESSERA_HAS_WGMMA
  cuda::let_next_begin();
  extern __shared__ __align__(stage_alignment) char shared[];
  sum_byte_stages<Loader>(launch, out, shared);
#else
  __trap();
#endif
}

template <int width>
constexpr ByteWindowsFunction byte_windows_function() {
  using Loader = ByteLoader<width>;
  return {width, Loader::rows / 16,
          [](const TallLaunch& launch, const ByteWindowsResult& out, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.work.num_workers),
                            cuda::num_blocks(out.cols, width));
            cuda::launch_overlapped(sum_byte_windows<Loader>, grid, Loader::threads,
                                    static_cast<std::size_t>(byte_windows_shared_bytes<Loader>),
                                    stream, launch, out);
          },
          [] {
            return cuda::resident_blocks(sum_byte_windows<Loader>, Loader::threads,
                                         byte_windows_shared_bytes<Loader>,
                                         byte_windows_shared_bytes<Loader>);
          }};
}

}  // namespace tessera::ops
