// SPDX-License-Identifier: Apache-2.0
#include "train/rehearsal.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/meanwhile.hpp"
#include "core/side_stream.hpp"
#include "tessera/core/error.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::train {
namespace {

/// As BLAS chooses for many more.
constexpr std::int64_t rehearsed_rows = 1 << 15;
constexpr std::int64_t least_rows = 2 * rehearsed_rows;
/// Wider rows are sparse features as a rule, which no product takes as they are.
constexpr std::int64_t most_columns = 2048;

/// Outputs and inputs of a layer.
using Shapes = std::set<std::pair<std::int64_t, std::int64_t>>;

void multiply(const Shapes& shapes, step::Placement placement) {
  const Device device = placement.device();
  const SideStream stream(device);
  placement.stream = stream;
  const ops::DenseWorkspace workspace(placement.place());
  const Precision arithmetic =
      placement.precision == Precision::tf32 ? Precision::tf32 : Precision::fp32;
  const auto zeros = [&](std::int64_t rows, std::int64_t cols) {
    step::Tensor tensor(placement);
    tensor.resize(rows, cols);
    tensor.fill(0, stream);
    return tensor;
  };
  for (const auto& [out, in] : shapes) {
    const step::Tensor x = zeros(rehearsed_rows, in), weight = zeros(out, in);
    step::Tensor y = zeros(rehearsed_rows, out);
    step::Tensor grad_weight = zeros(out, in), grad_x = zeros(rehearsed_rows, in);
    ops::linear(x, weight, {}, y, device, stream, &workspace, arithmetic);
    ops::linear_backward(x, weight, std::as_const(y), grad_weight, {}, grad_x, device, stream,
                         &workspace, arithmetic);
    synchronise(device, stream);
  }
}

}  // namespace

Rehearsal::Rehearsal(nn::Layer& model, const step::Placement& placement, std::int64_t rows) {
  if (placement.device().kind == DeviceKind::cpu || rows < least_rows) return;
  Shapes shapes;
  for (const auto& [path, parameter] : model.parameters()) {
    const std::int64_t out = parameter->value.rows(), in = parameter->value.cols();
    if (out > 1 && in > 1 && std::max(out, in) <= most_columns) shapes.insert({out, in});
  }
  if (shapes.empty()) return;
  done_ = meanwhile([shapes, placement] {
    try {
      multiply(shapes, placement);
    } catch (const Error&) {
      // Whoever needs what is missing is told.
    }
  });
}

}  // namespace tessera::train
