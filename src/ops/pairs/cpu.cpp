// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ops/dense/row_ranges.hpp"
#include "ops/dense/wide_rows.hpp"
#include "ops/pairs/kernels.hpp"
#include "ops/pairs/loss_formula.hpp"
#include "ops/pairs/rows.hpp"
#include "ops/plan/check.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops::on_cpu {
namespace {

/// Writes pair k, and its turned copy behind all others.
struct WrittenPairs {
  MatrixView<std::int32_t> pairs;
  bool both_ways = false;

  std::int64_t count() const { return both_ways ? pairs.cols / 2 : pairs.cols; }
  void write(std::int64_t k, Pair pair) const {
    pairs(0, k) = pair.source;
    pairs(1, k) = pair.target;
    if (!both_ways) return;
    pairs(0, k + count()) = pair.target;
    pairs(1, k + count()) = pair.source;
  }
};

}  // namespace

void choose_pairs(ConstOperand pairs, const PairBatches& batches, Operand chosen) {
  const auto from = pairs.as<std::int32_t>();
  const WrittenPairs to{chosen.as<std::int32_t>(), batches.both_ways};
  const std::int64_t step = batches.clock == nullptr ? batches.step : batches.clock->step;
  const std::int64_t steps = batches_of(from.cols, batches.size);
  const IndexShuffle order =
      order_of(from.cols, IndexShuffle::square_side(static_cast<std::uint64_t>(from.cols)),
               batches.seed, step / steps);
  const std::int64_t first = step % steps * batches.size;
  parallel_for(batches.size, even_grain(batches.size), [&](std::int64_t i) {
    const auto k = static_cast<std::int64_t>(order(static_cast<std::uint64_t>(first + i)));
    to.write(i, {from(0, k), from(1, k)});
  });
}

void draw_negatives(ConstOperand positives, const NonEdgeLists& known, const NegativeDraw& draw,
                    Operand negatives) {
  const auto from = positives.as<std::int32_t>();
  const WrittenPairs to{negatives.as<std::int32_t>(), draw.both_ways};
  const std::uint32_t step =
      draw.clock == nullptr ? draw.step : static_cast<std::uint32_t>(draw.clock->step);
  const Random random(draw.seed, draw_of_negatives, step);
  parallel_for(to.count(), even_grain(to.count()), [&](std::int64_t i) {
    const VertexId source = from(0, i / draw.per_positive);
    to.write(i, drawn_negative(known, draw.kind, source, random, static_cast<std::uint64_t>(i)));
  });
}

/// Ends are cut into parts, whose places in each list follow one another.
void list_ends(ConstOperand pairs, PairEnds::State& lists) {
  const auto ids = pairs.as<std::int32_t>();
  const std::int64_t count = 2 * ids.cols, rows = lists.num_rows;
  const std::int64_t parts = std::clamp<std::int64_t>(count / (rows + 4096), 1, num_threads());
  const std::int64_t grain = std::max<std::int64_t>((count + parts - 1) / parts, 1);
  std::vector<std::int32_t> places(static_cast<std::size_t>(parts * rows));
  const auto for_ends = [&](auto&& visit) {
    parallel_ranges(count, grain, [&](std::int64_t begin, std::int64_t end) {
      std::int32_t* const of_part = places.data() + begin / grain * rows;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t side = i >= ids.cols ? 1 : 0, pair = i - side * ids.cols;
        visit(of_part, pair, side);
      }
    });
  };
  for_ends([&](std::int32_t* of_part, std::int64_t pair, std::int64_t side) {
    ++of_part[ids(side, pair)];
  });
  std::int32_t before = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    lists.offsets[row] = before;
    for (std::int64_t part = 0; part < parts; ++part) {
      before += std::exchange(places[static_cast<std::size_t>(part * rows + row)], before);
    }
  }
  lists.offsets[rows] = before;
  for_ends([&](std::int32_t* of_part, std::int64_t pair, std::int64_t side) {
    const std::int32_t row = ids(side, pair);
    lists.ends[of_part[row]++] = {row, ids(1 - side, pair), static_cast<std::int32_t>(pair),
                                  static_cast<std::int32_t>(side)};
  });
}

void pair_dot(const PairScoring& scoring) {
  visit_stored(scoring.y.type, [&]<class T>() {
    const auto& functions = pairs().of<T>();
    const auto sources = scoring.sources.as<T>(), targets = scoring.targets.as<T>();
    const auto ids = scoring.pairs.as<std::int32_t>();
    const auto y = scoring.y.as<T>();
    for_each_row(y.rows, sources.cols, [&](std::int64_t k) {
      functions.dot(sources.row(ids(0, k)), targets.row(ids(1, k)), y.cols, sources.cols / y.cols,
                    y.row(k));
    });
  });
}

void pair_sum(const PairScoring& scoring) {
  visit_stored(scoring.y.type, [&]<class T>() {
    const auto sources = scoring.sources.as<T>(), targets = scoring.targets.as<T>();
    const auto ids = scoring.pairs.as<std::int32_t>();
    const auto y = scoring.y.as<T>();
    for_each_row(y.rows, y.cols, [&](std::int64_t k) {
      const T* const source = sources.row(ids(0, k));
      const T* const target = targets.row(ids(1, k));
      T* const row = y.row(k);
      for (std::int64_t j = 0; j < y.cols; ++j) {
        row[j] = T(static_cast<Wide<T>>(source[j]) + static_cast<Wide<T>>(target[j]));
      }
    });
  });
}

void sum_ends(const PairSum& sum) {
  const PairEnds::State& lists = *sum.lists;
  visit_stored(sum.y.type, [&]<class T>() {
    const auto& functions = pairs().of<T>();
    const auto rows_of = [](const ConstOperand& matrix) {
      return PairRows<T>{static_cast<const T*>(matrix.data), matrix.stride};
    };
    const PairRows<T> others[2] = {rows_of(sum.others[0]), rows_of(sum.others[1])};
    const auto y = sum.y.as<T>();
    const std::int64_t heads = sum.gradient.cols;
    // Rows of many ends are spread over the tasks as well as they lie.
    const std::int64_t grain = std::clamp<std::int64_t>(y.rows / 256, 1, 512);
    parallel_ranges(y.rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        functions.sum(lists.ends.data() + lists.offsets[row],
                      lists.offsets[row + 1] - lists.offsets[row], sum.sides, others,
                      rows_of(sum.gradient), heads, y.cols, y.row(row));
      }
    });
  });
}

void pair_loss(const PairLossCall& call) {
  const PairLossOptions& options = call.options;
  const auto totals = visit_stored(call.scores.type, [&]<class T>() {
    using W = Wide<T>;
    const auto scores = call.scores.as<T>();
    const auto gradient = call.gradient.as<T>();
    const auto slope_at = [&](std::int64_t k, W slope, double* sums) {
      sums[1] += static_cast<double>(slope);
      if (gradient.data != nullptr) gradient(k, 0) = T(slope);
    };
    const PairTerms<W> terms(options);
    const W share = static_cast<W>(1 / call.counted());
    if (options.kind == PairLossKind::bce) {
      return sum_each_row(scores.rows, 2, [&](std::int64_t k, double* sums) {
        const PairTerm<W> term =
            terms.of_score(static_cast<W>(scores(k, 0)), k < options.positives);
        sums[0] += static_cast<double>(term.value);
        slope_at(k, term.slope * share, sums);
      });
    }
    const std::int64_t each = call.per_positive();
    return sum_each_row(options.positives, 2, [&](std::int64_t i, double* sums) {
      const W positive = static_cast<W>(scores(i, 0));
      double slopes = 0;
      for (std::int64_t k = options.positives + i * each; k < options.positives + (i + 1) * each;
           ++k) {
        const PairTerm<W> term = terms.of_both(positive, static_cast<W>(scores(k, 0)));
        sums[0] += static_cast<double>(term.value);
        slopes += static_cast<double>(term.slope);
        slope_at(k, term.slope * share, sums);
      }
      slope_at(i, static_cast<W>(-slopes) * share, sums);
    });
  });
  *call.value = totals[0] / call.counted();
  if (call.gradient_sum.absent()) return;
  visit_stored(call.gradient_sum.type,
               [&]<class T>() { call.gradient_sum.as<T>()(0, 0) = rounded_to<T>(totals[1]); });
}

}  // namespace tessera::ops::on_cpu
