// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tessera/graph/graph.hpp"
#include "tessera/ops/calibration.hpp"

/// The parts of `calibrate`.
namespace tessera::ops {

/// Windows of 16 rows of one kind: every column has an entry in a row drawn at random, and more
/// entries follow anywhere. Columns lie side by side around the window's own rows, or all over.
struct WindowKind {
  VertexId columns = 16;
  int entries_per_column = 1;
  bool near = true;
  /// 64 rows in turn with columns near and all over, whatever `near` says: no kind of core is right
  /// for all of them.
  bool mixed = false;
};

/// A square graph of so many windows; the same seed gives the same one.
Graph draw_windows(const WindowKind& kind, std::int64_t windows, std::uint64_t seed);

std::vector<WindowKind> window_kinds(bool quick);

/// One kernel on one graph.
struct TimedKernel {
  std::string kernel;
  double predicted_us = 0;
  double measured_us = 0;
};

/// All that were timed on one graph, with features of one width and type.
struct TimedCase {
  CostShape shape;
  std::vector<TimedKernel> kernels;
};

/// Fits a correction for every kernel, judges those of each op on its cases held out, and keeps
/// them where choices lose no more than with the built-in costs.
void fit_corrections(std::span<const TimedCase> fitted, std::span<const TimedCase> held_out,
                     Calibration& calibration);

/// What choices by a prediction lose; `corrections` may be null.
ChoiceQuality quality_of(std::span<const TimedCase> cases, const Calibration* corrections);

}  // namespace tessera::ops
