// SPDX-License-Identifier: Apache-2.0
#include "tessera/step/recompute.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "step/binding.hpp"
#include "step/ops/aggregate.hpp"
#include "tessera/step/rewrites.hpp"

namespace tessera::step {
namespace {

/// The numbers of nodes that read a value: the last one, and the first from `from` on.
std::optional<std::size_t> last_reader(const Program& program, Value value) {
  const auto& nodes = program.nodes();
  for (std::size_t i = nodes.size(); i-- > 0;) {
    for (std::size_t k = 0; k < nodes[i].in.size(); ++k) {
      if (nodes[i].in[k] == value && nodes[i].op->reads(k)) return i;
    }
  }
  return {};
}

std::optional<std::size_t> first_reader(const Program& program, Value value, std::size_t from) {
  const auto& nodes = program.nodes();
  for (std::size_t i = from; i < nodes.size(); ++i) {
    for (std::size_t k = 0; k < nodes[i].in.size(); ++k) {
      if (nodes[i].in[k] == value && nodes[i].op->reads(k)) return i;
    }
  }
  return {};
}

bool is_given(const ValueInfo& info) {
  return info.is_input || info.parameter != nullptr || info.state != nullptr;
}

/// A program in which one value is computed again for the gradients that read it.
class Trial {
 public:
  Trial(Program program, std::size_t num_forward)
      : program_(std::move(program)), num_forward_(num_forward) {}

  /// False where it cannot be.
  bool repeat(Value value) {
    const auto place = first_reader(program_, value, num_forward_);
    if (!place) return false;
    place_ = *place;
    const std::size_t size = program_.nodes().size();
    const std::optional<Value> again = copied(value);
    if (!again) return false;
    auto& nodes = program_.nodes();
    const auto begin = nodes.begin() + static_cast<std::ptrdiff_t>(place_);
    for (auto node = begin; node != nodes.begin() + static_cast<std::ptrdiff_t>(size); ++node) {
      std::ranges::replace(node->in, value, *again);
    }
    std::rotate(begin, nodes.begin() + static_cast<std::ptrdiff_t>(size), nodes.end());
    return true;
  }

  Program& program() noexcept { return program_; }

 private:
  /// The value where the gradients begin to read it: itself, or a copy of it.
  std::optional<Value> available(Value value) {
    if (value.absent() || is_given(program_.info(value))) return value;
    if (const auto known = copies_.find(value.id); known != copies_.end()) return known->second;
    const auto last = last_reader(program_, value);
    return last && *last >= place_ ? std::optional(value) : copied(value);
  }

  /// Appends the nodes that compute a value of the forward pass again.
  std::optional<Value> copied(Value value) {
    const Node* const producer = program_.producer(value);
    if (producer == nullptr || !producer->op->may_repeat() || producer->out[0] != value ||
        producer - program_.nodes().data() >= static_cast<std::ptrdiff_t>(num_forward_)) {
      return {};
    }
    const Node node = *producer;
    std::vector<Value> in;
    for (std::size_t k = 0; k < node.in.size(); ++k) {
      // What is not read stands for its shape alone.
      const std::optional<Value> found =
          node.op->reads(k) ? available(node.in[k]) : std::optional(node.in[k]);
      if (!found) return {};
      in.push_back(*found);
    }
    const std::vector<Value> out = program_.append_all(node.op, std::move(in));
    for (std::size_t k = 0; k < out.size(); ++k) {
      program_.info(out[k]).shape = program_.info(node.out[k]).shape;
    }
    return copies_.emplace(value.id, out[0]).first->second;
  }

  Program program_;
  std::size_t num_forward_, place_ = 0;
  std::map<std::int32_t, Value> copies_;
};

/// What programs cost with the same inputs and graphs.
class Costs {
 public:
  Costs(const Placement& placement, std::span<const Bound> inputs, const Context& context,
        std::span<const Value> kept)
      : placement_(placement),
        inputs_(inputs),
        context_(context),
        kept_(kept),
        outside_(placement) {}

  std::int64_t arena_bytes(const Program& program) {
    Binding binding(program, placement_, nullptr);
    for (const Bound& bound : inputs_) binding.slot(bound.input).given = bound.given;
    for (const Value value : kept_) {
      if (!value.absent()) binding.keep(value, outside_);
    }
    binding.measure(context_);
    return binding.arena_bytes;
  }

  /// What nodes read and write, and what sums gather.
  std::int64_t moved_bytes(const Program& program) const {
    std::int64_t bytes = step::bytes_moved(program);
    for (const Node& node : program.nodes()) {
      const auto* sums = node.as<Aggregate>();
      if (sums == nullptr) continue;
      Topology& graph = context_.graph_number(sums->aggregation().graph);
      if (graph.sums_edges()) continue;
      const Shape& x = program.info(node.in[Aggregate::x]).shape;
      bytes += graph.graph().num_edges() * x.cols *
               static_cast<std::int64_t>(bytes_per_element(x.precision));
    }
    return bytes;
  }

 private:
  const Placement& placement_;
  std::span<const Bound> inputs_;
  const Context& context_;
  std::span<const Value> kept_;
  Tensor outside_;
};

}  // namespace

// Each time the value that saves most of the arena for what it costs.
Recomputed recompute(Program& program, std::size_t num_forward, const Placement& placement,
                     std::span<const Bound> inputs, const Context& context,
                     std::span<const Value> kept) {
  constexpr double most = 0.25;
  Costs costs(placement, inputs, context, kept);
  const std::int64_t moved_before = costs.moved_bytes(program);
  const std::int64_t arena_before = costs.arena_bytes(program);
  Recomputed result;
  for (;;) {
    std::optional<Program> best;
    double best_score = 0;
    const std::int64_t arena = arena_before - result.saved_bytes;
    Recomputed of_best;
    for (std::size_t i = 0; i < num_forward; ++i) {
      const Value value = program.nodes()[i].out[0];
      Trial trial(program, num_forward);
      if (std::ranges::find(kept, value) != kept.end() || !trial.repeat(value)) continue;
      const std::int64_t moved = costs.moved_bytes(trial.program()) - moved_before;
      if (static_cast<double>(moved) > most * static_cast<double>(moved_before)) continue;
      const std::int64_t saved = arena - costs.arena_bytes(trial.program());
      const double score = static_cast<double>(saved) / static_cast<double>(std::max<std::int64_t>(
                                                            moved - result.moved_bytes, 1));
      if (score <= best_score) continue;
      best_score = score;
      best = std::move(trial.program());
      of_best = {result.times + 1, result.saved_bytes + saved, moved};
    }
    if (!best) return result;
    program = std::move(*best);
    result = of_best;
  }
}

}  // namespace tessera::step
