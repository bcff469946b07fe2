// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ops/pairs/kernels.hpp"
#include "ops/plan/check.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/detail/ops/plan_only.hpp"

namespace tessera::ops {
namespace {

#ifdef TESSERA_WITH_CUDA
constexpr bool has_cuda = true;
#else
constexpr bool has_cuda = false;
#endif

/// Runs the version of a device; a build without CUDA has none but the CPU's. A pass that only
/// plans runs neither.
template <class OnCpu, class OnGpu>
void run_on(Device device, OnCpu&& cpu, [[maybe_unused]] OnGpu&& gpu) {
  if (plans_only()) return;
  if constexpr (has_cuda) {
    if (device.kind == DeviceKind::cuda) return gpu();
  }
  cpu();
}

void check_list(const Checker& check, const ConstOperand& pairs, const char* name,
                std::int64_t count) {
  check.matrix(pairs, name, {ElementType::int32, 2, count});
}

/// Only the CPU looks at what a list says.
void check_ids(const Checker& check, Device device, const ConstOperand& pairs, int side,
               std::int64_t rows, const char* of) {
  if (device.kind != DeviceKind::cpu || plans_only()) return;
  const std::int32_t* const ids = pairs.as<std::int32_t>().row(side);
  const auto* const end = ids + pairs.cols;
  const auto* const wrong =
      std::find_if(ids, end, [&](std::int32_t id) { return id < 0 || id >= rows; });
  if (wrong == end) return;
  check.fail(
      fmt::format("pairs[{}][{}] is {}, {} has {} rows", side, wrong - ids, *wrong, of, rows));
}

void check_ends(const Checker& check, Device device, const PairScoring& scoring) {
  check_ids(check, device, scoring.pairs, 0, scoring.sources.rows, "sources");
  check_ids(check, device, scoring.pairs, 1, scoring.targets.rows, "targets");
}

/// What both kinds of scoring expect of all but the width of y.
void check_scoring(const Checker& check, Device device, const PairScoring& scoring) {
  const auto& [sources, targets, pairs, y] = scoring;
  check.floating(sources, "sources");
  check.matrix(targets, "targets", {sources.type, targets.rows, sources.cols});
  check_list(check, pairs, "pairs", pairs.cols);
  check.matrix(y, "y", {sources.type, pairs.cols, y.cols});
  check.apart(y, "y", {{sources, "sources"}, {targets, "targets"}, {pairs, "pairs"}});
  check_ends(check, device, scoring);
}

bool is_same(const Operand& a, const Operand& b) { return !a.absent() && a.data == b.data; }

/// Both gradients of one kind, whose terms are multiplied with the rows at the other end.
void sum_both(const PairEnds& ends, ConstOperand sources, ConstOperand targets,
              ConstOperand gradient, Operand grad_sources, Operand grad_targets, Stream stream,
              const DenseWorkspace* workspace) {
  const auto sum = [&](PairSides sides, const Operand& y) {
    if (y.absent() || y.rows == 0 || y.cols == 0) return;
    const PairSum call{&ends.state(), sides, {targets, sources}, gradient, y};
    run_on(
        ends.device(), [&] { on_cpu::sum_ends(call); },
        [&] { on_gpu::sum_ends(call, stream, workspace); });
  };
  if (is_same(grad_sources, grad_targets)) return sum(of_both, grad_sources);
  sum(of_sources, grad_sources);
  sum(of_targets, grad_targets);
}

/// In memory of this process.
Buffer<std::int64_t> negatives_before(const Graph& graph) {
  const Csc& csc = graph.csc();
  Buffer<std::int64_t> before(std::int64_t{graph.num_cols()} + 1, 0);
  parallel_for(graph.num_cols(), even_grain(graph.num_cols()), [&](std::int64_t source) {
    const VertexId* const begin = csc.row_indices.data() + csc.col_offsets[source];
    const VertexId* const end = csc.row_indices.data() + csc.col_offsets[source + 1];
    const bool adds_itself = graph.is_square() && !std::binary_search(begin, end, source);
    before[source] = graph.num_rows() - (end - begin) - (adds_itself ? 1 : 0);
  });
  exclusive_scan(before.span());
  return before;
}

template <class T>
Buffer<T> copied(const T* values, std::int64_t count, const Place& place) {
  Buffer<T> copy(count, place);
  copy_bytes(copy.data(), values, static_cast<std::size_t>(count) * sizeof(T), place.device,
             place.stream);
  return copy;
}

}  // namespace

std::int64_t batches_of(std::int64_t n, std::int64_t size) { return size > 0 ? n / size : 0; }

void choose_pairs(ConstOperand pairs, const PairBatches& batches, Operand chosen, Device device,
                  Stream stream) {
  require_available(device);
  const Checker check("choose_pairs", device);
  check_list(check, pairs, "pairs", pairs.cols);
  check.that(batches.size > 0 && batches.size <= pairs.cols,
             fmt::format("batches of {} pairs of {}", batches.size, pairs.cols),
             "give at least 1, and at most as many as there are");
  check.that(batches.step >= 0, fmt::format("step {}", batches.step));
  check_list(check, chosen, "chosen", batches.size * (batches.both_ways ? 2 : 1));
  check.apart(chosen, "chosen", pairs, "pairs");
  run_on(
      device, [&] { on_cpu::choose_pairs(pairs, batches, chosen); },
      [&] { on_gpu::choose_pairs(pairs, batches, chosen, device, stream); });
}

NonEdges::NonEdges(const Graph& known, const Place& place, VertexId first_target) {
  require_available(place.device);
  auto state = std::make_shared<State>();
  state->device = place.device;
  state->graph = known;
  state->before = negatives_before(known);
  const Csc& csc = known.csc();
  NonEdgeLists& lists = state->lists;
  lists = {csc.col_offsets.data(), csc.row_indices.data(), state->before.data(), known.num_edges(),
           known.num_cols(),       known.is_square(),      first_target};
  if (place.device.kind != DeviceKind::cpu) {
    state->offsets = copied(lists.offsets, std::int64_t{known.num_cols()} + 1, place);
    state->targets = copied(lists.targets, known.num_edges(), place);
    state->before_there = copied(lists.before, state->before.size(), place);
    lists.offsets = state->offsets.data();
    lists.targets = state->targets.data();
    lists.before = state->before_there.data();
  }
  state_ = std::move(state);
}

std::int64_t NonEdges::count() const noexcept { return state_->before[state_->before.size() - 1]; }
std::int64_t NonEdges::count_of(VertexId source) const noexcept {
  return state_->before[source + 1] - state_->before[source];
}
Device NonEdges::device() const noexcept { return state_->device; }

void draw_negatives(ConstOperand positives, const NonEdges& known, const NegativeDraw& draw,
                    Operand negatives, Stream stream) {
  const Device device = known.device();
  const Checker check("draw_negatives", device);
  check_list(check, positives, "positives", positives.cols);
  check.that(draw.per_positive > 0,
             fmt::format("{} negatives for each positive pair", draw.per_positive),
             "ask for one at least");
  check_list(check, negatives, "negatives",
             checked_area(positives.cols, draw.per_positive * (draw.both_ways ? 2 : 1)));
  check.apart(negatives, "negatives", positives, "positives");
  if (negatives.cols == 0) return;
  check.that(known.count() > 0, "every pair of vertices is an edge",
             "use a graph with fewer edges");
  check_ids(check, device, positives, 0, known.state().lists.num_sources, "the graph");
  run_on(
      device,
      [&] {
        for (std::int64_t i = 0; draw.kind != NegativeKind::uniform && i < positives.cols; ++i) {
          const VertexId source = positives.as<std::int32_t>()(0, i);
          check.that(known.count_of(source) > 0,
                     fmt::format("source {} has an edge to every target", source),
                     "draw uniform pairs, or leave its edges out of those that are asked for");
        }
        on_cpu::draw_negatives(positives, known.state().lists, draw, negatives);
      },
      [&] {
        on_gpu::draw_negatives(positives, known.state().lists, draw, negatives, device, stream);
      });
}

void pair_dot(ConstOperand sources, ConstOperand targets, ConstOperand pairs, Operand scores,
              Device device, Stream stream) {
  const Checker check("pair_dot", device);
  const PairScoring scoring{sources, targets, pairs, scores};
  check_scoring(check, device, scoring);
  check.that(scores.cols > 0 && sources.cols % scores.cols == 0,
             fmt::format("{} columns do not divide into {} heads", sources.cols, scores.cols));
  if (scores.rows == 0) return;
  run_on(
      device, [&] { on_cpu::pair_dot(scoring); },
      [&] { on_gpu::pair_dot(scoring, device, stream); });
}

void pair_sum(ConstOperand sources, ConstOperand targets, ConstOperand pairs, Operand y,
              Device device, Stream stream) {
  const Checker check("pair_sum", device);
  const PairScoring scoring{sources, targets, pairs, y};
  check_scoring(check, device, scoring);
  check.matrix(y, "y", {sources.type, pairs.cols, sources.cols});
  if (y.rows == 0 || y.cols == 0) return;
  run_on(
      device, [&] { on_cpu::pair_sum(scoring); },
      [&] { on_gpu::pair_sum(scoring, device, stream); });
}

PairEnds::PairEnds(std::int64_t num_rows, std::int64_t num_pairs, const Place& place)
    : state_(std::make_shared<State>()) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const Checker check("PairEnds", place.device);
  require_available(place.device);
  check.that(num_rows >= 0 && num_rows <= most && num_pairs >= 0 && num_pairs <= most / 2,
             fmt::format("{} pairs between {} rows", num_pairs, num_rows),
             "use several lists of fewer");
  state_->place = place;
  state_->num_rows = num_rows;
  state_->num_pairs = num_pairs;
  state_->ends = Buffer<PairEnd>(2 * num_pairs, place);
  state_->offsets = Buffer<std::int32_t>(num_rows + 1, place);
  if constexpr (has_cuda) {
    if (place.device.kind == DeviceKind::cuda) on_gpu::prepare_lists(*state_);
  }
}

std::int64_t PairEnds::num_rows() const noexcept { return state_->num_rows; }
std::int64_t PairEnds::num_pairs() const noexcept { return state_->num_pairs; }
Device PairEnds::device() const noexcept { return state_->place.device; }

void PairEnds::list(ConstOperand pairs, Stream stream) {
  const Checker check("PairEnds::list", device());
  check_list(check, pairs, "pairs", num_pairs());
  for (const int side : {0, 1}) check_ids(check, device(), pairs, side, num_rows(), "the matrix");
  run_on(
      device(), [&] { on_cpu::list_ends(pairs, *state_); },
      [&] { on_gpu::list_ends(pairs, *state_, stream); });
}

void pair_dot_backward(ConstOperand sources, ConstOperand targets, const PairEnds& ends,
                       ConstOperand grad_scores, Operand grad_sources, Operand grad_targets,
                       Stream stream, const DenseWorkspace* workspace) {
  const Checker check("pair_dot_backward", ends.device());
  check.floating(sources, "sources");
  const auto shape_of = [&](const ConstOperand& rows) {
    check.that(rows.rows <= ends.num_rows(),
               fmt::format("{} rows for lists of {}", rows.rows, ends.num_rows()),
               "make lists for all of them");
    return Expected{sources.type, rows.rows, sources.cols};
  };
  check.matrix(sources, "sources", shape_of(sources));
  check.matrix(targets, "targets", shape_of(targets));
  check.matrix(grad_scores, "grad_scores", {sources.type, ends.num_pairs(), grad_scores.cols});
  check.that(grad_scores.cols > 0 && sources.cols % grad_scores.cols == 0,
             fmt::format("{} columns do not divide into {} heads", sources.cols, grad_scores.cols));
  check.optional_matrix(grad_sources, "grad_sources", shape_of(sources));
  check.optional_matrix(grad_targets, "grad_targets", shape_of(targets));
  const auto apart = {Named{sources, "sources"}, Named{targets, "targets"},
                      Named{grad_scores, "grad_scores"}};
  check.apart(grad_sources, "grad_sources", apart);
  check.apart(grad_targets, "grad_targets", apart);
  check.apart_or_same(grad_targets, "grad_targets", grad_sources, "grad_sources");
  sum_both(ends, sources, targets, grad_scores, grad_sources, grad_targets, stream, workspace);
}

void pair_sum_backward(const PairEnds& ends, ConstOperand grad_y, Operand grad_sources,
                       Operand grad_targets, Stream stream, const DenseWorkspace* workspace) {
  const Checker check("pair_sum_backward", ends.device());
  check.floating(grad_y, "grad_y");
  check.matrix(grad_y, "grad_y", {grad_y.type, ends.num_pairs(), grad_y.cols});
  for (const auto& [gradient, name] :
       {Named{grad_sources, "grad_sources"}, Named{grad_targets, "grad_targets"}}) {
    if (gradient.absent()) continue;
    check.that(gradient.rows <= ends.num_rows(),
               fmt::format("{} rows for lists of {}", gradient.rows, ends.num_rows()),
               "make lists for all of them");
    check.matrix(gradient, name, {grad_y.type, gradient.rows, grad_y.cols});
  }
  check.apart(grad_sources, "grad_sources", grad_y, "grad_y");
  check.apart(grad_targets, "grad_targets", grad_y, "grad_y");
  check.apart_or_same(grad_targets, "grad_targets", grad_sources, "grad_sources");
  sum_both(ends, {}, {}, grad_y, grad_sources, grad_targets, stream, workspace);
}

void pair_loss(ConstOperand scores, const PairLossOptions& options, Operand grad_scores,
               double* value, Device device, Stream stream, const DenseWorkspace* workspace,
               Operand grad_sum) {
  const Checker check("pair_loss", device);
  check.floating(scores, "scores");
  check.matrix(scores, "scores", {scores.type, scores.rows, 1});
  check.optional_matrix(grad_scores, "grad_scores", {scores.type, scores.rows, 1});
  check.optional_matrix(grad_sum, "grad_sum", {scores.type, 1, 1});
  check.apart_or_same(grad_scores, "grad_scores", scores, "scores");
  check.apart(grad_sum, "grad_sum", {{scores, "scores"}, {grad_scores, "grad_scores"}});
  check.that(value != nullptr, "there is no memory for the loss");
  const std::int64_t positives = options.positives, negatives = scores.rows - positives;
  const bool compares = options.kind != PairLossKind::bce;
  check.that(positives >= 0 && negatives >= 0 &&
                 (!compares || (positives == 0 ? negatives == 0 : negatives % positives == 0)),
             fmt::format("{} positives of {} scores", positives, scores.rows),
             "give as many negatives for each positive");
  check.that(std::isfinite(options.margin) && options.margin >= 0,
             fmt::format("a margin of {}", options.margin), "give a number from 0 on");
  check.that(
      options.smoothing >= 0 && options.smoothing < 1,
      fmt::format("the smoothing is {}, expected a number from 0 to below 1", options.smoothing));
  const PairLossCall call{scores, options, grad_scores, grad_sum, value};
  run_on(
      device, [&] { on_cpu::pair_loss(call); },
      [&] { on_gpu::pair_loss(call, device, stream, workspace); });
}

}  // namespace tessera::ops
