// SPDX-License-Identifier: Apache-2.0
#include "sample/choose.hpp"

#include <algorithm>
#include <numeric>

#include "sample/numbers.hpp"
#include "sample/weighted_set.hpp"

namespace tessera::sample {

void Chooser::choose(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn) {
  const bool weighted_edges = lists_.weights != nullptr;
  if (rules_.replace && rules_.fan_out >= 0) {
    Numbers numbers(rules_.random, element);
    const auto there = static_cast<std::uint64_t>(choice.size());
    for (EdgeOffset& edge : drawn) {
      const std::uint64_t bits = numbers.next();
      edge = weighted_edges ? weighted_edge(lists_, choice, bits)
                            : choice.begin + static_cast<EdgeOffset>(below(bits, there));
    }
  } else if (std::ssize(drawn) == choice.size()) {
    std::iota(drawn.begin(), drawn.end(), choice.begin);
  } else if (weighted_edges) {
    weighted_set(choice, element, drawn);
  } else {
    uniform_set(choice, element, drawn);
  }
}

/// Floyd's method: the i-th draw is one of the first n - k + i + 1 candidates; where that one was
/// drawn before, the last of them is taken, which was not. All sets are equally likely.
void Chooser::uniform_set(const Choice& choice, std::uint64_t element,
                          std::span<EdgeOffset> drawn) {
  Numbers numbers(rules_.random, element);
  chosen_.start(std::ssize(drawn));
  const std::int64_t spare = choice.size() - std::ssize(drawn);
  for (std::int64_t i = 0; i < std::ssize(drawn); ++i) {
    std::int64_t next = floyd_draw(numbers.next(), spare, i);
    if (chosen_.contains(next)) next = spare + i;
    chosen_.add(next);
    drawn[static_cast<std::size_t>(i)] = choice.begin + next;
  }
}

/// Draws in proportion to weights and passes over what was drawn before, which is to draw in
/// proportion among those left. What many attempts do not find has small weights beside those
/// drawn: keys find the rest, and all where few candidates are left out anyway.
void Chooser::weighted_set(const Choice& choice, std::uint64_t element,
                           std::span<EdgeOffset> drawn) {
  chosen_.start(std::ssize(drawn));
  std::size_t found = 0;
  Numbers numbers(rules_.random, element);
  for (std::int64_t left = attempts_of(choice, std::ssize(drawn)); left > 0 && found < drawn.size();
       --left) {
    const EdgeOffset edge = weighted_edge(lists_, choice, numbers.next());
    if (chosen_.contains(edge)) continue;
    chosen_.add(edge);
    drawn[found++] = edge;
  }
  if (found < drawn.size()) smallest_keys(choice, element, drawn.subspan(found));
}

void Chooser::smallest_keys(const Choice& choice, std::uint64_t element,
                            std::span<EdgeOffset> drawn) {
  Numbers numbers(rules_.random, element, first_block_of_keys);
  keys_.clear();  // a heap of the smallest so far, the largest of them in front
  for (EdgeOffset edge = choice.begin; edge < choice.end; ++edge) {
    const double key = exponential(numbers.next()) / static_cast<double>(lists_.weights[edge]);
    if (std::ssize(keys_) == std::ssize(drawn) && keys_.front().first <= key) continue;
    if (chosen_.contains(edge)) continue;
    if (std::ssize(keys_) == std::ssize(drawn)) {
      std::pop_heap(keys_.begin(), keys_.end());
      keys_.pop_back();
    }
    keys_.emplace_back(key, edge);
    std::push_heap(keys_.begin(), keys_.end());
  }
  std::sort(keys_.begin(), keys_.end());
  std::transform(keys_.begin(), keys_.end(), drawn.begin(),
                 [](const auto& key) { return key.second; });
}

}  // namespace tessera::sample
