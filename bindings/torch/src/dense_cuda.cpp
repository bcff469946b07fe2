// SPDX-License-Identifier: Apache-2.0
#include "dense.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include <cuda_runtime_api.h>

#include "column_sums.hpp"
#include "operators.hpp"
#include "ops/dense/dense_workspace.hpp"
#include "tessera/core/error.hpp"
#include "tessera/ops/activation.hpp"
#include "tessera/ops/elementwise.hpp"
#include "tessera/ops/gemm.hpp"
#include "tessera/ops/linear.hpp"

namespace tessera::torch_ops {

/// What dense ops on a stream need. Threads may queue on one stream at the same time: they share
/// it, so that whoever queues an op, which may be several launches, holds `queueing` meanwhile.
struct StreamWorkspace {
  explicit StreamWorkspace(const Place& place) : memory(place) {}

  ops::DenseWorkspace memory;
  std::mutex queueing;
};

namespace {

/// The number of the capture that a stream is part of, or 0.
unsigned long long capture_of(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long number = 0;
  const cudaError_t error =
      cudaStreamGetCaptureInfo(static_cast<cudaStream_t>(stream.handle), &status, &number);
  return error == cudaSuccess && status == cudaStreamCaptureStatusActive ? number : 0;
}

/// Workspaces of dense ops: one for each stream, since what streams do at the same time must not
/// share one, and others for work that is captured, whose replays may run beside anything. Those
/// are of the memory of the capture, which torch keeps as long as the graph, and are forgotten at
/// the next capture.
class Workspaces {
 public:
  std::shared_ptr<StreamWorkspace> of(const Place& place) {
    const std::scoped_lock lock(mutex_);
    const unsigned long long capture = capture_of(place.stream);
    if (capture != 0 && capture != capture_) {
      captured_.clear();
      capture_ = capture;
    }
    auto& kept = capture != 0 ? captured_ : kept_;
    const Key key{place.device.index, place.stream.handle};
    const auto found = kept.find(key);
    if (found != kept.end()) return found->second;
    if (capture != 0 && !ready_.contains(place.device.index)) {
      throw Error(ErrorCode::invalid_argument,
                  "while capturing a CUDA graph: no layer ran on this GPU before", "capture",
                  "run the whole step once before torch.cuda.graph");
    }
    auto made = std::make_shared<StreamWorkspace>(place);
    ready_.insert(place.device.index);
    return kept.emplace(key, std::move(made)).first->second;
  }

  void clear() {
    const std::scoped_lock lock(mutex_);
    kept_.clear();
    captured_.clear();
  }

 private:
  using Key = std::pair<int, void*>;  ///< a GPU and a stream of it

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<StreamWorkspace>> kept_, captured_;
  unsigned long long capture_ = 0;  ///< that `captured_` is of
  std::set<int> ready_;             ///< GPUs that have run dense ops
};

/// Never destroyed: torch's memory may be gone by the time that static objects go.
Workspaces& workspaces() {
  static auto* const instance = new Workspaces;
  return *instance;
}

/// A matrix as dense ops take it: its rows, or those of its transpose. Others are copied.
struct Factor {
  Tensor stored;
  ops::Transpose transpose = ops::Transpose::no;

  explicit Factor(const Tensor& matrix) : stored(matrix) {
    if (has_rows(matrix)) return;
    const Tensor other = transposed(matrix);
    const bool turned = has_rows(other);
    stored = turned ? other : torch::stable::contiguous(matrix);
    if (turned) transpose = ops::Transpose::yes;
  }
  ops::ConstOperand matrix() const { return operand(stored); }
};

/// For the sums of a matrix's columns: of fp32 where that is wanted, else of the matrix's type.
Tensor sums_beside(const Tensor& matrix, ScalarType wanted) {
  return empty_beside(matrix, matrix.size(1),
                      wanted == ScalarType::Float ? wanted : matrix.scalar_type());
}

}  // namespace

Dense::Dense(const Tensor& beside, std::int64_t flags)
    : place_(place_of(beside)), workspace_(workspaces().of(place_)) {
  if ((flags & allow_tf32) != 0) arithmetic_ = Precision::tf32;
}

void Dense::multiply(Tensor& out, const Tensor& a, const Tensor& b) const {
  const Factor left(a), right(b);
  if (out.numel() == 0) return;
  const std::scoped_lock lock(workspace_->queueing);
  ops::gemm(left.transpose, right.transpose, 1, left.matrix(), right.matrix(), 0, operand(out),
            place_.device, place_.stream, &workspace_->memory, arithmetic_);
}

Tensor Dense::product_in(const Tensor& a, const Tensor& b, ScalarType type) const {
  const bool widens = type == ScalarType::Float;
  Tensor result = empty_beside(a, a.size(0), b.size(1), widens ? type : a.scalar_type());
  multiply(result, a, b);
  return in_type(result, type);
}

void Dense::add_product(Tensor& out, const Tensor& start, const Tensor& a, const Tensor& b) const {
  const Factor left(a), right(b);
  if (out.numel() == 0) return;
  if (start.dim() == 2) {
    const std::scoped_lock lock(workspace_->queueing);
    ops::gemm(left.transpose, right.transpose, 1, left.matrix(), right.matrix(), 1, operand(out),
              place_.device, place_.stream, &workspace_->memory, arithmetic_);
    return;
  }
  const Tensor bias = in_one_piece(start);
  if (left.transpose == ops::Transpose::no && right.transpose == ops::Transpose::yes) {
    const std::scoped_lock lock(workspace_->queueing);
    ops::linear(left.matrix(), right.matrix(), row_operand(bias), operand(out), place_.device,
                place_.stream, &workspace_->memory, arithmetic_);
    return;
  }
  multiply(out, a, b);
  ops::bias_activation_dropout(operand(out), row_operand(bias), {}, operand(out), place_.device,
                               place_.stream);
}

Tensor Dense::with_bias(const Tensor& matrix, const Tensor& bias) const {
  const Tensor rows = with_rows(matrix), row = in_one_piece(bias);
  const Tensor result = empty_beside(matrix, rows.size(0), rows.size(1), rows.scalar_type());
  if (result.numel() == 0) return result;
  ops::bias_activation_dropout(operand(rows), row_operand(row), {}, operand(result), place_.device,
                               place_.stream);
  return result;
}

void Dense::add_into(Tensor into, const Tensor& more) const {
  ops::add_scaled(1, operand(more), 1, operand(into), place_.device, place_.stream);
}

void Dense::sum_columns(const Tensor& values, const std::optional<Tensor>& decides,
                        const std::optional<Tensor>& sums) const {
  if (values.numel() == 0) {
    if (sums) TORCH_ERROR_CODE_CHECK(aoti_torch_zero_(sums->get()));
    return;
  }
  const ops::Operand of_values = operand(values);
  const ops::Operand of_sums = sums ? row_operand(*sums) : ops::Operand{};
  const ops::Operand deciding = decides ? operand(*decides) : ops::Operand{};
  if (sums && of_sums.type != of_values.type) {
    const std::scoped_lock lock(workspace_->queueing);
    const ops::DenseWorkspaceUse use(&workspace_->memory, "sum", place_.device, place_.stream);
    return column_sums(of_values, deciding, of_sums, use.data(), place_.stream);
  }
  ops::ActivationOptions options;
  if (decides) options.activation = ops::Activation::relu;
  const std::scoped_lock lock(workspace_->queueing);
  ops::bias_activation_dropout_backward(decides ? deciding : of_values, {}, options, of_values,
                                        decides ? of_values : ops::Operand{}, of_sums,
                                        place_.device, place_.stream, &workspace_->memory);
}

Tensor Dense::sum_of_rows(const Tensor& matrix, ScalarType type) const {
  const Tensor rows = with_rows(matrix);
  const Tensor sums = sums_beside(rows, type);
  sum_columns(rows, std::nullopt, sums);
  return in_type(sums, type);
}

std::optional<LinearGradients> Dense::gradients_in_one(const Tensor& x, const Tensor& matrix,
                                                       const Tensor& grad,
                                                       const WantedLinear& wanted) const {
  if (x.numel() == 0 || grad.numel() == 0 || !has_rows(x) || !has_rows(matrix)) return std::nullopt;
  const ScalarType type = x.scalar_type();
  LinearGradients found;
  if (wanted.weight) found.weight = empty_beside(x, grad.size(1), x.size(1), type);
  if (wanted.bias) found.bias = empty_beside(x, grad.size(1), type);
  if (wanted.x) found.x = empty_beside(x, x.size(0), x.size(1), type);
  if (wanted.x_sums) found.x_sums = empty_beside(x, x.size(1), type);
  ops::LinearSurroundings around;
  around.before_relu = wanted.before_relu;
  if (found.x_sums) around.grad_x_sums = row_operand(*found.x_sums);
  const std::scoped_lock lock(workspace_->queueing);
  ops::linear_backward(operand(x), operand(matrix), operand(grad),
                       found.weight ? operand(*found.weight) : ops::Operand{},
                       found.bias ? row_operand(*found.bias) : ops::Operand{},
                       found.x ? operand(*found.x) : ops::Operand{}, place_.device, place_.stream,
                       &workspace_->memory, arithmetic_, around);
  return found;
}

std::optional<Tensor> Dense::clear_where_zero(Tensor& values, const Tensor& decides,
                                              std::optional<ScalarType> sum_type) const {
  std::optional<Tensor> sums;
  if (sum_type) sums = sums_beside(values, *sum_type);
  sum_columns(values, decides, sums);
  return sums ? std::optional(in_type(*sums, *sum_type)) : std::nullopt;
}

void with_dense_workspace(const Tensor& beside, FunctionRef<void(const ops::DenseWorkspace*)> use) {
  const auto workspace = workspaces().of(place_of(beside));
  const std::scoped_lock lock(workspace->queueing);
  use(&workspace->memory);
}

void release_dense_memory() { workspaces().clear(); }

}  // namespace tessera::torch_ops
