// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "tessera/core/memory.hpp"

namespace tessera::ops {

/// The memory that dense ops on a GPU need for the length of a call: `gemm`, batch norm, losses,
/// and what sums over columns or over all elements. It is the caller's, so that ops neither
/// allocate nor wait. Calls that share one follow one another: a workspace for each stream that
/// works at the same time. The CPU needs none.
///
///     DenseWorkspace workspace({device, &memory, stream});
///     gemm(Transpose::no, Transpose::no, 1, a, b, 0, c, device, stream, &workspace);
class DenseWorkspace {
 public:
  /// Takes `num_bytes` from the place, and is ready for any stream when it returns.
  explicit DenseWorkspace(const Place& place);

  /// The same for every op and shape: about 44 MiB on a GPU, of which cuBLAS has 32; 0 on the CPU.
  static std::int64_t num_bytes(Device device) noexcept;

  Device device() const noexcept;

  struct State;
  const State& state() const noexcept { return *state_; }

 private:
  std::shared_ptr<const State> state_;
};

}  // namespace tessera::ops
