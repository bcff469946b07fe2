// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>

#include "tessera/core/device.hpp"
#include "tessera/core/dtype.hpp"
#include "tessera/ops/operand.hpp"

/// torch's tensors as this library's operands, and the few of torch's own operators that preparing
/// a graph needs. All of it works on any device.
namespace tessera::torch_ops {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

/// Calls an operator of torch by its name.
template <class Result, class... Arguments>
Result call(const char* name, const char* overload, const Arguments&... arguments) {
  std::array<StableIValue, sizeof...(Arguments)> stack{torch::stable::detail::from(arguments)...};
  TORCH_ERROR_CODE_CHECK(torch_call_dispatcher(name, overload, stack.data(), TORCH_ABI_VERSION));
  return torch::stable::detail::to<Result>(stack[0]);
}

Device device_of(const Tensor& tensor);
/// Throws `invalid_argument` unless it is fp64, fp32, bf16 or fp16.
Precision precision_of(const Tensor& tensor);

/// Throws `invalid_argument` unless features can be multiplied by a matrix of outputs x features;
/// `cast`: both are cast first, so that they may have different types. `name` is the matrix's.
void check_matrix(const Tensor& features, const Tensor& matrix, bool cast,
                  const char* name = "weight");
/// The same for so many features that are made of `x`, and need not exist yet.
void check_matrix(std::int64_t features, const Tensor& x, const Tensor& matrix, bool cast,
                  const char* name);
/// The same for a vector of so many numbers, a bias for example, that is added to what is made of
/// `x`.
void check_vector(std::int64_t size, const Tensor& x, const std::optional<Tensor>& vector,
                  bool cast, const char* name);
/// Throws `invalid_argument` unless a tensor lies where the features do.
void check_device(const Tensor& x, const Tensor& tensor, const char* name);
/// Throws `invalid_argument` unless there is a row of features for each vertex.
void check_rows(const Tensor& features, std::int64_t vertices, const char* name = "x");
/// Throws `invalid_argument` unless all of `others` have the type of the first; `names` are those
/// of all.
void check_one_type(const Tensor& first, std::initializer_list<Tensor> others, const char* names);

/// Whether the rows of a matrix lie as kernels take them, also apart from each other.
bool has_rows(const Tensor& matrix);
/// A matrix whose rows may lie apart, as kernels take it; another layout is copied first.
Tensor with_rows(const Tensor& tensor);
/// Itself where its numbers lie in one piece, otherwise a copy. Asking torch for that would go
/// through its dispatcher even where there is nothing to do.
Tensor in_one_piece(const Tensor& tensor);
/// A matrix with such rows as an operand.
ops::Operand operand(const Tensor& tensor);
/// All numbers of a tensor that lies in one piece, as an operand of one row.
ops::Operand row_operand(const Tensor& tensor);

/// A new tensor without a value, or zeros, on the device of another.
Tensor empty_beside(const Tensor& other, std::int64_t rows, std::int64_t cols, ScalarType type);
Tensor empty_beside(const Tensor& other, std::int64_t size, ScalarType type);
Tensor zeros_beside(const Tensor& other, std::int64_t rows, std::int64_t cols, ScalarType type);

/// Other rows and columns of the same memory, from `offset` behind where the tensor begins.
Tensor view_of(const Tensor& tensor, const std::array<std::int64_t, 2>& sizes,
               const std::array<std::int64_t, 2>& strides, std::int64_t offset);
/// All numbers of a tensor as one row; copied where they do not lie in one piece.
Tensor as_row(const Tensor& tensor);
/// The same numbers, with rows and columns exchanged.
Tensor transposed(const Tensor& matrix);
Tensor in_type(const Tensor& tensor, ScalarType type);
/// Rows `begin` to `begin + count` of a matrix.
Tensor rows_of(const Tensor& matrix, std::int64_t begin, std::int64_t count);
/// Columns `begin` to `begin + count` of a matrix.
Tensor columns_of(const Tensor& matrix, std::int64_t begin, std::int64_t count);
void copy(Tensor into, const Tensor& source);

/// 0, 1, …, size - 1 as 64-bit numbers.
Tensor counting(const Tensor& beside, std::int64_t size);
Tensor selected(const Tensor& tensor, const Tensor& positions);
/// One behind the other; both have one dimension and the same type.
Tensor joined(const Tensor& first, const Tensor& second);
bool equal(const Tensor& a, const Tensor& b);

/// Whether a tensor was made in inference mode, where nobody counts changes.
bool is_inference(const Tensor& tensor);
/// Whether both are the same numbers of one allocation of torch's, or of one borrowing of somebody
/// else's memory.
bool is_same_memory(const Tensor& a, const Tensor& b);
/// How often a tensor was changed in place.
std::int64_t version_of(const Tensor& tensor);

}  // namespace tessera::torch_ops
