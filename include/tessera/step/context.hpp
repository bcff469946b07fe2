// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "tessera/core/device.hpp"
#include "tessera/core/random.hpp"
#include "tessera/ops/dense_workspace.hpp"
#include "tessera/ops/loss.hpp"
#include "tessera/ops/pairs.hpp"
#include "tessera/ops/step_clock.hpp"
#include "tessera/step/topology.hpp"

namespace tessera::step {

/// The number of `Context::pooling` among the graphs of a step.
inline constexpr int pooled = -1;

/// What a pass needs beside its input. Backward takes the one that forward had.
struct Context {
  /// The graph that every layer sees, unless there is a list.
  Topology* graph = nullptr;
  /// One graph for each layer that has neighbours, in the order of the layers: a layer's sources
  /// are the targets of the one before. Empty: all layers see `graph`.
  std::span<Topology* const> graphs = {};
  /// Graph classification: which vertices belong to which graph (`pooling_graph`).
  Topology* pooling = nullptr;
  /// The pairs that links are asked for (ops/pairs.hpp), and, for gradients, which ones each row is
  /// an end of.
  ops::ConstOperand pairs = {};
  const ops::PairEnds* pair_ends = nullptr;
  /// The loss of their scores, in place of `targets`.
  const ops::PairLossOptions* pair_loss = nullptr;
  /// What a step of training compares its result with, and where its loss goes, in the memory of
  /// the device.
  const ops::LossTargets* targets = nullptr;
  double* loss = nullptr;
  /// Dropout falls and batch norm uses the batch's own statistics only in training.
  bool training = false;
  std::uint64_t seed = 0;
  std::uint32_t step = 0;
  /// If there is one, in the memory of the device: its step takes the place of `step`.
  const ops::StepClock* clock = nullptr;
  Stream stream = {};
  /// What dense ops need on a GPU; null on the CPU.
  const ops::DenseWorkspace* workspace = nullptr;

  /// The random numbers of one layer in this step.
  Random random(std::uint32_t layer_number) const noexcept {
    return Random(seed, layer_number, step);
  }
  /// Graph `number` of a step: of the list, or the one that all layers see; `pooled` is that of a
  /// readout.
  Topology& graph_number(int number) const;
};

}  // namespace tessera::step
