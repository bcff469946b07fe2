// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/reorder/layout.hpp"

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"

namespace tessera::reorder {
namespace {

/// Exchanges between two halves are made in rounds. Most of the gain is that of the first ones.
constexpr int most_rounds = 10;
/// The last round is the first that moves fewer rows than one of so many.
constexpr std::int64_t rows_per_late_move = 1000;
/// Rows of a part, and columns, that a thread looks at in one go.
constexpr std::int64_t rows_per_range = 1024;
constexpr std::int64_t columns_per_range = 1 << 14;
/// From so many parts on each is a task, and until then the work inside of one is shared.
constexpr std::size_t parts_of_tasks = 64;

/// Consecutive places of the order, and the columns that at least two of their rows use, by numbers
/// of the part's own. A column that one row uses has no say in where it goes.
struct Part {
  std::int64_t first_place = 0;
  std::vector<EdgeOffset> offsets{0};
  std::vector<VertexId> columns;
  VertexId num_columns = 0;

  std::int64_t num_rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  bool is_window() const { return num_rows() <= row_window; }
  std::span<const VertexId> columns_of(std::int64_t row) const {
    const auto at = static_cast<std::size_t>(row);
    return std::span(columns).subspan(static_cast<std::size_t>(offsets[at]),
                                      static_cast<std::size_t>(offsets[at + 1] - offsets[at]));
  }
};

/// Parts end where windows do: of tall tiles while they are larger than such a window, then of
/// short ones.
std::int64_t rows_of_first_half(std::int64_t rows) {
  const std::int64_t window = rows > layout_window ? layout_window : row_window;
  return std::max(window, (rows / 2 + window / 2) / window * window);
}

/// How many rows of each half use a column, or what is gained by moving one of them to the other.
using OfHalves = std::array<VertexId, 2>;
using Gains = std::array<float, 2>;

/// Bits that the gaps between the rows of a column take in both halves, if they are spread evenly.
class Bits {
 public:
  explicit Bits(VertexId most_uses) : logarithms_(static_cast<std::size_t>(most_uses) + 1) {
    for (std::size_t i = 0; i < logarithms_.size(); ++i) {
      logarithms_[i] = std::log2(static_cast<float>(i + 1));
    }
  }
  Gains gains_of_moving(const OfHalves& uses, const Gains& log_rows) const {
    const auto bits = [&](VertexId first, VertexId second) {
      return of_half(first, log_rows[0]) + of_half(second, log_rows[1]);
    };
    const float now = bits(uses[0], uses[1]);
    return {uses[0] == 0 ? 0 : now - bits(uses[0] - 1, uses[1] + 1),
            uses[1] == 0 ? 0 : now - bits(uses[0] + 1, uses[1] - 1)};
  }

 private:
  float of_half(VertexId uses, float log_rows) const {
    return static_cast<float>(uses) * (log_rows - logarithms_[static_cast<std::size_t>(uses)]);
  }
  std::vector<float> logarithms_;  ///< of one more than the index
};

/// A part that is cut in two. Rows keep their numbers while their places change.
class Halves {
 public:
  Halves(const Part& part, const Bits& bits)
      : part_(part),
        bits_(bits),
        boundary_(rows_of_first_half(part.num_rows())),
        row_at_(static_cast<std::size_t>(part.num_rows())),
        gains_(row_at_.size()),
        uses_(static_cast<std::size_t>(part.num_columns), OfHalves{}),
        column_gains_(uses_.size()) {
    std::iota(row_at_.begin(), row_at_.end(), 0);
    for (std::int64_t row = 0; row < part.num_rows(); ++row) {
      for (const VertexId column : part.columns_of(row)) ++uses_of(column)[half_of(row)];
    }
  }

  /// Rows change places with rows of the other half, the pairs that gain most first, until few do.
  void exchange() {
    for (int round = 0; round < most_rounds; ++round) {
      weigh();
      const std::array<std::vector<Move>, 2> moves = moves_that_may_pay();
      const std::size_t most = std::min(moves[0].size(), moves[1].size());
      std::size_t made = 0;
      while (made < most && moves[0][made].gain + moves[1][made].gain > 0) {
        swap_places(moves[0][made].place, moves[1][made].place);
        ++made;
      }
      if (static_cast<std::int64_t>(made) * rows_per_late_move < part_.num_rows()) return;
    }
  }

  /// Rows of the part in their new places.
  const std::vector<VertexId>& rows() const { return row_at_; }

  Part half(std::size_t which) const {
    const std::int64_t begin = which == 0 ? 0 : boundary_;
    const std::int64_t end = which == 0 ? boundary_ : part_.num_rows();
    Part half;
    half.first_place = part_.first_place + begin;
    half.offsets.reserve(static_cast<std::size_t>(end - begin) + 1);
    std::vector<VertexId> numbers(uses_.size(), -1);
    for (std::int64_t place = begin; place < end; ++place) {
      for (const VertexId column : part_.columns_of(row_at(place))) {
        const auto at = static_cast<std::size_t>(column);
        if (uses_[at][which] < 2) continue;
        if (numbers[at] < 0) numbers[at] = half.num_columns++;
        half.columns.push_back(numbers[at]);
      }
      half.offsets.push_back(static_cast<EdgeOffset>(half.columns.size()));
    }
    return half;
  }

 private:
  struct Move {
    float gain;
    std::int64_t place;
  };

  std::size_t half_of(std::int64_t place) const { return place < boundary_ ? 0 : 1; }
  VertexId& row_at(std::int64_t place) { return row_at_[static_cast<std::size_t>(place)]; }
  VertexId row_at(std::int64_t place) const { return row_at_[static_cast<std::size_t>(place)]; }
  OfHalves& uses_of(VertexId column) { return uses_[static_cast<std::size_t>(column)]; }

  /// What moving the row at each place to the other half gains.
  void weigh() {
    const Gains log_rows = {std::log2(static_cast<float>(boundary_)),
                            std::log2(static_cast<float>(part_.num_rows() - boundary_))};
    parallel_for(part_.num_columns, columns_per_range, [&](std::int64_t column) {
      const auto at = static_cast<std::size_t>(column);
      column_gains_[at] = bits_.gains_of_moving(uses_[at], log_rows);
    });
    parallel_for(part_.num_rows(), rows_per_range, [&](std::int64_t place) {
      const std::size_t half = half_of(place);
      float gain = 0;
      for (const VertexId column : part_.columns_of(row_at(place))) {
        gain += column_gains_[static_cast<std::size_t>(column)][half];
      }
      gains_[static_cast<std::size_t>(place)] = gain;
    });
  }

  /// Of each half from the largest gain on, those that gain something with the best of the other.
  std::array<std::vector<Move>, 2> moves_that_may_pay() const {
    const auto boundary = gains_.begin() + boundary_;
    const Gains best = {*std::max_element(gains_.begin(), boundary),
                        *std::max_element(boundary, gains_.end())};
    std::array<std::vector<Move>, 2> moves;
    parallel_tasks(2, [&](std::int64_t half) {
      std::vector<Move>& found = moves[static_cast<std::size_t>(half)];
      const std::int64_t end = half == 0 ? boundary_ : part_.num_rows();
      for (std::int64_t place = half == 0 ? 0 : boundary_; place < end; ++place) {
        const float gain = gains_[static_cast<std::size_t>(place)];
        if (gain + best[half == 0 ? 1 : 0] > 0) found.push_back({gain, place});
      }
      std::sort(found.begin(), found.end(), [](const Move& a, const Move& b) {
        return a.gain > b.gain || (a.gain == b.gain && a.place < b.place);
      });
    });
    return moves;
  }

  void swap_places(std::int64_t in_first, std::int64_t in_second) {
    for (const VertexId column : part_.columns_of(row_at(in_first))) {
      --uses_of(column)[0];
      ++uses_of(column)[1];
    }
    for (const VertexId column : part_.columns_of(row_at(in_second))) {
      ++uses_of(column)[0];
      --uses_of(column)[1];
    }
    std::swap(row_at(in_first), row_at(in_second));
  }

  const Part& part_;
  const Bits& bits_;
  const std::int64_t boundary_;  ///< places before it are in the first half
  std::vector<VertexId> row_at_;
  std::vector<float> gains_;  ///< by place
  std::vector<OfHalves> uses_;
  std::vector<Gains> column_gains_;
};

class Bisection {
 public:
  Bisection(const Graph& graph, const Progress& progress)
      : bits_(most_uses_of_a_column(graph)),
        order_(static_cast<std::size_t>(graph.num_rows())),
        progress_(progress) {
    std::iota(order_.begin(), order_.end(), VertexId{0});
    Part all;
    all.offsets.assign(graph.row_offsets().begin(), graph.row_offsets().end());
    all.columns.assign(graph.col_indices().begin(), graph.col_indices().end());
    all.num_columns = graph.num_cols();
    std::vector<Part> parts;
    parts.push_back(std::move(all));
    while (!parts.empty() && parts.size() < parts_of_tasks) {
      report(progress_, "bisecting", done_, graph.num_rows());
      std::vector<Part> halves;
      for (Part& part : parts) {
        if (part.is_window()) done_ += part.num_rows();
        split(std::move(part), halves);
      }
      parts = std::move(halves);
    }
    parallel_tasks(static_cast<std::int64_t>(parts.size()), [&](std::int64_t i) {
      Part& part = parts[static_cast<std::size_t>(i)];
      const std::int64_t rows = part.num_rows();
      finish(std::move(part));
      const std::lock_guard<std::mutex> lock(reporting_);
      report(progress_, "bisecting", done_ += rows, graph.num_rows());
    });
  }

  std::vector<VertexId> order() && { return std::move(order_); }

 private:
  static VertexId most_uses_of_a_column(const Graph& graph) {
    std::vector<VertexId> uses(static_cast<std::size_t>(graph.num_cols()), 0);
    for (const VertexId column : graph.col_indices().span())
      ++uses[static_cast<std::size_t>(column)];
    return uses.empty() ? 0 : *std::max_element(uses.begin(), uses.end());
  }

  /// Appends both halves of a part in their new order; nothing of one that is a window.
  void split(Part part, std::vector<Part>& into) {
    if (part.is_window()) return;
    Halves halves(part, bits_);
    halves.exchange();
    place(part, halves.rows());
    const std::size_t first = into.size();
    into.resize(first + 2);
    parallel_tasks(2, [&](std::int64_t half) {
      into[first + static_cast<std::size_t>(half)] = halves.half(static_cast<std::size_t>(half));
    });
  }

  void finish(Part part) {
    std::vector<Part> open;
    split(std::move(part), open);
    while (!open.empty()) {
      Part next = std::move(open.back());
      open.pop_back();
      split(std::move(next), open);
    }
  }

  void place(const Part& part, const std::vector<VertexId>& rows) {
    const auto begin = order_.begin() + part.first_place;
    const std::vector<VertexId> before(begin, begin + part.num_rows());
    std::transform(rows.begin(), rows.end(), begin,
                   [&](VertexId row) { return before[static_cast<std::size_t>(row)]; });
  }

  const Bits bits_;
  std::vector<VertexId> order_;
  const Progress& progress_;
  std::mutex reporting_;
  std::int64_t done_ = 0;
};

}  // namespace

Permutation bisection(const Graph& given, const Progress& progress) {
  tessera::detail::require_square(given, "reordering");
  return Permutation(Bisection(tessera::detail::undirected(given), progress).order());
}

}  // namespace tessera::reorder
