// SPDX-License-Identifier: Apache-2.0
// Lists of pairs: drawn where they are no edges, scored, and judged. A list may be another one at
// every call: nothing is planned for it.
#include "tessera/ops/pairs.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "dense.hpp"
#include "operators.hpp"

namespace tessera::torch_ops {
namespace {

/// As the library takes it: whole numbers of 32 bits, in two rows.
Tensor list_of(const Tensor& pairs) { return with_rows(in_type(pairs, ScalarType::Int)); }
ops::ConstOperand list_operand(const Tensor& pairs) {
  return {pairs.const_data_ptr(), ElementType::int32, device_of(pairs), 2,
          pairs.size(1),          pairs.stride(0)};
}
/// A number for each pair.
ops::Operand column(const Tensor& numbers) {
  ops::Operand operand = row_operand(numbers);
  return {operand.data, operand.type, operand.device, operand.cols, 1, 1};
}

/// What a structure keeps for draws.
struct Drawn {
  ops::NonEdges pairs;
  std::vector<VertexId> exhausted;  ///< sources with an edge to every target
};

Drawn drawn_from(Structure& structure, const Place& place) {
  const Graph graph = structure.graph(Norm::none, 1);
  if (graph.has_repeated_edges()) {
    throw Error(ErrorCode::invalid_argument, "an edge is given several times", "edge_index",
                "merge them first (torch_geometric.utils.coalesce)");
  }
  Drawn drawn{ops::NonEdges(graph, place), {}};
  for (VertexId source = 0; source < graph.num_cols(); ++source) {
    if (drawn.pairs.count_of(source) == 0) drawn.exhausted.push_back(source);
  }
  return drawn;
}

/// Sources are looked at where that costs no waiting for a GPU; the package has looked at them
/// otherwise. Those without negatives are few, and are looked for where there are some.
void check_sources(const Tensor& positives, const Drawn& drawn, VertexId vertices, bool by_source,
                   const Place& place) {
  const bool searches = by_source && !drawn.exhausted.empty();
  if (positives.size(1) == 0 || (!positives.is_cpu() && !searches) || is_capturing(place)) return;
  const Tensor here = positives.is_cpu() ? positives : call<Tensor>("aten::cpu", "", positives);
  const std::span<const VertexId> sources{static_cast<const VertexId*>(here.const_data_ptr()),
                                          static_cast<std::size_t>(here.size(1))};
  for (const VertexId source : sources) {
    if (source < 0 || source >= vertices) {
      throw Error(ErrorCode::invalid_argument,
                  "source " + std::to_string(source) + " of a positive pair, of " +
                      std::to_string(vertices),
                  "positives", "number vertices as the graph does");
    }
    if (searches && std::ranges::binary_search(drawn.exhausted, source)) {
      throw Error(ErrorCode::bad_data,
                  "source " + std::to_string(source) + " has an edge to every target",
                  "negative pairs",
                  "draw uniform pairs, or leave its edges out of those that are asked for");
    }
  }
}

/// `clock`, if there is one, holds the step where the pairs are drawn.
Tensor negative_pairs(Tensor index, std::optional<Tensor> offsets, Tensor positives,
                      std::optional<Tensor> clock, std::int64_t targets, std::int64_t sources,
                      std::int64_t layout, std::int64_t loops, std::int64_t kind,
                      std::int64_t per_positive, std::int64_t seed, std::int64_t step) {
  const DeviceScope scope(index);
  const auto structure = structure_of({index, offsets, targets, sources, layout, loops});
  const Place place = place_of(index);
  const auto kept = structure->plan<std::shared_ptr<const Drawn>>(PlanNumbers{6}, place, [&] {
    return std::make_shared<const Drawn>(drawn_from(*structure, place));
  });
  const Drawn& drawn = *kept->plan;
  if (per_positive < 1) {
    throw Error(ErrorCode::invalid_argument,
                std::to_string(per_positive) + " negatives for each positive pair",
                "negative pairs", "ask for one at least");
  }
  const Tensor asked = list_of(positives);
  const auto chosen = static_cast<ops::NegativeKind>(kind);
  check_sources(asked, drawn, static_cast<VertexId>(sources), chosen != ops::NegativeKind::uniform,
                place);
  Tensor result = empty_beside(index, 2, asked.size(1) * per_positive, ScalarType::Int);
  ops::NegativeDraw draw;
  draw.kind = chosen;
  draw.per_positive = per_positive;
  draw.seed = static_cast<std::uint64_t>(seed);
  draw.step = static_cast<std::uint32_t>(step);
  // Of a clock the library reads nothing but the step, which stands first.
  if (clock) draw.clock = static_cast<const ops::StepClock*>(clock->const_data_ptr());
  ops::draw_negatives(list_operand(asked), drawn.pairs, draw, operand(result), place.stream);
  return in_type(result, index.scalar_type());
}

/// A step's batch of a list, in the order that the seed gives to each epoch.
Tensor pair_batch(Tensor pairs, std::optional<Tensor> clock, std::int64_t size, std::int64_t seed,
                  std::int64_t step) {
  const DeviceScope scope(pairs);
  const Place place = place_of(pairs);
  const Tensor list = list_of(pairs);
  Tensor chosen = empty_beside(pairs, 2, size, ScalarType::Int);
  ops::PairBatches batches;
  batches.size = size;
  batches.seed = static_cast<std::uint64_t>(seed);
  batches.step = step;
  if (clock) batches.clock = static_cast<const ops::StepClock*>(clock->const_data_ptr());
  ops::choose_pairs(list_operand(list), batches, operand(chosen), place.device, place.stream);
  return in_type(chosen, pairs.scalar_type());
}

/// Two matrices of the rows at both ends, which may be one.
struct Ends {
  Tensor sources, targets;
  bool are_one;
  ScalarType given_type;

  Ends(Tensor given_sources, const std::optional<Tensor>& given_targets)
      : sources(given_sources),
        targets(given_targets ? *given_targets : given_sources),
        are_one(!given_targets),
        given_type(given_sources.scalar_type()) {
    check_one_type(sources, {targets}, "sources and targets");
    sources = wide(sources);
    targets = are_one ? sources : wide(targets);
  }
  static Tensor wide(const Tensor& matrix) {
    return with_rows(is_widened(matrix) ? in_type(matrix, ScalarType::Float) : matrix);
  }
};

Tensor pair_dot(Tensor sources, std::optional<Tensor> targets, Tensor pairs) {
  const DeviceScope scope(sources);
  const Ends ends(sources, targets);
  const Place place = place_of(sources);
  const Tensor list = list_of(pairs);
  Tensor scores = empty_beside(sources, list.size(1), ends.sources.scalar_type());
  ops::pair_dot(operand(ends.sources), operand(ends.targets), list_operand(list), column(scores),
                place.device, place.stream);
  return in_type(scores, ends.given_type);
}

Tensor pair_sum(Tensor sources, std::optional<Tensor> targets, Tensor pairs) {
  const DeviceScope scope(sources);
  const Ends ends(sources, targets);
  const Place place = place_of(sources);
  const Tensor list = list_of(pairs);
  Tensor sums =
      empty_beside(sources, list.size(1), ends.sources.size(1), ends.sources.scalar_type());
  ops::pair_sum(operand(ends.sources), operand(ends.targets), list_operand(list), operand(sums),
                place.device, place.stream);
  return in_type(sums, ends.given_type);
}

/// Gradients of both ends, of those that are wanted; of one matrix, of its sum.
class Gradients {
 public:
  Gradients(const Tensor& beside, std::int64_t source_rows, std::int64_t target_rows,
            std::int64_t cols, bool are_one, bool need_sources, bool need_targets) {
    const ScalarType type = beside.scalar_type();
    if (need_sources) sources_ = empty_beside(beside, source_rows, cols, type);
    if (are_one) {
      targets_ = sources_;
    } else if (need_targets) {
      targets_ = empty_beside(beside, target_rows, cols, type);
      is_apart_ = true;
    }
  }
  ops::Operand of_sources() const { return of(sources_); }
  ops::Operand of_targets() const { return of(targets_); }

  std::vector<Tensor> in(ScalarType type) const {
    std::vector<Tensor> found;
    if (sources_) found.push_back(in_type(*sources_, type));
    if (is_apart_) found.push_back(in_type(*targets_, type));
    return found;
  }

 private:
  static ops::Operand of(const std::optional<Tensor>& matrix) {
    return matrix ? operand(*matrix) : ops::Operand{};
  }

  std::optional<Tensor> sources_, targets_;
  bool is_apart_ = false;
};

ops::PairEnds listed_ends(const Tensor& list, std::int64_t source_rows, std::int64_t target_rows,
                          const Place& place) {
  ops::PairEnds ends(std::max(source_rows, target_rows), list.size(1), place);
  ends.list(list_operand(list), place.stream);
  return ends;
}

std::vector<Tensor> pair_dot_backward(Tensor grad, Tensor sources, std::optional<Tensor> targets,
                                      Tensor pairs, bool need_sources, bool need_targets) {
  const DeviceScope scope(sources);
  const Ends ends(sources, targets);
  const Place place = place_of(sources);
  const Tensor list = list_of(pairs);
  const Tensor slopes = in_one_piece(in_type(grad, ends.sources.scalar_type()));
  const std::int64_t rows = ends.sources.size(0), others = ends.targets.size(0);
  const Gradients gradients(ends.sources, rows, others, ends.sources.size(1), ends.are_one,
                            need_sources, need_targets);
  const ops::PairEnds listed = listed_ends(list, rows, others, place);
  with_dense_workspace(sources, [&](const ops::DenseWorkspace* workspace) {
    ops::pair_dot_backward(operand(ends.sources), operand(ends.targets), listed, column(slopes),
                           gradients.of_sources(), gradients.of_targets(), place.stream, workspace);
  });
  return gradients.in(ends.given_type);
}

std::vector<Tensor> pair_sum_backward(Tensor grad, Tensor pairs, std::int64_t source_rows,
                                      std::int64_t target_rows, bool are_one, bool need_sources,
                                      bool need_targets) {
  const DeviceScope scope(grad);
  const Place place = place_of(grad);
  const Tensor list = list_of(pairs);
  const Tensor slopes = Ends::wide(grad);
  const Gradients gradients(slopes, source_rows, target_rows, slopes.size(1), are_one, need_sources,
                            need_targets);
  const ops::PairEnds listed = listed_ends(list, source_rows, target_rows, place);
  with_dense_workspace(grad, [&](const ops::DenseWorkspace* workspace) {
    ops::pair_sum_backward(listed, operand(slopes), gradients.of_sources(), gradients.of_targets(),
                           place.stream, workspace);
  });
  return gradients.in(grad.scalar_type());
}

/// The loss, and its slopes: first those of the positives.
std::vector<Tensor> pair_loss(Tensor positives, Tensor negatives, std::int64_t kind,
                              double margin) {
  const DeviceScope scope(positives);
  const Place place = place_of(positives);
  const ScalarType type = positives.scalar_type();
  check_one_type(positives, {negatives}, "positives and negatives");
  Tensor slopes = joined(positives, negatives);
  if (is_widened(slopes)) slopes = in_type(slopes, ScalarType::Float);
  const Tensor value = empty_beside(positives, 1, ScalarType::Double);
  ops::PairLossOptions options;
  options.kind = static_cast<ops::PairLossKind>(kind);
  options.positives = positives.size(0);
  options.margin = margin;
  with_dense_workspace(positives, [&](const ops::DenseWorkspace* workspace) {
    ops::pair_loss(column(slopes), options, column(slopes),
                   static_cast<double*>(value.mutable_data_ptr()), place.device, place.stream,
                   workspace);
  });
  return {in_type(torch::stable::select(value, 0, 0), type), in_type(slopes, type)};
}

Tensor pair_loss_backward(Tensor grad, Tensor slopes, Tensor, Tensor) {
  const DeviceScope scope(slopes);
  return call<Tensor>("aten::mul", "Tensor", slopes, grad);
}

}  // namespace

void register_pairs(torch::stable::detail::StableLibrary& library) {
  library.impl("negative_pairs", TORCH_BOX(&Guarded<&negative_pairs>::run));
  library.impl("pair_batch", TORCH_BOX(&Guarded<&pair_batch>::run));
  implement(library, "pair_dot", TORCH_BOX(&Guarded<&pair_dot>::run));
  implement(library, "pair_dot_backward", TORCH_BOX(&Guarded<&pair_dot_backward>::run));
  implement(library, "pair_sum", TORCH_BOX(&Guarded<&pair_sum>::run));
  implement(library, "pair_sum_backward", TORCH_BOX(&Guarded<&pair_sum_backward>::run));
  implement(library, "pair_loss", TORCH_BOX(&Guarded<&pair_loss>::run));
  implement(library, "pair_loss_backward", TORCH_BOX(&Guarded<&pair_loss_backward>::run));
}

}  // namespace tessera::torch_ops
