// SPDX-License-Identifier: Apache-2.0
#include "train/link_scores.hpp"

#include "tessera/core/parallel.hpp"

#include "train/host.hpp"

namespace tessera::train {
namespace {

using links::Pairs;

void append(const Pairs& from, Pairs& to) {
  to.sources.insert(to.sources.end(), from.sources.begin(), from.sources.end());
  to.targets.insert(to.targets.end(), from.targets.begin(), from.targets.end());
}

Pairs joined(const std::vector<Pairs>& lists) {
  Pairs all;
  for (const Pairs& list : lists) append(list, all);
  return all;
}

std::vector<std::size_t> ends_of(const std::vector<Pairs>& lists) {
  std::vector<std::size_t> ends{0};
  for (const Pairs& list : lists) ends.push_back(ends.back() + list.sources.size());
  return ends;
}

}  // namespace

PlacedPairs::PlacedPairs(std::int64_t count, const Place& place) : ids_(2 * count, place) {}

PlacedPairs::PlacedPairs(const Pairs& pairs, const Place& place)
    : PlacedPairs(pairs.size(), place) {
  set(0, pairs, place.stream);
}

ops::ConstOperand PlacedPairs::part(std::int64_t first, std::int64_t count) const {
  return {ids_.data() + first, ElementType::int32, ids_.device(), 2, count, size()};
}

ops::Operand PlacedPairs::part(std::int64_t first, std::int64_t count) {
  return {ids_.data() + first, ElementType::int32, ids_.device(), 2, count, size()};
}

void PlacedPairs::set(std::int64_t first, const Pairs& pairs, Stream stream) {
  const auto copy = [&](std::int64_t at, const std::vector<VertexId>& ends) {
    copy_bytes(ids_.data() + at, ends.data(), ends.size() * sizeof(VertexId), ids_.device(),
               stream);
  };
  copy(first, pairs.sources);
  copy(first + size(), pairs.targets);
}

Pairs asked_ways(Pairs pairs, bool both) {
  if (both) append({pairs.targets, pairs.sources}, pairs);
  return pairs;
}

AskedPairs::AskedPairs(const std::vector<Pairs>& lists, bool both_ways, const Place& place)
    : both_ways_(both_ways),
      ends_(ends_of(lists)),
      pairs_(asked_ways(joined(lists), both_ways), place) {}

std::vector<float> AskedPairs::scores(const step::Tensor& result, Stream stream) const {
  const Matrix<float> rows = to_host(result, stream);
  const auto count = static_cast<std::int64_t>(ends_.back());
  std::vector<float> scores(ends_.back());
  parallel_for(count, even_grain(count), [&](std::int64_t k) {
    const float score = rows(k, 0);
    scores[static_cast<std::size_t>(k)] = both_ways_ ? (score + rows(k + count, 0)) / 2 : score;
  });
  return scores;
}

}  // namespace tessera::train
