// SPDX-License-Identifier: Apache-2.0
#include "tessera/step/tensor.hpp"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/recording.hpp"
#include "tessera/ops/elementwise.hpp"

#include "tessera/detail/ops/plan_only.hpp"

namespace tessera::step {
namespace {

template <class Result, class Data>
Result operand_of(Data* data, const Tensor& tensor) {
  return {
      data,           storage_of(tensor.precision()), tensor.device(), tensor.rows(), tensor.cols(),
      tensor.stride()};
}

template <class Result>
Result widened(Result operand) {
  operand.cols = operand.stride;
  return operand;
}

}  // namespace

Placement Placement::wide() const {
  Placement wide = *this;
  if (bytes_per_element(precision) < sizeof(float)) wide.precision = Precision::fp32;
  return wide;
}

void Tensor::resize(std::int64_t rows, std::int64_t cols) {
  const std::int64_t stride = contiguous_ ? cols : padded_stride(cols, placement_);
  const std::int64_t elements = checked_area(rows, stride);
  const auto needed =
      static_cast<std::int64_t>(checked_bytes(elements, bytes_per_element(precision())));
  if (needed > memory_.size()) {
    if (is_recording()) {
      throw Error(ErrorCode::invalid_argument, "a buffer cannot grow while recording", "tensor",
                  "make it before: Layer::prepare makes all plans and buffers of a model");
    }
    // What it held is of no use any more: two at a time could be too many.
    rows_ = cols_ = stride_ = 0;
    memory_ = {};
    memory_ = Buffer<std::byte>(needed, placement_.place());
    if (stride > cols && !ops::plans_only()) {
      fill_zero(memory_.data(), static_cast<std::size_t>(needed), device(), placement_.stream);
    }
  }
  rows_ = rows;
  cols_ = cols;
  stride_ = stride;
}

std::int64_t padded_stride(std::int64_t cols, const Placement& placement) noexcept {
  constexpr std::int64_t vector_bytes = 16, short_row_bytes = 32;
  constexpr std::int64_t memory_bytes = 32, long_row_bytes = 256;
  const auto bytes = static_cast<std::int64_t>(bytes_per_element(placement.precision));
  if (placement.device().kind == DeviceKind::cpu || cols * bytes < short_row_bytes) return cols;
  const std::int64_t count = (cols * bytes < long_row_bytes ? vector_bytes : memory_bytes) / bytes;
  return (cols + count - 1) / count * count;
}

void Tensor::fill(double value, Stream stream) { ops::fill(*this, value, device(), stream); }

void Tensor::copy_from(ops::ConstOperand other, Stream stream) {
  resize(other.rows, other.cols);
  ops::copy(other, *this, device(), stream);
}

void Tensor::upload(ops::ConstOperand other, Stream stream) {
  resize(other.rows, other.cols);
  ops::upload(other, *this, device(), stream);
}

double Tensor::item() const {
  if (size() != 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("item() of a tensor that is {} x {}", rows_, cols_), "Tensor");
  }
  Matrix<double> value(1, 1);
  ops::download(*this, value, device(), placement_.stream);
  return value(0, 0);
}

Tensor::operator ops::Operand() noexcept { return operand_of<ops::Operand>(memory_.data(), *this); }

Tensor::operator ops::ConstOperand() const noexcept {
  return operand_of<ops::ConstOperand>(memory_.data(), *this);
}

ops::Operand Tensor::with_filling() noexcept { return widened(ops::Operand(*this)); }

ops::ConstOperand Tensor::with_filling() const noexcept {
  return widened(ops::ConstOperand(*this));
}

void Tensor::require_type(ElementType asked) const {
  if (asked != storage_of(precision())) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("a tensor of {} was read as {}", to_string(precision()), to_string(asked)),
        "Tensor");
  }
}

Initial Initial::glorot(std::int64_t fan_in, std::int64_t fan_out) {
  return uniform(std::sqrt(6.0 / static_cast<double>(std::max<std::int64_t>(fan_in + fan_out, 1))));
}

Initial Initial::linear(std::int64_t fan_in) {
  return uniform(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(fan_in, 1))));
}

Parameter::Parameter(std::string parameter_name, std::int64_t rows, std::int64_t cols,
                     Initial start, Placement placement)
    : name(std::move(parameter_name)),
      value(rows, cols, placement.wide()),
      gradient(rows, cols, placement),
      initial(start) {
  if (value.precision() != placement.precision) rounded_.emplace(placement).resize(rows, cols);
  gradient.fill(0, placement.stream);
  reset(Random(0));
}

void Parameter::reset(const Random& random) {
  if (ops::plans_only()) return;
  const Stream stream = value.placement().stream;
  if (initial.kind == Initial::Kind::constant) {
    value.fill(initial.value, stream);
  } else {
    Matrix<double> drawn(value.rows(), value.cols());
    for (std::int64_t i = 0; i < drawn.size(); ++i) {
      const double unit = random.uniform(static_cast<std::uint64_t>(i));
      drawn.data()[i] = initial.value * (2 * unit - 1);
    }
    value.upload(drawn, stream);
  }
  round(stream);
}

ops::Operand Parameter::rounded() { return rounded_ ? ops::Operand(*rounded_) : ops::Operand(); }

void Parameter::round(Stream stream) {
  if (rounded_) rounded_->copy_from(value, stream);
  if (turned_) turn(stream);
}

void Parameter::turn(Stream stream) {
  ops::transpose(used(), *turned_, turned_->device(), stream);
  // What only plans or records has not done it.
  turned_is_made_ = !ops::plans_only() && !is_recording();
}

const Tensor& Parameter::turned(Stream stream) {
  if (!turned_) turned_.emplace(used().placement()).resize(value.cols(), value.rows());
  if (!turned_is_made_) turn(stream);
  return *turned_;
}

ops::Operand Parameter::turned_copy() { return turned_ ? ops::Operand(*turned_) : ops::Operand(); }

Tensor& Parameter::upright_gradient() {
  gradient_is_turned_ = false;
  gradient.resize(value.rows(), value.cols());
  return gradient;
}

Tensor& Parameter::turned_gradient() {
  gradient_is_turned_ = true;
  gradient.resize(value.cols(), value.rows());
  return gradient;
}

}  // namespace tessera::step
