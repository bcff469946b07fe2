// SPDX-License-Identifier: Apache-2.0
// Plans the sums of a graph convolution, runs them forward and backward, and says why the plan is
// what it is. On a GPU where there is one, else on the CPU.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "tessera/tessera.hpp"

namespace ops = tessera::ops;

int main() {
  const bool has_gpu = tessera::num_gpus() > 0;
  const tessera::Device device{has_gpu ? tessera::DeviceKind::cuda : tessera::DeviceKind::cpu, 0};
  tessera::MemoryResource& memory = tessera::default_memory(device);

  // A ring in PyTorch's edge_index: every vertex gathers from the one before.
  constexpr tessera::VertexId vertices = 1000;
  std::vector<std::int64_t> sources, targets;
  for (std::int64_t v = 0; v < vertices; ++v) {
    sources.push_back(v);
    targets.push_back((v + 1) % vertices);
  }
  tessera::BuildOptions build;
  build.device = device;  // the graph stays where it is built
  const tessera::Graph graph =
      tessera::gcn_normalised(tessera::from_edges(vertices, sources, targets, {}, build));

  // A plan is made once for a graph, a width and a device, and runs as often as you like.
  constexpr std::int64_t features = 64;
  ops::SpmmOptions options;
  options.device = device;
  options.features = features;
  options.backward = true;  // the backward pass is planned with it
  const ops::SpmmPlan plan = ops::plan_spmm(graph, options);
  std::printf("%s\n", ops::to_string(plan.explain()).c_str());

  // Matrices know where they lie, so an operand on the wrong device is an error and not a crash.
  tessera::Matrix<float> x(vertices, features, memory), y(vertices, features, memory);
  ops::fill(x, 1, device);
  ops::run(plan, {x}, {y});

  // A run on a GPU may bring a workspace; one plan then runs on several streams at once.
  if (has_gpu) {
    tessera::Buffer<std::byte> scratch(plan.workspace_bytes(), memory);
    ops::run(plan, {x}, {y}, {}, {scratch.data(), scratch.size()});
  }

  // Memory that somebody else owns is an operand, too: a pointer, a type, a device and a shape.
  tessera::Buffer<float> gradient(vertices * features, memory);
  const ops::Operand grad_x(gradient.data(), tessera::ElementType::fp32, device, vertices,
                            features);
  ops::run_backward(plan, {y}, {grad_x});
  try {
    const tessera::Device other{has_gpu ? tessera::DeviceKind::cpu : tessera::DeviceKind::cuda, 0};
    ops::run(plan,
             {ops::ConstOperand(x.data(), tessera::ElementType::fp32, other, vertices, features)},
             {y});
    return 1;
  } catch (const tessera::Error& error) {
    std::printf("as it should be: %s\n", error.what());
  }

  // Every vertex has itself and one source: rows of 1 / 2 + 1 / 2, and the same for columns.
  tessera::Matrix<float> result(vertices, features);
  ops::download(grad_x, result, device);
  std::printf("gradient of ones: %g\n", static_cast<double>(result(0, 0)));
  return std::abs(result(vertices - 1, features - 1) - 1) < 1e-5 ? 0 : 1;
}
