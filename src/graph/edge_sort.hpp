// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tessera/core/memory.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/types.hpp"

/// A stable parallel counting sort of edges by (major, minor): rows and columns for CSR, columns
/// and rows for CSC. Edges are first split into buckets of neighbouring majors, so that no thread
/// needs a histogram over all vertices, and each bucket is then sorted inside the cache.
namespace tessera::detail {

struct SortedEdges {
  Buffer<EdgeOffset> offsets;    ///< num_major + 1
  Buffer<VertexId> minors;       ///< increasing within a major; equal ones in input order
  Buffer<EdgeOffset> positions;  ///< where each edge stood in the input; empty unless asked for
};

/// Edges given as two arrays.
struct CooSource {
  std::span<const VertexId> majors;
  std::span<const VertexId> minors;

  template <class Visit>
  void for_each(EdgeOffset begin, EdgeOffset end, Visit&& visit) const {
    for (auto k = static_cast<std::size_t>(begin); k < static_cast<std::size_t>(end); ++k) {
      visit(static_cast<EdgeOffset>(k), majors[k], minors[k]);
    }
  }
};

/// The edges of a CSR, by column.
struct CsrByColumnSource {
  std::span<const EdgeOffset> row_offsets;
  const VertexId* col_indices;

  template <class Visit>
  void for_each(EdgeOffset begin, EdgeOffset end, Visit&& visit) const {
    const auto after = std::upper_bound(row_offsets.begin(), row_offsets.end(), begin);
    auto row = static_cast<std::size_t>(after - row_offsets.begin()) - 1;
    for (EdgeOffset k = begin; k < end; ++row) {
      const EdgeOffset row_end = std::min(end, row_offsets[row + 1]);
      for (; k < row_end; ++k) visit(k, col_indices[k], static_cast<VertexId>(row));
    }
  }
};

/// How the work is cut. Depends on the input alone.
struct BucketSplit {
  int shift = 0;               ///< bucket = major >> shift
  std::int64_t buckets = 1;    ///< a few thousand at most: each is a write stream per thread
  EdgeOffset chunk = 1 << 16;  ///< edges that one task moves

  BucketSplit(VertexId num_major, EdgeOffset count) {
    constexpr std::int64_t bucket_size = 1 << 15;
    constexpr std::int64_t most_buckets = 2048;
    constexpr EdgeOffset most_chunks = 128;
    const std::int64_t wanted = std::clamp<std::int64_t>(
        std::max<std::int64_t>(count, num_major) / bucket_size, 1, most_buckets);
    while ((static_cast<std::int64_t>(num_major) >> shift) >= wanted) ++shift;
    buckets = (static_cast<std::int64_t>(num_major) >> shift) + 1;
    chunk = std::max(chunk, count / most_chunks + 1);
  }
};

struct EdgeRecord {
  VertexId major;
  VertexId minor;
  EdgeRecord(VertexId of_major, VertexId of_minor, EdgeOffset) : major(of_major), minor(of_minor) {}
};

struct PositionedRecord {
  VertexId major;
  VertexId minor;
  EdgeOffset position;
};

/// Moves all edges to their buckets, each bucket in input order. Fills `bucket_begin`, which has
/// one entry more than there are buckets.
template <class Record, class Source>
Buffer<Record> split_into_buckets(const BucketSplit& split, EdgeOffset count, const Source& source,
                                  std::vector<EdgeOffset>& bucket_begin) {
  const auto buckets = static_cast<std::size_t>(split.buckets);
  const std::int64_t chunks = (count + split.chunk - 1) / split.chunk;
  std::vector<EdgeOffset> cursors(static_cast<std::size_t>(chunks) * buckets);
  const auto cursors_of = [&](EdgeOffset chunk_begin) {
    return cursors.data() + static_cast<std::size_t>(chunk_begin / split.chunk) * buckets;
  };
  parallel_ranges(count, split.chunk, [&](EdgeOffset begin, EdgeOffset end) {
    EdgeOffset* const counts = cursors_of(begin);
    source.for_each(begin, end,
                    [&](EdgeOffset, VertexId major, VertexId) { ++counts[major >> split.shift]; });
  });

  bucket_begin.assign(buckets + 1, 0);
  EdgeOffset running = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    bucket_begin[bucket] = running;
    for (std::size_t k = bucket; k < cursors.size(); k += buckets) {
      running += std::exchange(cursors[k], running);
    }
  }
  bucket_begin[buckets] = running;

  Buffer<Record> records(count);
  parallel_ranges(count, split.chunk, [&](EdgeOffset begin, EdgeOffset end) {
    EdgeOffset* const next = cursors_of(begin);
    source.for_each(begin, end, [&](EdgeOffset position, VertexId major, VertexId minor) {
      records[next[major >> split.shift]++] = Record{major, minor, position};
    });
  });
  return records;
}

/// Sorts the minors of one major, and the positions with them. They arrive in input order.
void sort_minors(SortedEdges& edges, EdgeOffset begin, EdgeOffset end);

/// Counting sort of one bucket, which holds the majors from `first` to before `last`.
template <class Record>
void sort_bucket(const Buffer<Record>& records, EdgeOffset begin, EdgeOffset end,
                 std::int64_t first, std::int64_t last, SortedEdges& sorted) {
  EdgeOffset* const cursors = sorted.offsets.data();
  std::fill(cursors + first, cursors + last, 0);
  for (EdgeOffset k = begin; k < end; ++k) ++cursors[records[k].major];
  EdgeOffset running = begin;
  for (std::int64_t major = first; major < last; ++major) {
    running += std::exchange(cursors[major], running);
  }
  for (EdgeOffset k = begin; k < end; ++k) {
    const EdgeOffset slot = cursors[records[k].major]++;
    sorted.minors[slot] = records[k].minor;
    if constexpr (requires { records[k].position; }) sorted.positions[slot] = records[k].position;
  }
  // Each cursor now stands where its major ends: at the begin of the next.
  EdgeOffset major_begin = begin;
  for (std::int64_t major = first; major < last; ++major) {
    sort_minors(sorted, major_begin, cursors[major]);
    std::swap(major_begin, cursors[major]);
  }
}

template <class Record, class Source>
SortedEdges sort_edges_as(VertexId num_major, EdgeOffset count, const Source& source) {
  constexpr bool with_positions = requires(Record record) { record.position; };
  const BucketSplit split(num_major, count);
  std::vector<EdgeOffset> bucket_begin;
  const Buffer<Record> records = split_into_buckets<Record>(split, count, source, bucket_begin);
  SortedEdges sorted{Buffer<EdgeOffset>(std::int64_t{num_major} + 1), Buffer<VertexId>(count),
                     Buffer<EdgeOffset>(with_positions ? count : 0)};
  parallel_tasks(split.buckets, [&](std::int64_t bucket) {
    const auto index = static_cast<std::size_t>(bucket);
    const std::int64_t first = bucket << split.shift;
    const std::int64_t last = std::min<std::int64_t>((bucket + 1) << split.shift, num_major);
    sort_bucket(records, bucket_begin[index], bucket_begin[index + 1], first, last, sorted);
  });
  sorted.offsets[num_major] = count;
  return sorted;
}

/// Sorts `count` edges whose majors all lie in [0, num_major).
template <class Source>
SortedEdges sort_edges(VertexId num_major, EdgeOffset count, const Source& source,
                       bool with_positions) {
  return with_positions ? sort_edges_as<PositionedRecord>(num_major, count, source)
                        : sort_edges_as<EdgeRecord>(num_major, count, source);
}

}  // namespace tessera::detail
