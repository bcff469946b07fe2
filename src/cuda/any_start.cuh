// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

/// Rows of features that begin on no boundary of 16 bytes, in vectors of 16 bytes all the same.
///
///     memory    |  block 0   |  block 1   |  block 2   |        16 bytes each, on boundaries
///     a row            | unit 0     | unit 1  |                 begins `shift` bytes into a block
///
/// A unit lies in two blocks. Whoever loads it takes both and shifts them; whoever stores units
/// gives a block the end of the unit before and the beginning of its own.
namespace tessera::cuda {

/// How far into its block an address is.
__device__ inline unsigned shift_of(const void* address) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(address)) % 16;
}

/// The 16 bytes of two neighbouring blocks from byte `shift` on, a multiple of the size of T below
/// 16.
template <class T>
__device__ uint4 shifted_down(const uint4& first, const uint4& second, unsigned shift) {
  static_assert(sizeof(T) == 2 || sizeof(T) == 4);
  const std::uint32_t words[8] = {first.x,  first.y,  first.z,  first.w,
                                  second.x, second.y, second.z, second.w};
  std::uint32_t near[6], nearest[5];
#pragma unroll
  for (int i = 0; i < 6; ++i) near[i] = (shift & 8) != 0 ? words[i + 2] : words[i];
#pragma unroll
  for (int i = 0; i < 5; ++i) nearest[i] = (shift & 4) != 0 ? near[i + 1] : near[i];
  if constexpr (sizeof(T) == 2) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      nearest[i] = __funnelshift_r(nearest[i], nearest[i + 1], (shift & 2) * 8);
    }
  }
  return make_uint4(nearest[0], nearest[1], nearest[2], nearest[3]);
}

/// The two blocks of a unit, as they are loaded: several are in flight before the first is shifted.
template <class T>
struct UnitBlocks {
  uint4 first = {};
  uint4 second = {};
  unsigned shift = 0;

  /// Of a unit that has `bytes` bytes, in blocks that may be read; nothing unless `wanted`.
  __device__ void load_if(bool wanted, const char* from, int bytes) {
    shift = shift_of(from);
    const char* const block = from - shift;
    load_block(first, wanted, block);
    load_block(second, wanted && static_cast<int>(shift) + bytes > 16, block + 16);
  }
  /// Of a unit with `bytes` bytes beside which nothing may be read: by elements, four of them on
  /// their way at once, which is for the few units of which that is so.
  __device__ void load_alone(bool wanted, const char* from, int bytes) {
    first = make_uint4(0, 0, 0, 0);
    shift = 0;
#pragma unroll 1
    for (int at = 0; at < 16; at += 4 * static_cast<int>(sizeof(T))) {
      Bits elements[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int place = at + i * static_cast<int>(sizeof(T));
        const bool there = wanted && place < bytes;
        elements[i] = there ? __ldg(reinterpret_cast<const Bits*>(from + place)) : Bits{0};
      }
      if constexpr (sizeof(T) == 4) {
        first = make_uint4(elements[0], elements[1], elements[2], elements[3]);
      } else {
        first = make_uint4(first.z, first.w, __byte_perm(elements[0], elements[1], 0x5410),
                           __byte_perm(elements[2], elements[3], 0x5410));
      }
    }
  }
  __device__ uint4 unit() const { return shifted_down<T>(first, second, shift); }

 private:
  using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint32_t>;

  __device__ static void load_block(uint4& block, bool wanted, const char* from) {
    block = make_uint4(0, 0, 0, 0);
    asm("{ .reg .pred p; setp.ne.s32 p, %4, 0;\n"
        "  @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%5]; }"
        : "+r"(block.x), "+r"(block.y), "+r"(block.z), "+r"(block.w)
        : "r"(static_cast<int>(wanted)), "l"(from));
  }
};

/// Stores the first bytes of a block, less than 16 of them: 8, 4 and 2, each on a boundary of its
/// own size, where the bits of their number say so.
__device__ inline void store_first(char* block, const uint4& content, int bytes) {
  const bool eight = (bytes & 8) != 0;
  const bool four = (bytes & 4) != 0;
  if (eight) *reinterpret_cast<uint2*>(block) = make_uint2(content.x, content.y);
  const std::uint32_t word = eight ? content.z : content.x;
  if (four) *reinterpret_cast<std::uint32_t*>(block + (bytes & 8)) = word;
  if ((bytes & 2) == 0) return;
  const std::uint32_t last = four ? (eight ? content.w : content.y) : word;
  *reinterpret_cast<std::uint16_t*>(block + (bytes & 12)) = static_cast<std::uint16_t>(last);
}

/// The same of the last bytes of a block.
__device__ inline void store_last(char* block, const uint4& content, int bytes) {
  const bool eight = (bytes & 8) != 0;
  const bool four = (bytes & 4) != 0;
  if (eight) *reinterpret_cast<uint2*>(block + 8) = make_uint2(content.z, content.w);
  const std::uint32_t word = eight ? content.y : content.w;
  if (four) *reinterpret_cast<std::uint32_t*>(block + 12 - (bytes & 8)) = word;
  if ((bytes & 2) == 0) return;
  const std::uint32_t first = four ? (eight ? content.x : content.z) : word;
  *reinterpret_cast<std::uint16_t*>(block + 14 - (bytes & 12)) =
      static_cast<std::uint16_t>(first >> 16);
}

/// Stores the bytes [from, to) of a block, multiples of 2.
__device__ inline void store_part(char* block, const uint4& content, int from, int to) {
  if (from <= 0 && to >= 16) {
    *reinterpret_cast<uint4*>(block) = content;
  } else if (from <= 0) {
    if (to > 0) store_first(block, content, to);
  } else if (to >= 16) {
    store_last(block, content, 16 - from);
  } else {
    // A row of less than a block.
#pragma unroll 1
    for (int at = from; at < to; at += 2) {
      const std::uint32_t word =
          at < 8 ? (at < 4 ? content.x : content.y) : (at < 12 ? content.z : content.w);
      *reinterpret_cast<std::uint16_t*>(block + at) =
          static_cast<std::uint16_t>(word >> (at & 2) * 8);
    }
  }
}

/// Stores a unit of a row whose units lie with neighbouring lanes. `before` is the unit before,
/// unless this is the first; `bytes` of the row are left from this unit on, and units follow with
/// the next lane if `more`.
template <class T>
__device__ void store_unit(char* to, const uint4& unit, const uint4& before, int bytes, bool first,
                           bool more) {
  if (bytes <= 0) return;
  const unsigned shift = shift_of(to);
  char* const block = to - shift;
  const auto begin = static_cast<int>(shift);
  if (shift == 0) return store_part(block, unit, 0, bytes);
  store_part(block, shifted_down<T>(before, unit, 16 - shift), first ? begin : 0, begin + bytes);
  if (more && bytes > 16) return;
  // What is left of this unit when its block is full.
  store_part(block + 16, shifted_down<T>(unit, {}, 16 - shift), 0,
             min(begin + bytes, begin + 16) - 16);
}

}  // namespace tessera::cuda
