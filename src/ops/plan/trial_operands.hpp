// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ops/plan/workspace.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::ops {

template <class Prepared>
concept NeedsWorkspace = requires(const Prepared& prepared) {
  prepared.workspace();
};

/// What the kernels of an op are timed with, one after another, on any device. Each op derives its
/// own from this one: see spmm/trial.hpp.
class TrialOperands {
 public:
  explicit TrialOperands(const Place& place) : place_(place), workspace_(place) {}

  /// Makes room for the runs of a kernel.
  void prepare(const NeedsWorkspace auto& prepared) { workspace_.prepare(prepared.workspace()); }

 protected:
  /// A matrix of made-up numbers between 0.5 and 1. Zeros would not do: they cost a GPU less power,
  /// and so let it run faster.
  Operand matrix(Precision precision, std::int64_t rows, std::int64_t cols);
  /// An array of zeros.
  template <class T>
  T* zeros(std::int64_t count) {
    std::byte* const bytes = add_bytes(checked_bytes(count, sizeof(T)));
    fill_zero(bytes, checked_bytes(count, sizeof(T)), place_.device, place_.stream);
    return reinterpret_cast<T*>(bytes);
  }

  const WorkspaceView& workspace() const noexcept { return workspace_.view(); }
  Device device() const noexcept { return place_.device; }

 private:
  std::byte* add_bytes(std::size_t bytes);

  Place place_;
  std::vector<Buffer<std::byte>> memory_;
  TrialWorkspace workspace_;
};

}  // namespace tessera::ops
