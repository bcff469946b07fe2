// SPDX-License-Identifier: Apache-2.0
#include "tessera/links/split.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

#include "graph/requirements.hpp"
#include "graph/row_writer.hpp"
#include "graph/symmetry.hpp"
#include "links/random_use.hpp"

namespace tessera::links {
namespace {

constexpr const char* where = "link split";

void require_simple(const Graph& graph) {
  detail::require_whole(graph);
  if (!graph.has_repeated_edges()) return;
  throw Error(ErrorCode::invalid_argument, "the graph lists an edge several times", where,
              "build it with Duplicates::first or Duplicates::sum");
}

/// The position of the edge from the target of `edge` to its source, or -1 if there is none.
/// Targets and sources of a rectangular graph are different vertices: no edge has a reverse.
EdgeOffset reverse_of(const Graph& graph, VertexId target, EdgeOffset edge) {
  if (!graph.is_square()) return -1;
  const VertexId source = graph.col_indices()[edge];
  const auto row = graph.neighbours(source);
  const auto found = std::lower_bound(row.begin(), row.end(), target);
  if (found == row.end() || *found != target) return -1;
  return graph.row_offsets()[source] + (found - row.begin());
}

/// Calls `visit(target, edge)` for all edges, rows in parallel.
template <class Visit>
void for_each_edge(const Graph& graph, Visit&& visit) {
  parallel_for(graph.num_rows(), even_grain(graph.num_rows()), [&](std::int64_t row) {
    const auto target = static_cast<VertexId>(row);
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      visit(target, k);
    }
  });
}

/// An edge, and its reverse where there is one.
struct Link {
  EdgeOffset edge;
  EdgeOffset reverse;
};

/// All links, in the order of the graph's rows. A pair of edges is found at the higher vertex.
std::vector<Link> links_of(const Graph& graph) {
  std::vector<EdgeOffset> reverse(static_cast<std::size_t>(graph.num_edges()));
  for_each_edge(graph, [&](VertexId target, EdgeOffset edge) {
    reverse[static_cast<std::size_t>(edge)] = reverse_of(graph, target, edge);
  });
  std::vector<Link> links;
  for (EdgeOffset edge = 0; edge < graph.num_edges(); ++edge) {
    const EdgeOffset other = reverse[static_cast<std::size_t>(edge)];
    if (other <= edge) links.push_back({edge, other});
  }
  return links;
}

/// How many links a share of them is: one at least if it is positive.
std::int64_t count_of(double share, std::int64_t links) {
  if (share == 0) return 0;
  return std::max<std::int64_t>(1, std::llround(share * static_cast<double>(links)));
}

struct Counts {
  std::int64_t test, validation, supervision;
};

Counts counts_of(const LinkShares& shares, std::int64_t links) {
  const bool sensible = shares.validation >= 0 && shares.test >= 0 && shares.supervision >= 0 &&
                        shares.validation + shares.test < 1 && shares.supervision < 1;
  if (!sensible) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("shares of {} for validation, {} for the test, {} for supervision",
                            shares.validation, shares.test, shares.supervision),
                where, "give shares from 0 on; those held out must sum to less than 1");
  }
  const std::int64_t test = count_of(shares.test, links);
  const std::int64_t validation = count_of(shares.validation, links);
  const std::int64_t left = links - test - validation;
  const std::int64_t supervision = count_of(shares.supervision, std::max<std::int64_t>(0, left));
  if (left - supervision < 1) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a graph of {} link{} leaves none to train on", links, links == 1 ? "" : "s"),
        where, "hold less out, or use a graph with more edges");
  }
  return {test, validation, supervision};
}

/// Gives the links that come first in an order to the test, the next to validation, then to
/// supervision. `precedes` must be a total order, so that the result does not depend on the sort.
template <class Precedes>
std::vector<LinkPart> dealt(const Graph& graph, std::vector<Link> links, const LinkShares& shares,
                            Precedes&& precedes) {
  const Counts counts = counts_of(shares, static_cast<std::int64_t>(links.size()));
  std::vector<LinkPart> parts(static_cast<std::size_t>(graph.num_edges()), LinkPart::train);
  auto begin = links.begin();
  const auto deal = [&](std::int64_t count, LinkPart part) {
    const auto end = begin + count;
    if (end != links.end()) std::nth_element(begin, end, links.end(), precedes);
    for (; begin != end; ++begin) {
      parts[static_cast<std::size_t>(begin->edge)] = part;
      if (begin->reverse >= 0) parts[static_cast<std::size_t>(begin->reverse)] = part;
    }
  };
  deal(counts.test, LinkPart::test);
  deal(counts.validation, LinkPart::validation);
  deal(counts.supervision, LinkPart::supervision);
  return parts;
}

void require_sizes(const Graph& graph, std::size_t numbers, const char* what) {
  if (static_cast<EdgeOffset>(numbers) == graph.num_edges()) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{} {} for {} edges", numbers, what, graph.num_edges()), where,
              "give one for each edge, in the order of the graph's columns (CSR)");
}

/// Fails where an edge and its reverse are in different parts: one would give the other away.
void require_no_leak(const Graph& graph, std::span<const LinkPart> parts) {
  const auto leaks = [&](VertexId target, EdgeOffset edge) {
    const EdgeOffset reverse = reverse_of(graph, target, edge);
    return reverse >= 0 &&
           parts[static_cast<std::size_t>(edge)] != parts[static_cast<std::size_t>(reverse)];
  };
  const auto first_leak = parallel_reduce(
      graph.num_rows(), even_grain(graph.num_rows()), graph.num_edges(),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
            if (leaks(static_cast<VertexId>(row), k)) return k;
          }
        }
        return graph.num_edges();
      },
      [](EdgeOffset a, EdgeOffset b) { return std::min(a, b); });
  if (first_leak == graph.num_edges()) return;
  const auto& offsets = graph.row_offsets();
  const auto target =
      std::upper_bound(offsets.begin(), offsets.end(), first_leak) - offsets.begin() - 1;
  throw Error(ErrorCode::bad_data,
              fmt::format("the edge from {} to {} and its reverse are in different parts",
                          graph.col_indices()[first_leak], target),
              where, "put both into one part: each gives the other away");
}

/// The edges that a graph of some parts keeps.
template <class Keeps>
Graph filtered(const Graph& graph, Keeps&& keeps) {
  detail::RowWriter writer(
      graph,
      detail::offsets_from_counts(graph.num_rows(),
                                  [&](VertexId row) {
                                    EdgeOffset count = 0;
                                    for (EdgeOffset k = graph.row_offsets()[row];
                                         k < graph.row_offsets()[row + 1]; ++k) {
                                      count += keeps(k) ? 1 : 0;
                                    }
                                    return count;
                                  }),
      graph.has_values());
  parallel_for(graph.num_rows(), even_grain(graph.num_rows()), [&](std::int64_t row) {
    EdgeOffset next = writer.row_begin(static_cast<VertexId>(row));
    for (EdgeOffset k = graph.row_offsets()[row]; k < graph.row_offsets()[row + 1]; ++k) {
      if (keeps(k)) writer.move(next++, graph.col_indices()[k], k);
    }
  });
  return std::move(writer).finish(graph.num_rows(), graph.num_cols());
}

/// The edges of one part as pairs; `once` leaves out each edge whose reverse has been listed.
Pairs pairs_of(const Graph& graph, std::span<const LinkPart> parts, LinkPart part, bool once) {
  Pairs pairs;
  for (VertexId target = 0; target < graph.num_rows(); ++target) {
    for (EdgeOffset k = graph.row_offsets()[target]; k < graph.row_offsets()[target + 1]; ++k) {
      const VertexId source = graph.col_indices()[k];
      if (parts[static_cast<std::size_t>(k)] != part || (once && source > target)) continue;
      pairs.sources.push_back(source);
      pairs.targets.push_back(target);
    }
  }
  return pairs;
}

}  // namespace

std::vector<LinkPart> draw_link_parts(const Graph& graph, const LinkShares& shares,
                                      std::uint64_t seed) {
  require_simple(graph);
  const Random random(seed, draw_parts);
  std::vector<std::uint64_t> keys(static_cast<std::size_t>(graph.num_edges()));
  parallel_for(graph.num_edges(), even_grain(graph.num_edges()), [&](EdgeOffset edge) {
    keys[static_cast<std::size_t>(edge)] = random.bits64(static_cast<std::uint64_t>(edge));
  });
  return dealt(graph, links_of(graph), shares, [&](const Link& a, const Link& b) {
    const auto of_a = keys[static_cast<std::size_t>(a.edge)];
    const auto of_b = keys[static_cast<std::size_t>(b.edge)];
    return of_a != of_b ? of_a < of_b : a.edge < b.edge;
  });
}

std::vector<LinkPart> link_parts_by_time(const Graph& graph, std::span<const double> times,
                                         const LinkShares& shares) {
  require_simple(graph);
  require_sizes(graph, times.size(), "times");
  const auto odd = std::find_if(times.begin(), times.end(), [](double t) { return std::isnan(t); });
  if (odd != times.end()) {
    throw Error(ErrorCode::bad_data,
                fmt::format("the time of edge {} is not a number", odd - times.begin()), where,
                "give every edge a time, or leave it out of the graph");
  }
  const auto age = [&](const Link& link) {
    const double own = times[static_cast<std::size_t>(link.edge)];
    return link.reverse < 0 ? own : std::min(own, times[static_cast<std::size_t>(link.reverse)]);
  };
  return dealt(graph, links_of(graph), shares, [&](const Link& a, const Link& b) {
    const double of_a = age(a);
    const double of_b = age(b);
    return of_a != of_b ? of_a > of_b : a.edge > b.edge;
  });
}

Matrix<VertexId> as_matrix(const Pairs& pairs) {
  Matrix<VertexId> matrix(2, pairs.size());
  std::copy(pairs.sources.begin(), pairs.sources.end(), matrix.row(0));
  std::copy(pairs.targets.begin(), pairs.targets.end(), matrix.row(1));
  return matrix;
}

bool check_link_parts(const Graph& graph, std::span<const LinkPart> parts) {
  require_simple(graph);
  require_sizes(graph, parts.size(), "parts");
  require_no_leak(graph, parts);
  return graph.is_square() && detail::symmetry_of(graph).of_pattern();
}

LinkSplit split_links(const Graph& graph, std::span<const LinkPart> parts) {
  const bool once = check_link_parts(graph, parts);
  detail::require_no_scales(graph, where);
  const auto up_to = [&](LinkPart last) {
    return filtered(graph,
                    [&](EdgeOffset k) { return parts[static_cast<std::size_t>(k)] <= last; });
  };
  const bool supervised =
      std::find(parts.begin(), parts.end(), LinkPart::supervision) != parts.end();
  return {up_to(LinkPart::train),
          up_to(LinkPart::supervision),
          up_to(LinkPart::validation),
          pairs_of(graph, parts, supervised ? LinkPart::supervision : LinkPart::train, once),
          pairs_of(graph, parts, LinkPart::validation, once),
          pairs_of(graph, parts, LinkPart::test, once)};
}

}  // namespace tessera::links
