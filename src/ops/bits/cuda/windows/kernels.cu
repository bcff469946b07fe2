// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/windows/exchanged.cuh"
#include "ops/bits/cuda/windows/turned.cuh"

namespace tessera::ops {
namespace {

template <class Shape>
constexpr ByteWindowsFunction on_mma = windows_function<Shape, sum_byte_windows<Shape>>();
template <class Shape>
constexpr ByteWindowsFunction turned = windows_function<Shape, sum_tall_bytes<Shape>>();
template <class Shape>
constexpr ByteWindowsFunction exchanged = windows_function<Shape, sum_wide_windows<Shape>>();

}  // namespace

const std::array<ByteWindowsFunction, 3> byte_windows = {on_mma<ByteWindowsShape<32, 4, 8>>,
                                                         on_mma<ByteWindowsShape<64, 2, 5>>,
                                                         on_mma<ByteWindowsShape<128, 2, 4>>};
const std::array<ByteWindowsFunction, 3> tall_windows = {
    turned<TurnedShape<32, 5>>, exchanged<WideShape<64, 4>>, exchanged<WideShape<128, 3>>};

}  // namespace tessera::ops
