// SPDX-License-Identifier: Apache-2.0
#include "sample/choose.hpp"

#include <algorithm>
#include <numeric>

#include "sample/numbers.hpp"

namespace tessera::sample {
namespace {

/// Keys have numbers of their own, behind any that attempts use.
constexpr std::uint32_t first_block_of_keys = 1u << 31;

}  // namespace

Choice Chooser::choice(VertexId vertex, std::optional<std::int64_t> time) const {
  const EdgeOffset first = candidates_.offsets[vertex];
  Choice choice{first, candidates_.offsets[vertex + 1], 0};
  if (time) {
    const std::int64_t* const times = candidates_.times.data();
    choice.end = std::upper_bound(times + choice.begin, times + choice.end, *time) - times;
    if (rules_.latest && rules_.fan_out >= 0) {
      choice.begin = std::max(choice.begin, choice.end - rules_.fan_out);
    }
  }
  if (choice.begin > first && !candidates_.weights.empty()) {
    choice.base = candidates_.running_weights[choice.begin - 1];
  }
  return choice;
}

void Chooser::choose(const Choice& choice, std::uint64_t element, std::span<EdgeOffset> drawn) {
  const bool weighted_edges = !candidates_.weights.empty();
  if (rules_.replace && rules_.fan_out >= 0) {
    Numbers numbers(rules_.random, element);
    const auto there = static_cast<std::uint64_t>(choice.end - choice.begin);
    for (EdgeOffset& edge : drawn) {
      const std::uint64_t bits = numbers.next();
      edge = weighted_edges ? weighted(choice, bits)
                            : choice.begin + static_cast<EdgeOffset>(below(bits, there));
    }
  } else if (std::ssize(drawn) == choice.end - choice.begin) {
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
  std::int64_t last = choice.end - choice.begin - std::ssize(drawn);
  for (EdgeOffset& edge : drawn) {
    auto next =
        static_cast<std::int64_t>(below(numbers.next(), static_cast<std::uint64_t>(last + 1)));
    if (chosen_.contains(next)) next = last;
    chosen_.add(next);
    edge = choice.begin + next;
    ++last;
  }
}

/// Draws in proportion to weights and passes over what was drawn before, which is to draw in
/// proportion among those left. What many attempts do not find has small weights beside those
/// drawn: keys find the rest, and all where few candidates are left out anyway.
void Chooser::weighted_set(const Choice& choice, std::uint64_t element,
                           std::span<EdgeOffset> drawn) {
  chosen_.start(std::ssize(drawn));
  std::size_t found = 0;
  if (choice.end - choice.begin > 8 * std::ssize(drawn)) {
    Numbers numbers(rules_.random, element);
    for (std::size_t attempt = 0; attempt < 4 * drawn.size() && found < drawn.size(); ++attempt) {
      const EdgeOffset edge = weighted(choice, numbers.next());
      if (chosen_.contains(edge)) continue;
      chosen_.add(edge);
      drawn[found++] = edge;
    }
  }
  if (found < drawn.size()) smallest_keys(choice, element, drawn.subspan(found));
}

/// Efraimidis and Spirakis: exponential numbers divided by weights come in the order in which the
/// candidates would be drawn one after the other.
void Chooser::smallest_keys(const Choice& choice, std::uint64_t element,
                            std::span<EdgeOffset> drawn) {
  Numbers numbers(rules_.random, element, first_block_of_keys);
  keys_.clear();  // a heap of the smallest so far, the largest of them in front
  for (EdgeOffset edge = choice.begin; edge < choice.end; ++edge) {
    const double key = exponential(numbers.next()) / candidates_.weights[edge];
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

EdgeOffset Chooser::weighted(const Choice& choice, std::uint64_t bits) const {
  const double* const running = candidates_.running_weights.data();
  const double share = uniform(bits) * (running[choice.end - 1] - choice.base);
  const double* const found =
      std::upper_bound(running + choice.begin, running + choice.end, choice.base + share);
  return std::min(found - running, choice.end - 1);
}

}  // namespace tessera::sample
