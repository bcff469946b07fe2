// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "tessera/core/random.hpp"
#include "tessera/core/types.hpp"

#include "core/anywhere.hpp"
#include "sample/numbers.hpp"

/// What a vertex draws, the same on every device. Each draw is a function of its own, so that a GPU
/// has a thread for each.
namespace tessera::sample {

/// How the vertices of one hop draw.
struct HopRules {
  std::int64_t fan_out = 0;  ///< -1: all
  bool replace = false;
  bool latest = false;
  Random random{0};
};

/// `Candidates` where a device reads them; null: there are none of these.
struct CandidateLists {
  const EdgeOffset* offsets = nullptr;
  const VertexId* sources = nullptr;
  const std::int64_t* times = nullptr;
  const float* weights = nullptr;
  const double* running_weights = nullptr;
};

/// The candidates that a vertex draws from, and what their running weights begin with.
struct Choice {
  EdgeOffset begin = 0;
  EdgeOffset end = 0;
  double base = 0;

  constexpr std::int64_t size() const noexcept { return end - begin; }
};

/// The first position in [begin, end) whose value is above `wanted`; `end` if there is none. In
/// code of a GPU nvcc 13.0 drops the steps of std::advance, and with them those of
/// std::upper_bound.
template <class T>
constexpr EdgeOffset first_above(const T* values, EdgeOffset begin, EdgeOffset end, T wanted) {
  while (begin < end) {
    const EdgeOffset middle = begin + (end - begin) / 2;
    if (wanted < values[middle]) {
      end = middle;
    } else {
      begin = middle + 1;
    }
  }
  return begin;
}

/// `time`: that of the seed; null: edges of any time.
constexpr Choice choice_of(const CandidateLists& lists, const HopRules& rules, VertexId vertex,
                           const std::int64_t* time) {
  const EdgeOffset first = lists.offsets[vertex];
  Choice choice{first, lists.offsets[vertex + 1], 0};
  if (time != nullptr) {
    choice.end = first_above(lists.times, choice.begin, choice.end, *time);
    if (rules.latest && rules.fan_out >= 0) {
      choice.begin = std::max(choice.begin, choice.end - rules.fan_out);
    }
  }
  if (choice.begin > first && lists.weights != nullptr) {
    choice.base = lists.running_weights[choice.begin - 1];
  }
  return choice;
}

/// How many edges are drawn.
constexpr std::int64_t count_of(const HopRules& rules, const Choice& choice) {
  const std::int64_t there = choice.size();
  if (rules.fan_out < 0 || there == 0) return there;
  return rules.replace || rules.fan_out < there ? rules.fan_out : there;
}

/// Draws in proportion to weights.
TESSERA_ANYWHERE inline EdgeOffset weighted_edge(const CandidateLists& lists, const Choice& choice,
                                                 std::uint64_t bits) {
  const double* const running = lists.running_weights;
  const double all = running[choice.end - 1] - choice.base;
  const double wanted = std::fma(uniform(bits), all, choice.base);
  return std::min(first_above(running, choice.begin, choice.end, wanted), choice.end - 1);
}

/// Draw i of Floyd's method, which finds a set of `count` of so many candidates: it is one of the
/// first spare + i + 1 of them, where `spare` are left out.
constexpr std::int64_t floyd_draw(std::uint64_t bits, std::int64_t spare, std::int64_t i) {
  return static_cast<std::int64_t>(below(bits, static_cast<std::uint64_t>(spare + i + 1)));
}

/// Candidate i of that set, where a draw that came before is replaced by the last candidate that it
/// had to choose from. Whether it came before follows from the draws alone: an earlier one was the
/// same, or an earlier one that was replaced had it for its last.
constexpr std::int64_t nth_of_set(const Random& random, std::uint64_t element, std::int64_t there,
                                  std::int64_t count, std::int64_t i) {
  const std::int64_t spare = there - count;
  const std::int64_t own =
      floyd_draw(nth_number(random, element, static_cast<std::uint64_t>(i)), spare, i);
  std::int64_t asked = i;  // the draw that decides: replaced as draw i is
  for (std::int64_t draw = own;;) {
    Numbers numbers(random, element);
    for (std::int64_t j = 0; j < asked; ++j) {
      if (floyd_draw(numbers.next(), spare, j) == draw) return spare + i;
    }
    const std::int64_t earlier = draw - spare;
    if (earlier < 0 || earlier >= asked) return own;
    asked = earlier;
    draw = floyd_draw(nth_number(random, element, static_cast<std::uint64_t>(asked)), spare, asked);
  }
}

/// Edge i of the `count` that a vertex draws. `element` names the vertex, and the tree where trees
/// are disjoint. Weighted edges without replacement are drawn together (weighted_set.hpp).
TESSERA_ANYWHERE inline EdgeOffset drawn_edge(const CandidateLists& lists, const HopRules& rules,
                                              const Choice& choice, std::uint64_t element,
                                              std::int64_t count, std::int64_t i) {
  if (rules.replace && rules.fan_out >= 0) {
    const auto bits = nth_number(rules.random, element, static_cast<std::uint64_t>(i));
    if (lists.weights != nullptr) return weighted_edge(lists, choice, bits);
    return choice.begin +
           static_cast<EdgeOffset>(below(bits, static_cast<std::uint64_t>(choice.size())));
  }
  if (count == choice.size()) return choice.begin + i;
  return choice.begin + nth_of_set(rules.random, element, choice.size(), count, i);
}

}  // namespace tessera::sample
