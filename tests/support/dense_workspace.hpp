// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "tessera/ops/dense_workspace.hpp"

namespace tessera::test {

/// The workspace that the tests of dense ops share, one for each GPU; null on the CPU. Never
/// released: CUDA may be gone before statics are.
inline const ops::DenseWorkspace* workspace_on(Device device) {
  if (device.kind == DeviceKind::cpu) return nullptr;
  static auto* const all = new std::map<int, ops::DenseWorkspace>;
  return &all->try_emplace(device.index, device).first->second;
}

}  // namespace tessera::test
