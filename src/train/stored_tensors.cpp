// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/train/checkpoint.hpp"

namespace tessera::train {
namespace {

std::string type_of(const step::Tensor& tensor) {
  return tensor.precision() == Precision::fp64 ? "<f8" : "<f4";
}

}  // namespace

std::vector<StoredTensor> store(const std::vector<nn::NamedTensor>& tensors) {
  std::vector<StoredTensor> stored;
  for (const auto& [path, tensor] : tensors) {
    Buffer<std::byte> bytes(tensor->num_bytes());
    copy_bytes(bytes.data(), tensor->bytes(), static_cast<std::size_t>(bytes.size()),
               tensor->device());
    stored.push_back(
        {path, {type_of(*tensor), {tensor->rows(), tensor->cols()}, std::move(bytes)}});
  }
  return stored;
}

void require_same_tensors(const std::vector<StoredTensor>& stored,
                          const std::vector<nn::NamedTensor>& tensors, const std::string& where) {
  const auto mismatch = [&](const std::string& problem) {
    throw Error(ErrorCode::invalid_argument, "the checkpoint is of another model: " + problem,
                where, "use it with the model and data it was made with");
  };
  if (stored.size() != tensors.size()) {
    mismatch(fmt::format("{} tensors instead of {}", stored.size(), tensors.size()));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [path, tensor] = tensors[i];
    const ExtraArray& array = stored[i].array;
    if (stored[i].path != path) {
      mismatch(fmt::format("it has '{}' instead of '{}'", stored[i].path, path));
    }
    const std::vector<std::int64_t> shape{tensor->rows(), tensor->cols()};
    if (array.shape != shape || array.type != type_of(*tensor) ||
        array.bytes.size() != tensor->num_bytes()) {
      mismatch("'" + path + "' has another shape or precision");
    }
  }
}

void restore(const std::vector<StoredTensor>& stored, const std::vector<nn::NamedTensor>& tensors,
             const std::string& where) {
  require_same_tensors(stored, tensors, where);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    step::Tensor& tensor = *tensors[i].tensor;
    const SharedArray<std::byte>& bytes = stored[i].array.bytes;
    copy_bytes(tensor.bytes(), bytes.data(), static_cast<std::size_t>(bytes.size()),
               tensor.device());
  }
}

}  // namespace tessera::train
