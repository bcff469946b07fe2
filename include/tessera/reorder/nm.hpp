// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/core/progress.hpp"
#include "tessera/reorder/permutation.hpp"

/// Orders of the vertices in which the adjacency fits the patterns of sparse tensor cores. Each
/// takes a square graph and ignores direction, so that the transpose fits, too.
namespace tessera::reorder {

/// V:N:M. Cut into meta-blocks of V rows and M columns, every row of a meta-block (a segment
/// vector) has at most N entries, and at most four of its columns have any.
struct NmPattern {
  static constexpr int most_live_columns = 4;

  int v = 1;
  int n = 2;
  int m = 4;

  /// "16:2:16", or "2:4" for 1:2:4. V is 1, 2, 4, 8, 16 or 32; N is 2; M is 4, 8, 16 or 32.
  static NmPattern parse(std::string_view text);
  /// Throws `invalid_argument` for numbers that are not among those.
  void validate() const;
  friend bool operator==(const NmPattern&, const NmPattern&) = default;
};

std::string to_string(const NmPattern& pattern);
std::ostream& operator<<(std::ostream& out, const NmPattern& pattern);

/// What of a graph breaks a pattern.
struct NmViolations {
  std::int64_t vectors = 0;      ///< segment vectors with more than N entries
  std::int64_t meta_blocks = 0;  ///< meta-blocks with such a vector or too many live columns

  bool conforms() const noexcept { return meta_blocks == 0; }
  friend bool operator==(const NmViolations&, const NmViolations&) = default;
};

NmViolations count_violations(const Graph& graph, const NmPattern& pattern);

/// Work of a product on sparse tensor cores with the graph in its present order.
struct NmWork {
  std::int64_t gathered_rows = 0;  ///< columns with entries, summed over windows of 16 or V rows
  std::int64_t quads = 0;          ///< groups of four columns that are multiplied in 16 rows
};
NmWork nm_work(const Graph& graph, const NmPattern& pattern);

/// Why no order at all can fit the pattern; nothing where an order may exist. `padding` counts the
/// empty vertices after which the longest row is no obstacle; -1 where something else is one, for
/// which padding is not tried.
struct NmObstacle {
  std::string reason;
  std::int64_t padding = -1;
};
std::optional<NmObstacle> find_obstacle(const Graph& graph, const NmPattern& pattern);

/// `paper` follows SOGRE: rows sorted by the Hamming position codes of their segment vectors, then
/// swaps between the worst segments. `group` is ours: for V = 1 columns are put into groups,
/// nearest first; for V > 1 entries are spread over meta-blocks by swaps.
enum class NmAlgorithm { paper, group };
NmAlgorithm parse_nm_algorithm(std::string_view text);
const char* to_string(NmAlgorithm algorithm) noexcept;

struct NmOptions {
  NmAlgorithm algorithm = NmAlgorithm::group;
  std::uint64_t seed = 1;
  bool ignore_loops = false;      ///< leave self loops out of the pattern
  bool pad = false;               ///< add empty vertices where that makes the pattern possible
  double effort = 1;              ///< factor on the steps that a search may take
  double time_limit_seconds = 0;  ///< 0: none. A limit that is hit gives the best order so far
  std::function<bool()> stop;     ///< asked now and then; true gives the best order so far
  Progress progress;
};

struct NmOrder {
  NmPattern pattern;
  NmAlgorithm algorithm = NmAlgorithm::group;
  Permutation order;         ///< of the vertices and the padding, which comes after them
  std::int64_t padding = 0;  ///< empty vertices added
  NmViolations before;
  NmViolations after;
  std::int64_t iterations = 0;  ///< swaps of `group`, passes of `paper`
  double seconds = 0;           ///< without the counting before and after
  bool stopped = false;         ///< by the time limit or by the caller
  std::string obstacle;         ///< why the pattern is impossible; empty where it may be possible

  /// Share of the violating segment vectors that are gone; 1 where there was none.
  double improvement() const noexcept;
};

/// The same order for any number of threads, and, without a time limit, on every machine.
NmOrder order_nm(const Graph& graph, const NmPattern& pattern, const NmOptions& options = {});

/// `paper` doubles M from 4 while the graph conforms, then V; `hardest` tries patterns from the
/// largest blocks down and takes the first that conforms; `time` takes the conforming pattern with
/// the least predicted time of a product.
enum class NmSearch { paper, hardest, time };
NmSearch parse_nm_search(std::string_view text);

struct NmSearchResult {
  NmOrder best;
  std::vector<NmOrder> tried;  ///< without their permutations
};
NmSearchResult search_nm(const Graph& graph, NmSearch search, const NmOptions& options = {});

/// Microseconds of a product with `features` features in bf16, from the work it takes.
double predicted_nm_microseconds(const NmWork& work, std::int64_t rows, std::int64_t features);

/// What is left of a graph after edges were dropped until it conforms: not lossless, for
/// comparison.
struct NmPruned {
  Graph graph;
  EdgeOffset dropped = 0;
};

/// The four columns of each meta-block with the largest sums of |weight| stay, then the two largest
/// of each row, the first among equal ones. Vertices keep their order.
NmPruned prune_nm(const Graph& graph, const NmPattern& pattern);

/// The graph with `padding` more vertices, all without edges.
Graph padded(const Graph& graph, std::int64_t padding);

}  // namespace tessera::reorder
