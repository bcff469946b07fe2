// SPDX-License-Identifier: Apache-2.0
#include "tensors.hpp"

#include "tessera/core/error.hpp"

namespace tessera::torch_ops {
namespace {

constexpr const char* not_two_dimensional = "features or a matrix that are not two-dimensional";
constexpr const char* two_dimensions = "use vertices x features, and outputs x features";

ElementType element_type_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Double: return ElementType::fp64;
    case ScalarType::Float: return ElementType::fp32;
    case ScalarType::BFloat16: return ElementType::bf16;
    case ScalarType::Half: return ElementType::fp16;
    case ScalarType::Int: return ElementType::int32;
    default: break;
  }
  throw Error(ErrorCode::invalid_argument, "features of a type that is not a float", "dtype",
              "use float64, float32, bfloat16 or float16");
}

std::string type_name(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Double: return "float64";
    case ScalarType::Float: return "float32";
    case ScalarType::BFloat16: return "bfloat16";
    case ScalarType::Half: return "float16";
    default: return "no float";
  }
}

/// Throws unless a tensor has the type of the features.
void check_type(const Tensor& x, const Tensor& tensor, const std::string& name) {
  if (tensor.scalar_type() == x.scalar_type()) return;
  throw Error(ErrorCode::invalid_argument,
              "features are " + type_name(x) + ", but " + name + " is " + type_name(tensor),
              "dtype", "give both one type, as by x.to(" + name + ".dtype)");
}

/// torch's functions for its own compiler, which take no turn through its dispatcher.
template <std::size_t dimensions>
Tensor new_tensor(const Tensor& other, const std::array<std::int64_t, dimensions>& sizes,
                  const std::array<std::int64_t, dimensions>& strides, ScalarType type) {
  std::int32_t device = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(other.get(), &device));
  AtenTensorHandle made = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(
      static_cast<std::int64_t>(dimensions), sizes.data(), strides.data(),
      static_cast<std::int32_t>(type), device, other.get_device_index(), &made));
  return Tensor(made);
}

}  // namespace

Device device_of(const Tensor& tensor) {
  if (tensor.is_cpu()) return {};
  return {DeviceKind::cuda, tensor.get_device_index()};
}

Precision precision_of(const Tensor& tensor) {
  switch (element_type_of(tensor)) {
    case ElementType::fp64: return Precision::fp64;
    case ElementType::bf16: return Precision::bf16;
    case ElementType::fp16: return Precision::fp16;
    default: return Precision::fp32;
  }
}

void check_matrix(const Tensor& features, const Tensor& matrix, bool cast, const char* name) {
  if (features.dim() != 2) {
    throw Error(ErrorCode::invalid_argument, not_two_dimensional, name, two_dimensions);
  }
  check_matrix(features.size(1), features, matrix, cast, name);
}

void check_matrix(std::int64_t features, const Tensor& x, const Tensor& matrix, bool cast,
                  const char* name) {
  if (matrix.dim() != 2) {
    throw Error(ErrorCode::invalid_argument, not_two_dimensional, name, two_dimensions);
  }
  if (matrix.size(1) != features) {
    throw Error(ErrorCode::invalid_argument,
                "there are " + std::to_string(features) + ", but " + name + " takes " +
                    std::to_string(matrix.size(1)),
                "features", "use as many as the matrix has columns");
  }
  check_device(x, matrix, name);
  if (!cast) check_type(x, matrix, name);
}

void check_vector(std::int64_t size, const Tensor& x, const std::optional<Tensor>& vector,
                  bool cast, const char* name) {
  if (!vector) return;
  if (vector->dim() != 1 || vector->size(0) != size) {
    const std::string given = vector->dim() == 1
                                  ? "a vector of size " + std::to_string(vector->size(0))
                                  : "a tensor of " + std::to_string(vector->dim()) + " dimensions";
    throw Error(ErrorCode::invalid_argument,
                given + ", where a vector of size " + std::to_string(size) + " is needed", name,
                "give one number for each output");
  }
  check_device(x, *vector, name);
  if (!cast) check_type(x, *vector, name);
}

void check_device(const Tensor& x, const Tensor& tensor, const char* name) {
  const Device wanted = device_of(x), found = device_of(tensor);
  if (found == wanted) return;
  throw Error(
      ErrorCode::invalid_argument,
      "a tensor on " + to_string(found) + ", while the features lie on " + to_string(wanted), name,
      "move the layer or the features, layer.to(x.device)");
}

void check_rows(const Tensor& features, std::int64_t vertices, const char* name) {
  if (features.size(0) == vertices) return;
  throw Error(
      ErrorCode::invalid_argument,
      std::to_string(features.size(0)) + " rows for " + std::to_string(vertices) + " vertices",
      name, "give one for each vertex");
}

void check_one_type(const Tensor& first, std::initializer_list<Tensor> others, const char* names) {
  for (const Tensor& other : others) {
    if (other.scalar_type() == first.scalar_type()) continue;
    throw Error(ErrorCode::invalid_argument,
                std::string(names) + " of different types: " + type_name(first) + " and " +
                    type_name(other),
                "dtype", "give all of them one type");
  }
}

bool has_rows(const Tensor& matrix) {
  return (matrix.size(1) <= 1 || matrix.stride(1) == 1) &&
         (matrix.size(0) <= 1 || matrix.stride(0) >= matrix.size(1));
}

Tensor with_rows(const Tensor& tensor) {
  if (tensor.dim() != 2) {
    throw Error(ErrorCode::invalid_argument,
                "a tensor of " + std::to_string(tensor.dim()) + " dimensions", "features",
                "use two: vertices and features");
  }
  return has_rows(tensor) ? tensor : torch::stable::contiguous(tensor);
}

Tensor in_one_piece(const Tensor& tensor) {
  return tensor.is_contiguous() ? tensor : torch::stable::contiguous(tensor);
}

ops::Operand operand(const Tensor& tensor) {
  const std::int64_t stride =
      tensor.size(0) <= 1 ? tensor.size(1) : std::max(tensor.stride(0), tensor.size(1));
  return {tensor.data_ptr(), element_type_of(tensor), device_of(tensor),
          tensor.size(0),    tensor.size(1),          stride};
}

ops::Operand row_operand(const Tensor& tensor) {
  const std::int64_t size = tensor.numel();
  return {tensor.data_ptr(), element_type_of(tensor), device_of(tensor), 1, size, size};
}

Tensor empty_beside(const Tensor& other, std::int64_t rows, std::int64_t cols, ScalarType type) {
  return new_tensor<2>(other, {rows, cols}, {cols, 1}, type);
}

Tensor empty_beside(const Tensor& other, std::int64_t size, ScalarType type) {
  return new_tensor<1>(other, {size}, {1}, type);
}

Tensor view_of(const Tensor& tensor, const std::array<std::int64_t, 2>& sizes,
               const std::array<std::int64_t, 2>& strides, std::int64_t offset) {
  AtenTensorHandle view = nullptr;
  // torch counts the offset from the tensor's own.
  TORCH_ERROR_CODE_CHECK(
      aoti_torch__reinterpret_tensor(tensor.get(), 2, sizes.data(), strides.data(), offset, &view));
  return Tensor(view);
}

Tensor as_row(const Tensor& tensor) {
  const std::int64_t size = tensor.numel();
  return view_of(in_one_piece(tensor), {1, size}, {size, 1}, 0);
}

Tensor transposed(const Tensor& matrix) {
  return view_of(matrix, {matrix.size(1), matrix.size(0)}, {matrix.stride(1), matrix.stride(0)}, 0);
}

Tensor zeros_beside(const Tensor& other, std::int64_t rows, std::int64_t cols, ScalarType type) {
  Tensor zeros = empty_beside(other, rows, cols, type);
  return torch::stable::zero_(zeros);
}

Tensor in_type(const Tensor& tensor, ScalarType type) {
  return tensor.scalar_type() == type ? tensor : torch::stable::to(tensor, type);
}

Tensor rows_of(const Tensor& matrix, std::int64_t begin, std::int64_t count) {
  return view_of(matrix, {count, matrix.size(1)}, {matrix.stride(0), matrix.stride(1)},
                 begin * matrix.stride(0));
}

Tensor columns_of(const Tensor& matrix, std::int64_t begin, std::int64_t count) {
  return view_of(matrix, {matrix.size(0), count}, {matrix.stride(0), matrix.stride(1)},
                 begin * matrix.stride(1));
}

void copy(Tensor into, const Tensor& source) {
  TORCH_ERROR_CODE_CHECK(aoti_torch_copy_(into.get(), source.get(), 0));
}

Tensor counting(const Tensor& beside, std::int64_t size) {
  Tensor steps = empty_beside(beside, size, ScalarType::Long);
  torch::stable::fill_(steps, 1);
  if (size > 0) {
    Tensor first = torch::stable::narrow(steps, 0, 0, 1);
    torch::stable::zero_(first);
  }
  return call<Tensor>("aten::cumsum", "", steps, std::int64_t{0},
                      std::optional<ScalarType>(ScalarType::Long));
}

Tensor selected(const Tensor& tensor, const Tensor& positions) {
  return call<Tensor>("aten::index_select", "", tensor, std::int64_t{0}, positions);
}

Tensor joined(const Tensor& first, const Tensor& second) {
  Tensor both = empty_beside(first, first.size(0) + second.size(0), first.scalar_type());
  Tensor begin = torch::stable::narrow(both, 0, 0, first.size(0));
  Tensor end = torch::stable::narrow(both, 0, first.size(0), second.size(0));
  torch::stable::copy_(begin, first);
  torch::stable::copy_(end, second);
  return both;
}

bool equal(const Tensor& a, const Tensor& b) { return call<bool>("aten::equal", "", a, b); }

bool is_inference(const Tensor& tensor) { return call<bool>("aten::is_inference", "", tensor); }

bool is_same_memory(const Tensor& a, const Tensor& b) {
  return call<bool>("aten::is_set_to", "", a, b);
}

std::int64_t version_of(const Tensor& tensor) {
  return call<std::int64_t>("aten::_version", "", tensor);
}

}  // namespace tessera::torch_ops
