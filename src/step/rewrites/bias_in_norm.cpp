// SPDX-License-Identifier: Apache-2.0
#include "step/ops/batch_norm.hpp"
#include "step/ops/finish.hpp"
#include "step/rewrites/all.hpp"

namespace tessera::step {

// The mean takes a bias away again: it only moves the running mean.
std::int64_t bias_in_norm(Program& program, const Surroundings& around) {
  std::int64_t fired = 0;
  auto& nodes = program.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].as<BatchNorm>() == nullptr || !nodes[i].in[BatchNorm::shift].absent()) continue;
    const Value x = nodes[i].in[BatchNorm::x];
    const Node* const producer = program.producer(x);
    const auto* bias = producer == nullptr ? nullptr : producer->as<Finish>();
    if (bias == nullptr || !bias->finishing().is_linear() || producer->in[1].absent() ||
        !has_one_reader(program, x, around)) {
      continue;
    }
    nodes[i].in[BatchNorm::x] = producer->in[0];
    nodes[i].in[BatchNorm::shift] = producer->in[1];
    erase(program, static_cast<std::size_t>(producer - nodes.data()));
    --i;
    ++fired;
  }
  return fired;
}

}  // namespace tessera::step
