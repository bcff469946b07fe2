// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "tessera/core/dtype.hpp"
#include "tessera/core/error.hpp"

/// Tables of kernels. A strategy has a key, a small struct of what sets its kernels apart, and a
/// template that gives the kernels of a key:
///
///     struct RowsKey { Precision precision; bool aligned; ... };                    launch.hpp
///     template <RowsKey key> struct RowsKernels { static ... all(); };
///
///     template struct RowsKernels<RowsKey{Precision::bf16, true, ...}>;             inst/NAME.cu
///
/// The units in inst/ name the keys that they compile; plan.cpp lists all keys and looks one up. A
/// listed key that no unit names does not link.
namespace tessera::ops {

/// How kernels are told apart by precision: tf32 is stored as fp32 is.
constexpr Precision stored_as(Precision precision) {
  return precision == Precision::tf32 ? Precision::fp32 : precision;
}

inline constexpr std::array kernel_precisions = {Precision::fp32, Precision::bf16, Precision::fp16};

/// All keys that `list` calls `add(key)` for, in an array. `list` captures nothing.
template <class Key, class List>
constexpr auto collect_keys(List) {
  constexpr std::size_t count = [] {
    std::size_t keys = 0;
    List{}([&](const Key&) { ++keys; });
    return keys;
  }();
  std::array<Key, count> keys{};
  std::size_t at = 0;
  List{}([&](const Key& key) { keys[at++] = key; });
  return keys;
}

/// What `get.operator()<key>()` gives for the one of `keys` that is wanted. Who plans has asked
/// beforehand whether there is one (`why_not`).
template <const auto& keys, class Key, class Get>
auto kernels_of(const Key& wanted, Get get) {
  decltype(get.template operator()<keys[0]>()) found{};
  const bool exists = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return ((keys[i] == wanted && (found = get.template operator()<keys[i]>(), true)) || ...);
  }
  (std::make_index_sequence<keys.size()>{});
  if (!exists) {
    throw Error(ErrorCode::internal, "a kernel was chosen that was not compiled", "kernel table",
                "report this with the plan's explanation");
  }
  return found;
}

}  // namespace tessera::ops
