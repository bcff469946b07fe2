// SPDX-License-Identifier: Apache-2.0
#include "reorder/nm/parts.hpp"

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

/// Groups `count` parts of an order, of which part i begins at `first_of(i)` and may take
/// `steps_of(part)`.
template <class First, class Steps>
GroupedParts group_each(const Adjacency& adjacency, std::vector<VertexId> order, std::int64_t count,
                        First&& first_of, Steps&& steps_of, double placing_part, int group_size,
                        std::uint64_t seed, Budget::Clock::time_point deadline,
                        const std::function<bool()>& stop) {
  GroupedParts result{std::move(order)};
  std::atomic<bool> fails = false, stopped = false;
  std::atomic<std::int64_t> swaps = 0;
  std::mutex asking;
  const auto stops = [&] {
    const std::scoped_lock lock(asking);
    if (!stopped && stop && stop()) stopped = true;
    return stopped.load();
  };
  parallel_tasks(count, [&](std::int64_t i) {
    const std::int64_t begin = first_of(i);
    const std::span<VertexId> columns(result.order.data() + begin, at(first_of(i + 1) - begin));
    const ColumnPart part(adjacency, columns);
    const Adjacency rows_of = part.rows_of(), columns_of = part.columns_of();
    Grouping grouping(rows_of, columns_of, group_size, seed + static_cast<std::uint64_t>(i));
    Budget budget(steps_of(part), deadline, stops);
    if (!grouping.run(budget, placing_part)) fails = true;
    if (budget.out_of_time()) stopped = true;
    swaps += grouping.swaps();
    std::vector<VertexId> grouped = grouping.order();
    for (VertexId& column : grouped) column = columns[at(column)];
    std::copy(grouped.begin(), grouped.end(), columns.begin());
  });
  result.swaps = swaps;
  result.fails = fails;
  result.stopped = stopped;
  return result;
}

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

std::optional<GroupedParts> group_parts(const Adjacency& adjacency, int group_size,
                                        std::uint64_t seed, Budget::Clock::time_point deadline,
                                        const std::function<bool()>& stop) {
  constexpr std::int64_t steps_per_entry = 8;
  const std::int64_t size = adjacency.size;
  if (size <= 2 * columns_per_part) return std::nullopt;
  const std::int64_t parts = size / columns_per_part;
  const auto first_of = [&](std::int64_t part) {
    return part == parts ? size : part * size / parts / group_size * group_size;
  };
  const auto steps_of = [](const ColumnPart& part) {
    return columns_per_part + steps_per_entry * part.num_entries();
  };
  std::vector<VertexId> columns(at(size));
  std::iota(columns.begin(), columns.end(), VertexId{0});
  GroupedParts result = group_each(adjacency, std::move(columns), parts, first_of, steps_of, 1,
                                   group_size, seed, deadline, stop);
  if (result.fails && !result.stopped) return std::nullopt;
  return result;
}

GroupedParts group_dealt(const Adjacency& adjacency, int group_size, std::uint64_t seed,
                         Budget& budget) {
  const std::int64_t size = adjacency.size;
  const std::int64_t wanted = std::max<std::int64_t>(1, size / columns_per_hand);
  const std::int64_t hand_size =
      ((size + wanted - 1) / wanted + group_size - 1) / group_size * group_size;
  const std::int64_t hands = (size + hand_size - 1) / hand_size;
  const std::int64_t steps = budget.steps_left() / 2 / hands;
  GroupedParts result = group_each(
      adjacency, deal(in_stretches(adjacency), hand_size), hands,
      [&](std::int64_t hand) { return std::min(hand * hand_size, size); },
      [&](const ColumnPart&) { return steps; }, usual_placing_part, group_size, seed,
      budget.deadline(), budget.stop());
  if (result.stopped) budget.end();
  budget.take(steps * hands);
  return result;
}

}  // namespace tessera::reorder::detail
