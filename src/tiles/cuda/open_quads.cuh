// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tiles/cuda/quad_segments.cuh"

/// The quads of a segment that may still take columns, each in lanes of its own.
namespace tessera::tiles {

inline constexpr std::uint32_t all_rows = ~0u;
/// Quads that a lane has one of: most segments never have more open, since columns seldom meet.
inline constexpr int group_quads = 8;
inline constexpr int quad_groups = open_quads / group_quads;
inline constexpr unsigned group_bits = (1u << group_quads) - 1;

/// The rows that use a column.
template <int num_words>
struct alignas(num_words < 4 ? 4 * num_words : 16) RowWords {
  std::uint32_t words[num_words] = {};
};

/// Which lanes of a warp have what of a segment: lane q the first rows of quad q of every group,
/// lane q + 8 the next ones. Few rows in each of many lanes are sooner done.
template <int num_words>
struct SegmentLanes {
  static constexpr int parts = num_words > 4 ? num_words / 4 : 1;
  static constexpr int words = num_words / parts;  ///< of a lane
  static constexpr int count = group_quads * parts;

  static __device__ int own() { return static_cast<int>(threadIdx.x) % count; }
  static __device__ int quad() { return own() % group_quads; }
  static __device__ int part() { return own() / group_quads; }
  /// The quads of a group for which all lanes of the segment that have a part of them vote.
  static __device__ unsigned vote(bool votes) {
    const unsigned lanes = __ballot_sync(all_lanes, votes) >> (lane_number() - own());
    unsigned agreed = lanes & group_bits;
#pragma unroll
    for (int i = 1; i < parts; ++i) agreed &= lanes >> (i * group_quads);
    return agreed;
  }
};

/// The open quads of a segment. All lanes of a warp act together, whether their segments have
/// columns left or not. How long a column waits for the one before is what all of it takes.
template <int num_words>
class OpenQuads {
 public:
  using Lanes = SegmentLanes<num_words>;
  using Rows = RowWords<Lanes::words>;

  /// Writes down what comes to be in which quad, where there are zeros.
  __device__ explicit OpenQuads(QuadNote* notes)
      : notes_(reinterpret_cast<std::uint16_t*>(notes)) {}

  /// The place of the column that comes next: all before it have been added.
  __device__ std::int32_t next() const { return next_; }

  /// From now on there are quads of all groups.
  __device__ void use_all_groups() { of_size_[0] |= ~group_bits; }

  /// Adds the next column, and leaves others alone: to the fullest quad that fits, of equals to the
  /// first. Where none does, the one of which most rows use two makes way, or, if there are more
  /// groups than `num_groups`, the column stays the next one.
  template <int num_groups>
  __device__ void add(const Rows& set, std::int32_t place, bool is_column) {
    is_column = is_column && place == next_;
    unsigned fitting = 0;
#pragma unroll
    for (int group = 0; group < num_groups; ++group) {
      fitting |= Lanes::vote(fits(set, twice_[group])) << (group * group_quads);
    }
    if constexpr (num_groups == quad_groups) {
      const bool none_fits = is_column && (fitting | of_size_[0]) == 0;
      if (__any_sync(all_lanes, none_fits)) make_way(none_fits);
    }
    const unsigned with_three = fitting & of_size_[3];
    const unsigned with_two = fitting & of_size_[2];
    const unsigned with_one = fitting & of_size_[1];
    const unsigned with_more = with_three != 0 ? with_three : with_two;
    const unsigned with_fewer = with_one != 0 ? with_one : of_size_[0];
    const unsigned candidates = with_more != 0 ? with_more : with_fewer;
    const unsigned chosen = is_column ? candidates & (0u - candidates) : 0;
    const bool opens = (chosen & of_size_[0]) != 0;
#pragma unroll
    for (int group = 0; group < num_groups; ++group) {
      take(set, place, group, (chosen >> (group * group_quads) & own_) != 0, opens);
    }
    next_ += chosen != 0 ? 1 : 0;
    num_quads_ += opens ? 1 : 0;
    const unsigned full = of_size_[3];
#pragma unroll
    for (int size = 3; size > 0; --size) {
      of_size_[size] = (of_size_[size - 1] & chosen) | (of_size_[size] & ~chosen);
    }
    of_size_[0] = (full & chosen) | (of_size_[0] & ~chosen);
  }

  __device__ std::int32_t num_quads() const { return num_quads_; }

 private:
  __device__ static bool fits(const Rows& set, const Rows& twice) {
    std::uint32_t common[2] = {};  // two sums are known sooner than one
#pragma unroll
    for (int i = 0; i < Lanes::words; ++i) common[i % 2] |= set.words[i] & twice.words[i];
    return (common[0] | common[1]) == 0;
  }

  /// The lane's quad of a group takes a column if it is this one's: a new quad forgets what the
  /// last one there had.
  __device__ void take(const Rows& set, std::int32_t place, int group, bool mine, bool opens) {
    const std::uint32_t wanted = mine ? all_rows : 0;
    const std::uint32_t kept = mine && opens ? 0 : all_rows;
    std::int32_t& note = next_note_[group];
    note = mine && opens ? quad_columns * num_quads_ : note;
    if (mine && Lanes::part() == 0) notes_[note] = static_cast<std::uint16_t>(place + 1);
    note += mine ? 1 : 0;
    Rows& once = once_[group];
    Rows& twice = twice_[group];
#pragma unroll
    for (int i = 0; i < Lanes::words; ++i) {
      const std::uint32_t rows = set.words[i] & wanted;
      twice.words[i] = (twice.words[i] | (once.words[i] & rows)) & kept;
      once.words[i] = (once.words[i] & kept) | rows;
    }
  }

  /// In segments that need it, where all quads are open.
  __device__ void make_way(bool needed) {
    int most = 0;
#pragma unroll
    for (int group = 0; group < quad_groups; ++group) {
      int rows = 0;
#pragma unroll
      for (int i = 0; i < Lanes::words; ++i) rows += __popc(twice_[group].words[i]);
#pragma unroll
      for (int i = 1; i < Lanes::parts; i *= 2) {
        rows += __shfl_xor_sync(all_lanes, rows, i * group_quads);
      }
      most = max(most, rows * open_quads + open_quads - 1 - group * group_quads - Lanes::quad());
    }
#pragma unroll
    for (int distance = 1; distance < group_quads; distance *= 2) {
      most = max(most, __shfl_xor_sync(all_lanes, most, distance));
    }
    const unsigned chosen = needed ? 1u << (open_quads - 1 - most % open_quads) : 0;
#pragma unroll
    for (int size = 1; size < quad_columns; ++size) of_size_[size] &= ~chosen;
    of_size_[0] |= chosen;
  }

  std::uint16_t* notes_;
  unsigned own_ = 1u << Lanes::quad();
  /// Of the lane's rows, those that use a column of its quads, and those that use two, where they
  /// are open.
  Rows once_[quad_groups];
  Rows twice_[quad_groups];
  std::int32_t next_note_[quad_groups] = {};  ///< of their next columns
  /// The same for all lanes of the segment: quads that have so many columns.
  unsigned of_size_[quad_columns] = {group_bits, 0, 0, 0};
  std::int32_t next_ = 0;
  std::int32_t num_quads_ = 0;
};

}  // namespace tessera::tiles
