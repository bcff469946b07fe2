// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/dealt.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <span>

#include "reorder/nm/column_part.hpp"
#include "reorder/nm/grouping.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::reorder::detail {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

using Code = std::uint64_t;
constexpr std::int64_t rows_of_code = 64;

/// Where a word comes in the Gray code.
Code gray_rank(Code word) {
  for (int shift = 1; shift < rows_of_code; shift *= 2) word ^= word >> shift;
  return word;
}

std::vector<VertexId> longest_rows(const Adjacency& adjacency) {
  std::vector<VertexId> rows(at(adjacency.size));
  std::iota(rows.begin(), rows.end(), VertexId{0});
  const auto count = std::min<std::int64_t>(rows_of_code, adjacency.size);
  std::partial_sort(rows.begin(), rows.begin() + count, rows.end(), [&](VertexId a, VertexId b) {
    const auto length_a = adjacency.degree(a), length_b = adjacency.degree(b);
    return length_a != length_b ? length_a > length_b : a < b;
  });
  rows.resize(at(count));
  return rows;
}

/// Columns that the same long rows use lie side by side: in the order of the Gray code of these
/// rows, where each of the longest has few stretches.
std::vector<VertexId> in_stretches(const Adjacency& adjacency) {
  std::vector<Code> codes(at(adjacency.size), 0);
  Code bit = Code{1} << (rows_of_code - 1);
  for (const VertexId row : longest_rows(adjacency)) {
    for (const VertexId column : adjacency.neighbours(row)) codes[at(column)] |= bit;
    bit >>= 1;
  }
  std::transform(codes.begin(), codes.end(), codes.begin(), gray_rank);
  std::vector<VertexId> columns(at(adjacency.size));
  std::iota(columns.begin(), columns.end(), VertexId{0});
  std::stable_sort(columns.begin(), columns.end(),
                   [&](VertexId a, VertexId b) { return codes[at(a)] < codes[at(b)]; });
  return columns;
}

/// One column to each hand in turn, until those that come last are full. Hands follow one another
/// in the result; the columns of each keep their order.
std::vector<VertexId> deal(const std::vector<VertexId>& columns, std::int64_t hand_size) {
  const std::int64_t size = std::ssize(columns);
  std::vector<VertexId> hands(columns.size());
  auto next = columns.begin();
  for (std::int64_t round = 0; round < hand_size; ++round) {
    for (std::int64_t place = round; place < size; place += hand_size) hands[at(place)] = *next++;
  }
  for (std::int64_t begin = 0; begin < size; begin += hand_size) {
    std::sort(hands.begin() + begin, hands.begin() + std::min(size, begin + hand_size));
  }
  return hands;
}

}  // namespace

Dealt group_dealt(const Adjacency& adjacency, int group_size, std::uint64_t seed, Budget& budget) {
  const std::int64_t size = adjacency.size;
  const std::int64_t wanted = std::max<std::int64_t>(1, size / columns_per_hand);
  const std::int64_t hand_size =
      ((size + wanted - 1) / wanted + group_size - 1) / group_size * group_size;
  const std::int64_t num_hands = (size + hand_size - 1) / hand_size;
  Dealt result{deal(in_stretches(adjacency), hand_size)};
  const std::int64_t steps = budget.steps_left() / 2 / num_hands;
  std::mutex asking;
  std::atomic<bool> stopped = false;
  const auto stops = [&] {
    const std::scoped_lock lock(asking);
    if (!stopped && budget.stop() && budget.stop()()) stopped = true;
    return stopped.load();
  };
  std::atomic<std::int64_t> swaps = 0;
  parallel_tasks(num_hands, [&](std::int64_t i) {
    const std::int64_t begin = i * hand_size;
    const std::span<VertexId> hand(result.order.data() + begin,
                                   at(std::min(hand_size, size - begin)));
    const ColumnPart part(adjacency, hand);
    const Adjacency rows_of = part.rows_of(), columns_of = part.columns_of();
    Grouping grouping(rows_of, columns_of, group_size, seed + static_cast<std::uint64_t>(i));
    Budget own(steps, budget.deadline(), stops);
    grouping.run(own, usual_placing_part);
    if (own.out_of_time()) stopped = true;
    swaps += grouping.swaps();
    std::vector<VertexId> order = grouping.order();
    for (VertexId& column : order) column = hand[at(column)];
    std::copy(order.begin(), order.end(), hand.begin());
  });
  if (stopped) budget.end();
  budget.take(steps * num_hands);
  result.swaps = swaps;
  return result;
}

}  // namespace tessera::reorder::detail
