// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "step/ops/aggregate.hpp"
#include "step/ops/linear.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {
namespace {

/// The number of the node that computes a value, if that is a product alone that only `reader`
/// reads.
std::optional<std::size_t> product_for(const Program& program, Value value, const Node& reader,
                                       const Surroundings& around) {
  const Node* const node = program.producer(value);
  const auto* product = node == nullptr ? nullptr : node->as<Linear>();
  const bool is_kept = std::ranges::find(around.kept, value) != around.kept.end();
  if (product == nullptr || !product->is_plain() || !node->in[Linear::bias].absent() || is_kept ||
      program.num_readers(value) != std::ranges::count(reader.in, value)) {
    return {};
  }
  return static_cast<std::size_t>(node - program.nodes().data());
}

/// Sums over neighbours go over the narrower side, where there are fewer targets than sources also
/// over one that is wider in less than this proportion: the product then is of fewer rows. Those of
/// an input without a gradient are made once, on the way forward, where those of products are made
/// on both ways; of sums with own rows that counts.
bool pays(const Program& program, const std::vector<bool>& wanted, const Node& sums,
          const Node& product) {
  const Shape& weight = program.info(product.in[Linear::weight]).shape;
  const auto is_wanted = [&](Value value) {
    return !value.absent() && wanted[static_cast<std::size_t>(value.id)];
  };
  const Value scale = sums.in[Aggregate::scale];
  const bool is_summed_once =
      !scale.absent() && !is_wanted(product.in[Linear::x]) && !is_wanted(scale);
  const std::int64_t sources = program.info(product.out[0]).shape.rows;
  const std::int64_t targets = program.info(sums.out[0]).shape.rows;
  const bool is_known = sources > 0 && targets > 0;
  return weight.rows * (is_summed_once ? 2 : 1) * (is_known ? sources : 1) >=
         weight.cols * (is_known ? targets : 1);
}

}  // namespace

std::int64_t sums_first(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  const std::vector<bool> wanted = program.wanted_values();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto* op = nodes[i].as<Aggregate>();
    if (op == nullptr || !op->is_sum() || op->finishes()) continue;
    const Node sums = nodes[i];
    const Value own = sums.in[Aggregate::residual];
    const auto of_sources = product_for(program, sums.in[Aggregate::x], sums, around);
    if (!of_sources || !pays(program, wanted, sums, nodes[*of_sources])) continue;
    std::optional<std::size_t> of_own = of_sources;
    if (!own.absent()) of_own = product_for(program, own, sums, around);
    if (!of_own || nodes[*of_own].in[Linear::weight] != nodes[*of_sources].in[Linear::weight]) {
      continue;
    }
    // The two change places, and what they write keeps its name.
    const std::size_t first = *of_sources;
    Node summed = sums, product = nodes[first];
    summed.in[Aggregate::x] = product.in[Linear::x];
    if (!own.absent()) summed.in[Aggregate::residual] = nodes[*of_own].in[Linear::x];
    std::swap(summed.out[0], product.out[0]);
    product.in[Linear::x] = summed.out[0];
    Shape& shape = program.info(summed.out[0]).shape;
    shape.rows = program.info(product.out[0]).shape.rows;
    shape.cols = program.info(summed.in[Aggregate::x]).shape.cols;
    nodes[i] = std::move(product);
    nodes.insert(nodes.begin() + static_cast<std::ptrdiff_t>(i), std::move(summed));
    std::vector<std::size_t> gone = {first};
    if (*of_own != first) gone.push_back(*of_own);
    std::ranges::sort(gone, std::greater());
    for (const std::size_t node : gone) erase(program, node);
    i = i + 1 - gone.size();
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
