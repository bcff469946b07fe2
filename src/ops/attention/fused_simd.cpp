// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/backward.hpp"
#include "ops/attention/forward.hpp"
#include "ops/attention/slice_maker.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

using namespace attention;
template <class T>
constexpr fused::Functions<T> functions_of = {
    make_slices<T>, forward<T>,   forward_piece<T>, merge<T>,     finish<T>,
    backward<T>,    row_state<T>, weights<T>,       store_row<T>, sum_edges<T>};

}  // namespace

const ByStorage<fused::Functions>& fused_attention_table() {
  static constexpr ByStorage<fused::Functions> table = {functions_of<double>, functions_of<float>,
                                                        functions_of<Bfloat16>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
