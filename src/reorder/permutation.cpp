// SPDX-License-Identifier: Apache-2.0
#include "tessera/reorder/permutation.hpp"

#include <limits>
#include <numeric>
#include <ostream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/random.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera {
namespace {

void check_each_once(const SharedArray<VertexId>& numbers) {
  if (numbers.size() > std::numeric_limits<VertexId>::max()) {
    throw Error(ErrorCode::bad_data, fmt::format("{} vertices are too many", numbers.size()),
                "permutation");
  }
  std::vector<bool> seen(static_cast<std::size_t>(numbers.size()));
  for (std::int64_t i = 0; i < numbers.size(); ++i) {
    const VertexId number = numbers[i];
    const bool in_range = number >= 0 && number < numbers.size();
    if (!in_range || seen[static_cast<std::size_t>(number)]) {
      throw Error(ErrorCode::bad_data,
                  in_range ? fmt::format("vertex {} occurs twice", number)
                           : fmt::format("vertex {} is outside [0, {})", number, numbers.size()),
                  fmt::format("permutation, position {}", i), "list every vertex once");
    }
    seen[static_cast<std::size_t>(number)] = true;
  }
}

Buffer<VertexId> counting_up(VertexId size) {
  Buffer<VertexId> numbers(size);
  std::iota(numbers.begin(), numbers.end(), VertexId{0});
  return numbers;
}

void check_size(VertexId size) {
  if (size < 0) {
    throw Error(ErrorCode::invalid_argument, fmt::format("a negative size: {}", size),
                "permutation");
  }
}

}  // namespace

Permutation::Permutation(SharedArray<VertexId> new_to_old) : new_to_old_(std::move(new_to_old)) {
  check_each_once(new_to_old_);
}

Permutation Permutation::identity(VertexId size) {
  check_size(size);
  return Permutation(counting_up(size));
}

Permutation Permutation::random(VertexId size, std::uint64_t seed) {
  check_size(size);
  Buffer<VertexId> numbers = counting_up(size);
  const Random draws(seed);
  for (VertexId last = size - 1; last > 0; --last) {
    const auto element = static_cast<std::uint64_t>(last);
    std::swap(numbers[last], numbers[static_cast<std::int64_t>(draws.below(element, element + 1))]);
  }
  return Permutation(std::move(numbers));
}

bool Permutation::is_identity() const {
  for (VertexId i = 0; i < size(); ++i) {
    if (new_to_old_[i] != i) return false;
  }
  return true;
}

Permutation Permutation::inverse() const {
  Buffer<VertexId> old_to_new(size());
  parallel_for(size(), even_grain(size()),
               [&](std::int64_t i) { old_to_new[new_to_old_[i]] = static_cast<VertexId>(i); });
  Permutation result;
  result.new_to_old_ = std::move(old_to_new);
  return result;
}

Permutation Permutation::then(const Permutation& next) const {
  if (next.size() != size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a permutation of {} vertices after one of {}", next.size(), size()),
                "permutation");
  }
  Buffer<VertexId> both(size());
  parallel_for(size(), even_grain(size()),
               [&](std::int64_t i) { both[i] = new_to_old_[next.new_to_old_[i]]; });
  Permutation result;
  result.new_to_old_ = std::move(both);
  return result;
}

std::ostream& operator<<(std::ostream& out, const Permutation& permutation) {
  constexpr VertexId shown = 8;
  out << fmt::format("permutation of {} vertices:", permutation.size());
  for (VertexId i = 0; i < std::min(permutation.size(), shown); ++i) {
    out << ' ' << permutation.new_to_old()[i];
  }
  return permutation.size() > shown ? out << " …" : out;
}

Graph permuted(const Graph& graph, const Permutation& permutation) {
  if (!graph.is_square() || graph.num_rows() != permutation.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a permutation of {} vertices does not fit a graph of {} x {}",
                            permutation.size(), graph.num_rows(), graph.num_cols()),
                "permuted", "use a square graph of the same size");
  }
  return induced_subgraph(graph, permutation.new_to_old());
}

}  // namespace tessera
