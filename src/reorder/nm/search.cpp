// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "tessera/graph/transform.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::reorder {
namespace {

constexpr int least_m = 4;
constexpr int most_m = 32;
constexpr int most_v = 32;

/// Tries patterns one after another, within one time limit, and keeps what became of each.
class Trials {
 public:
  Trials(const Graph& graph, const NmOptions& options) : graph_(graph), options_(options) {}

  /// The order of the pattern; remembered without its permutation.
  NmOrder attempt(const NmPattern& pattern) {
    NmOptions options = options_;
    options.stop = [this] {
      was_stopped_ = was_stopped_ || (options_.stop && options_.stop());
      return was_stopped_;
    };
    if (options_.time_limit_seconds > 0) {
      // A trial that begins after the limit still gives an order, after one look at the clock.
      options.time_limit_seconds = std::max(1e-6, options_.time_limit_seconds - spent_);
    }
    NmOrder order = order_nm(graph_, pattern, options);
    spent_ += order.seconds;
    NmOrder remembered = order;
    remembered.order = {};
    tried.push_back(std::move(remembered));
    return order;
  }

  /// Whether no order can conform, padded or not.
  bool is_impossible(const NmPattern& pattern) const {
    const auto obstacle =
        find_obstacle(options_.ignore_loops ? without_self_loops(graph_) : graph_, pattern);
    return obstacle && !(options_.pad && obstacle->padding > 0);
  }

  /// Whether the caller has asked to stop, after which nothing more is tried.
  bool was_stopped() const { return was_stopped_; }

  double predicted_time(const NmOrder& order) const {
    constexpr std::int64_t features = 128;
    const Graph ordered = permuted(padded(pattern_alone(), order.padding), order.order);
    return predicted_nm_microseconds(nm_work(ordered, order.pattern), ordered.num_rows(), features);
  }

  std::vector<NmOrder> tried;

 private:
  Graph pattern_alone() const { return graph_.with_scales({}, {}).with_values({}); }

  const Graph& graph_;
  const NmOptions& options_;
  double spent_ = 0;
  bool was_stopped_ = false;
};

NmOrder as_the_paper(Trials& trials) {
  NmOrder best = trials.attempt({1, 2, least_m});
  if (!best.after.conforms()) return best;
  for (int m = 2 * least_m; m <= most_m && !trials.was_stopped(); m *= 2) {
    NmOrder next = trials.attempt({1, 2, m});
    if (!next.after.conforms()) break;
    best = std::move(next);
  }
  for (int v = 2; v <= most_v && !trials.was_stopped(); v *= 2) {
    NmOrder next = trials.attempt({v, 2, best.pattern.m});
    if (!next.after.conforms()) break;
    best = std::move(next);
  }
  return best;
}

/// All patterns, the one with the largest meta-blocks first; of equal ones the wider.
std::vector<NmPattern> hardest_first() {
  std::vector<NmPattern> patterns;
  for (int v = most_v; v >= 1; v /= 2) {
    for (int m = most_m; m >= least_m; m /= 2) patterns.push_back({v, 2, m});
  }
  std::stable_sort(patterns.begin(), patterns.end(), [](const NmPattern& a, const NmPattern& b) {
    return std::pair{a.v * a.m, a.m} > std::pair{b.v * b.m, b.m};
  });
  return patterns;
}

NmOrder hardest(Trials& trials) {
  NmOrder last;
  for (const NmPattern& pattern : hardest_first()) {
    const bool is_last = pattern == NmPattern{1, 2, least_m};
    if (!is_last && trials.is_impossible(pattern)) continue;
    last = trials.attempt(pattern);
    if (last.after.conforms() || trials.was_stopped()) break;
  }
  return last;
}

NmOrder fastest(Trials& trials) {
  NmOrder best = trials.attempt({1, 2, least_m});
  if (!best.after.conforms()) return best;
  double least = trials.predicted_time(best);
  for (const NmPattern& pattern : {NmPattern{1, 2, 8}, NmPattern{1, 2, 16}, NmPattern{16, 2, 8},
                                   NmPattern{16, 2, 16}, NmPattern{32, 2, 8}}) {
    if (trials.was_stopped()) break;
    if (trials.is_impossible(pattern)) continue;
    NmOrder next = trials.attempt(pattern);
    if (!next.after.conforms()) continue;
    const double time = trials.predicted_time(next);
    if (time < least) {
      least = time;
      best = std::move(next);
    }
  }
  return best;
}

}  // namespace

double predicted_nm_microseconds(const NmWork& work, std::int64_t rows, std::int64_t features) {
  // Assumed rates of an H200, from its ceilings: gathers and stores in bytes per microsecond;
  // products of 16 x 4 x 1 elements per microsecond at half the peak of sparse tensor cores; and
  // one launch.
  constexpr double gather_rate = 4.0e6;
  constexpr double product_rate = 1.5e7;
  constexpr double launch = 5;
  const auto width = static_cast<double>(features);
  const double moved = 2 * width * static_cast<double>(work.gathered_rows + rows);
  return launch + moved / gather_rate + width * static_cast<double>(work.quads) / product_rate;
}

NmSearchResult search_nm(const Graph& graph, NmSearch search, const NmOptions& options) {
  Trials trials(graph, options);
  NmSearchResult result;
  result.best = search == NmSearch::paper     ? as_the_paper(trials)
                : search == NmSearch::hardest ? hardest(trials)
                                              : fastest(trials);
  result.tried = std::move(trials.tried);
  return result;
}

}  // namespace tessera::reorder
