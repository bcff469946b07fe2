// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "tessera/core/dtype.hpp"
#include "tessera/core/error.hpp"

/// Tables of kernels. A strategy has a key, a small struct of what sets its kernels apart, and a
/// template that gives the kernels of a key:
///
///     struct RowsKey { Precision precision; bool aligned; ... };                    launch.hpp
///     template <RowsKey key> struct RowsKernels { static ... get(); };
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

/// All keys of a precision and a flag, which many strategies have.
template <class Key>
inline constexpr auto flagged_keys = collect_keys<Key>([](auto add) {
  for (const Precision precision : kernel_precisions) {
    for (const bool flag : {false, true}) add(Key{precision, flag});
  }
});

template <const auto& keys>
using KeyOf = typename std::remove_cvref_t<decltype(keys)>::value_type;

/// `Kernels<key>::get()` for the one of `keys` that is wanted. Who plans has asked beforehand
/// whether there is one (`why_not`).
template <const auto& keys, template <KeyOf<keys>> class Kernels>
auto kernels_of(const KeyOf<keys>& wanted) {
  decltype(Kernels<keys[0]>::get()) found{};
  const bool exists = [&]<std::size_t... i>(std::index_sequence<i...>) {
    return ((keys[i] == wanted && (found = Kernels<keys[i]>::get(), true)) || ...);
  }
  (std::make_index_sequence<keys.size()>{});
  if (!exists) {
    throw Error(ErrorCode::internal, "a kernel was chosen that was not compiled", "kernel table",
                "report this with the plan's explanation");
  }
  return found;
}

/// The same of kernels that are set apart by the precision alone.
template <template <Precision> class Kernels>
auto kernels_of(Precision precision) {
  return kernels_of<kernel_precisions, Kernels>(stored_as(precision));
}

/// Of kernels by their width, the narrowest that takes so much at once, or the widest.
template <class Function, class Width>
const Function& narrowest(std::span<const Function> kernels, Width width, std::int64_t wanted) {
  const auto fits = [&](const Function& kernel) { return wanted <= std::invoke(width, kernel); };
  return *std::find_if(kernels.begin(), kernels.end() - 1, fits);
}

}  // namespace tessera::ops
