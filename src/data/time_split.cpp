// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/time_split.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

namespace tessera {
namespace {

constexpr const char* where = "split by time";

void require_sense(const TimeShares& shares) {
  const bool positive = shares.train > 0 && shares.validation > 0 && shares.test > 0;
  if (positive && shares.train + shares.validation + shares.test <= 1 + 1e-9) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("shares of {}, {}, {}", shares.train, shares.validation, shares.test),
              where, "give three positive shares that sum to at most 1");
}

void require_times(std::span<const std::int64_t> vertices, std::span<const double> times) {
  for (const std::int64_t vertex : vertices) {
    if (vertex < 0 || vertex >= std::ssize(times)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("vertex {} is none of the {} that have a time", vertex, times.size()),
                  where, "give one time for each vertex of the graph");
    }
    const double time = times[static_cast<std::size_t>(vertex)];
    if (std::isfinite(time)) continue;
    throw Error(ErrorCode::bad_data, fmt::format("the time of vertex {} is {}", vertex, time),
                where, "give every vertex a time, or leave out those that have none");
  }
}

}  // namespace

VertexSplit split_by_time(std::span<const std::int64_t> vertices, std::span<const double> times,
                          const TimeShares& shares) {
  require_sense(shares);
  require_times(vertices, times);
  const auto time_of = [&](std::int64_t vertex) { return times[static_cast<std::size_t>(vertex)]; };
  std::vector<std::int64_t> order(vertices.begin(), vertices.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return time_of(a) < time_of(b); });
  // The parts that follow each other in time, by the share of the vertices before their ends.
  const double left_out = std::max(0.0, 1 - shares.train - shares.validation - shares.test);
  const double trained = left_out + shares.train;
  const std::array<double, 3> ends = {left_out, trained, trained + shares.validation};
  std::array<std::vector<std::int64_t>, 4> parts;
  std::int64_t different = 0;
  for (auto begin = order.begin(); begin != order.end(); ++different) {
    const auto end = std::find_if(begin, order.end(), [&](std::int64_t vertex) {
      return time_of(vertex) != time_of(*begin);
    });
    const double middle = static_cast<double>((begin - order.begin()) + (end - order.begin())) / 2 /
                          static_cast<double>(order.size());
    const auto part = std::upper_bound(ends.begin(), ends.end(), middle + 1e-9) - ends.begin();
    auto& members = parts[static_cast<std::size_t>(part)];
    members.insert(members.end(), begin, end);
    begin = end;
  }
  const char* const names[] = {"", "training", "validation", "test"};
  for (std::size_t part = 1; part < parts.size(); ++part) {
    std::sort(parts[part].begin(), parts[part].end());
    if (!parts[part].empty()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the {} part is empty: {} vertices have {} different times",
                            names[part], order.size(), different),
                where, "give other shares, or times that tell more vertices apart");
  }
  return {std::move(parts[1]), std::move(parts[2]), std::move(parts[3])};
}

}  // namespace tessera
