// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tessera/core/matrix.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/random.hpp"
#include "tessera/ops/operand.hpp"

namespace tessera::step {

/// How a layer stores its numbers, and where: the resource's device is where the layer runs.
struct Placement {
  Precision precision = Precision::fp32;
  MemoryResource* memory = &host_memory();
  /// Tensors are made, and released, in the order of this stream; passes may be on another one once
  /// it has been waited for.
  Stream stream = {};

  Device device() const noexcept { return memory->device(); }
  Place place() const { return {memory->device(), memory, stream}; }
  /// The same for what is learned and for sums that are kept: fp32 in place of 16 bits.
  Placement wide() const;
};

/// How many elements lie between the rows of a matrix in memory of a step: on a GPU long rows end
/// on a boundary of what memory moves at least, so that a row is written without reading its
/// neighbour. Short rows stay as they are: padding would double them.
std::int64_t padded_stride(std::int64_t cols, const Placement& placement) noexcept;

/// An owned row-major matrix whose element type is known at run time. Resizing keeps the memory
/// where it suffices, so that buffers made in the first step serve all later ones.
class Tensor {
 public:
  /// For what passes compute: on a GPU long rows begin at whole vectors, as kernels load them.
  explicit Tensor(Placement placement = {}) : placement_(placement) {}
  /// For what is kept and stored: contiguous, whatever shape it takes later.
  Tensor(std::int64_t rows, std::int64_t cols, Placement placement = {})
      : placement_(placement), contiguous_(true) {
    resize(rows, cols);
  }

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t cols() const noexcept { return cols_; }
  /// From one row to the next: `cols`, and what fills the row up.
  std::int64_t stride() const noexcept { return stride_; }
  std::int64_t size() const noexcept { return rows_ * cols_; }
  Precision precision() const noexcept { return placement_.precision; }
  const Placement& placement() const noexcept { return placement_; }
  Device device() const noexcept { return placement_.device(); }
  std::byte* bytes() noexcept { return memory_.data(); }
  const std::byte* bytes() const noexcept { return memory_.data(); }
  /// Of a contiguous one.
  std::int64_t num_bytes() const noexcept {
    return size() * static_cast<std::int64_t>(bytes_per_element(precision()));
  }

  /// Contents are undefined afterwards, except where the shape stays as it was.
  void resize(std::int64_t rows, std::int64_t cols);
  void fill(double value, Stream stream = {});
  /// Takes shape and contents of a matrix on the same device, converting the precision.
  void copy_from(ops::ConstOperand other, Stream stream = {});
  /// The same of a matrix in memory of this process, wherever the tensor is.
  void upload(ops::ConstOperand other, Stream stream = {});
  /// The only element of a 1 x 1 tensor. Waits for the device.
  double item() const;

  /// Throws unless T is what its elements are stored as.
  template <class T>
  MatrixView<T> as() {
    require_type(ElementTypeOf<T>::value);
    return {reinterpret_cast<T*>(memory_.data()), rows_, cols_, stride_, device()};
  }
  template <class T>
  MatrixView<const T> as() const {
    require_type(ElementTypeOf<T>::value);
    return {reinterpret_cast<const T*>(memory_.data()), rows_, cols_, stride_, device()};
  }

  operator ops::Operand() noexcept;
  operator ops::ConstOperand() const noexcept;
  /// With what fills its rows up, `stride` columns: for ops that never mix columns. What they leave
  /// there means nothing.
  ops::Operand with_filling() noexcept;
  ops::ConstOperand with_filling() const noexcept;

 private:
  void require_type(ElementType asked) const;

  Placement placement_;
  bool contiguous_ = false;
  Buffer<std::byte> memory_;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t stride_ = 0;
};

/// What a parameter starts as.
struct Initial {
  enum class Kind { constant, uniform };
  Kind kind = Kind::constant;
  double value = 0;  ///< the constant, or the bound of a uniform draw from [-value, value)

  static Initial constant(double value) { return {Kind::constant, value}; }
  static Initial uniform(double bound) { return {Kind::uniform, bound}; }
  /// Glorot and Bengio (2010).
  static Initial glorot(std::int64_t fan_in, std::int64_t fan_out);
  /// What PyTorch's Linear starts with: uniform within 1 / sqrt(fan_in).
  static Initial linear(std::int64_t fan_in);
};

/// What training changes.
struct Parameter {
  Parameter(std::string parameter_name, std::int64_t rows, std::int64_t cols, Initial start,
            Placement placement = {});

  std::string name;  ///< within its layer, as in PyG's state_dict: "lin.weight"
  Tensor value;      ///< fp32 where the layer stores 16 bits
  Tensor gradient;   ///< stored as the layer does; written, not added to, by each backward pass
  Initial initial;
  bool trainable = true;
  /// Which share of the optimiser's weight decay applies; 0 exempts the parameter.
  double decay = 1;

  /// `random` belongs to this parameter alone.
  void reset(const Random& random);

  /// The value as passes read it: a rounded copy where the layer stores 16 bits.
  const Tensor& used() const noexcept { return rounded_ ? *rounded_ : value; }
  /// The copy, for the optimiser, which writes both; absent where there is none.
  ops::Operand rounded();
  /// Makes all copies anew: for those who write the value by other means.
  void round(Stream stream = {});

  /// Set while an optimiser steps it. That one keeps a transposed copy up to date, and takes a
  /// transposed gradient as well.
  bool has_optimiser = false;
  /// The transpose of `used()`, cols x rows; only while it has an optimiser.
  const Tensor& turned(Stream stream = {});
  /// That copy, for the optimiser; absent where nobody asked for it.
  ops::Operand turned_copy();
  /// `gradient` for one who writes it as it is, or transposed: cols x rows.
  Tensor& upright_gradient();
  Tensor& turned_gradient();
  bool gradient_is_turned() const noexcept { return gradient_is_turned_; }

 private:
  void turn(Stream stream);

  std::optional<Tensor> rounded_;  ///< never stored, as the next
  std::optional<Tensor> turned_;
  bool turned_is_made_ = false;
  bool gradient_is_turned_ = false;
};

}  // namespace tessera::step
