// SPDX-License-Identifier: Apache-2.0
#include "bench/cusparse.hpp"

#include "tessera/core/error.hpp"

#ifdef TESSERA_WITH_CUDA
#include <cuda_runtime_api.h>
#include <cusparse.h>

#include <algorithm>
#include <limits>
#include <span>
#include <type_traits>

#include "tessera/core/measure.hpp"
#include "tessera/graph/transform.hpp"

#include "bench/compare_rows.hpp"
#include "bench/placed.hpp"
#include "bench/prepare.hpp"
#endif

namespace tessera::bench {

constexpr const char* beginning = "spmm/cuda/cusparse_alg";

bool is_cusparse(const std::string& kernel) {
  return kernel.starts_with("spmm/cuda/cusparse") && !cusparse_names().empty();
}

#ifndef TESSERA_WITH_CUDA

std::vector<std::string> cusparse_names() { return {}; }

std::unique_ptr<Trial> prepare_cusparse(const Problem&, bool) {
  throw Error(ErrorCode::backend_unavailable, "built without CUDA");
}

#else

namespace {

constexpr cusparseSpMMAlg_t algorithms[] = {CUSPARSE_SPMM_CSR_ALG1, CUSPARSE_SPMM_CSR_ALG2,
                                            CUSPARSE_SPMM_CSR_ALG3};

void check(cusparseStatus_t status, const char* what) {
  if (status == CUSPARSE_STATUS_SUCCESS) return;
  throw Error(ErrorCode::internal,
              std::string("cuSPARSE failed: ") + cusparseGetErrorString(status), what);
}

template <auto destroy>
struct Deleter {
  template <class Handle>
  void operator()(Handle* handle) const {
    destroy(handle);
  }
};
template <class Handle, auto destroy>
using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, Deleter<destroy> >;

template <class T>
constexpr cudaDataType type_of = std::is_same_v<T, float>      ? CUDA_R_32F
                                 : std::is_same_v<T, Bfloat16> ? CUDA_R_16BF
                                                               : CUDA_R_16F;

template <class T>
Buffer<T> to_gpu(std::span<const T> values, Device device) {
  Buffer<T> there(static_cast<std::int64_t>(values.size()), default_memory(device));
  copy_bytes(there.data(), values.data(), values.size_bytes(), device);
  synchronise(device);
  return there;
}

/// One algorithm, preprocessed. cuSPARSE wants a value for every edge: its whole weight.
template <class T>
class Product {
 public:
  Product(cusparseSpMMAlg_t algorithm, cusparseSpMatDescr_t a, Placed<T>& x, Placed<T>& y,
          Device device)
      : algorithm_(algorithm), a_(a) {
    cusparseHandle_t handle = nullptr;
    check(cusparseCreate(&handle), "cusparseCreate");
    handle_.reset(handle);
    x_.reset(dense(x));
    y_.reset(dense(y));
    std::size_t bytes = 0;
    check(cusparseSpMM_bufferSize(handle, plain, plain, &one, a, x_.get(), &zero, y_.get(),
                                  CUDA_R_32F, algorithm, &bytes),
          "cusparseSpMM_bufferSize");
    memory_ = Buffer<std::byte>(static_cast<std::int64_t>(std::max<std::size_t>(bytes, 16)),
                                default_memory(device));
    check(cusparseSpMM_preprocess(handle, plain, plain, &one, a, x_.get(), &zero, y_.get(),
                                  CUDA_R_32F, algorithm, memory_.data()),
          "cusparseSpMM_preprocess");
    synchronise(device);
  }

  void run(Stream stream) {
    check(cusparseSetStream(handle_.get(), static_cast<cudaStream_t>(stream.handle)),
          "cusparseSetStream");
    check(cusparseSpMM(handle_.get(), plain, plain, &one, a_, x_.get(), &zero, y_.get(), CUDA_R_32F,
                       algorithm_, memory_.data()),
          "cusparseSpMM");
  }

 private:
  static constexpr cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr float one = 1;
  static constexpr float zero = 0;

  static cusparseDnMatDescr_t dense(Placed<T>& matrix) {
    cusparseDnMatDescr_t descriptor = nullptr;
    check(cusparseCreateDnMat(&descriptor, matrix.rows(), matrix.cols(), matrix.cols(),
                              matrix.view().data, type_of<T>, CUSPARSE_ORDER_ROW),
          "cusparseCreateDnMat");
    return descriptor;
  }

  cusparseSpMMAlg_t algorithm_;
  cusparseSpMatDescr_t a_;
  Owner<cusparseHandle_t, cusparseDestroy> handle_;
  Owner<cusparseDnMatDescr_t, cusparseDestroyDnMat> x_, y_;
  Buffer<std::byte> memory_;
};

/// What cuSPARSE cannot be compared by: rows off 16-byte boundaries, which it reads wrongly, and
/// weights that it would round to 16 bits.
void check_problem(const Problem& problem) {
  const auto element = static_cast<std::int64_t>(bytes_per_element(problem.precision));
  const char* const reason =
      problem.features == 0 || problem.features * element % 16 != 0
          ? "rows of features that do not fill 16 bytes"
      : problem.graph.num_edges() == 0                                       ? "no edges"
      : problem.graph.num_edges() > std::numeric_limits<std::int32_t>::max() ? "too many edges"
      : element < 4 && problem.graph.is_weighted() ? "weights of edges in 16 bits"
                                                   : nullptr;
  if (reason != nullptr) throw Error(ErrorCode::unsupported, reason, "cuSPARSE");
}

template <class T>
class CusparseTrial : public Trial {
 public:
  CusparseTrial(const Problem& problem, bool transpose)
      : graph_((check_problem(problem), transpose ? transposed(problem.graph) : problem.graph)),
        problem_(problem),
        x_(random_placed<T>(graph_.num_cols(), problem.features, problem.seed, problem.device)),
        y_(graph_.num_rows(), problem.features, problem.device) {
    make_matrix();
    double best_us = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < std::size(algorithms); ++i) {
      const std::string name = beginning + std::to_string(i + 1);
      const bool any = problem.kernel.ends_with('*');
      // Others add parts of a row in 16 bits.
      if (any ? sizeof(T) < 4 && algorithms[i] != CUSPARSE_SPMM_CSR_ALG3 : problem.kernel != name) {
        continue;
      }
      auto product = std::make_unique<Product<T> >(algorithms[i], a_.get(), x_, y_, problem.device);
      const double us = measure_on(problem.device, [&](Stream stream) { product->run(stream); },
                                   {.repeats = 5, .min_seconds = 0.01})
                            .median_us;
      if (us >= best_us) continue;
      best_us = us;
      name_ = name;
      product_ = std::move(product);
    }
    if (product_ == nullptr) {
      throw Error(ErrorCode::invalid_argument, "no algorithm is called '" + problem.kernel + "'");
    }
  }

  Gate check() override {
    run({});
    return compare_rows(sample_rows(graph_, problem_.seed, sample_size(problem_)),
                        ops::Reduction::sum, x_, y_, problem_.precision, name_);
  }
  void run(Stream stream) override { product_->run(stream); }
  std::int64_t bytes() const override {
    return structure_bytes(graph_, problem_.device) + weight_bytes(graph_) + x_.bytes() +
           y_.bytes();
  }
  std::string kernel() const override { return name_; }

 private:
  void make_matrix() {
    const Device device = problem_.device;
    std::vector<std::int32_t> offsets;
    for (const EdgeOffset offset : graph_.row_offsets()) {
      offsets.push_back(static_cast<std::int32_t>(offset));
    }
    std::vector<T> weights;
    for (VertexId row = 0; row < graph_.num_rows(); ++row) {
      for (EdgeOffset e = graph_.row_offsets()[row]; e < graph_.row_offsets()[row + 1]; ++e) {
        const float value = graph_.has_values() ? graph_.values()[e] : 1.0f;
        const float of_row = graph_.has_row_scale() ? graph_.row_scale()[row] : 1.0f;
        const float of_column =
            graph_.has_col_scale() ? graph_.col_scale()[graph_.col_indices()[e]] : 1.0f;
        weights.push_back(T(value * of_row * of_column));
      }
    }
    offsets_ = to_gpu(std::span<const std::int32_t>(offsets), device);
    indices_ = to_gpu(graph_.col_indices().span(), device);
    weights_ = to_gpu(std::span<const T>(weights), device);
    cusparseSpMatDescr_t a = nullptr;
    bench::check(
        cusparseCreateCsr(&a, graph_.num_rows(), graph_.num_cols(), graph_.num_edges(),
                          offsets_.data(), indices_.data(), weights_.data(), CUSPARSE_INDEX_32I,
                          CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, type_of<T>),
        "cusparseCreateCsr");
    a_.reset(a);
  }

  Graph graph_;
  Problem problem_;
  Placed<T> x_, y_;
  Buffer<std::int32_t> offsets_;
  Buffer<VertexId> indices_;
  Buffer<T> weights_;
  Owner<cusparseSpMatDescr_t, cusparseDestroySpMat> a_;
  std::string name_;
  std::unique_ptr<Product<T> > product_;
};

}  // namespace

std::vector<std::string> cusparse_names() {
  std::vector<std::string> names;
  for (std::size_t i = 1; i <= std::size(algorithms); ++i) {
    names.push_back(beginning + std::to_string(i));
  }
  return names;
}

std::unique_ptr<Trial> prepare_cusparse(const Problem& problem, bool transposed) {
  switch (problem.precision) {
    case Precision::fp32: return std::make_unique<CusparseTrial<float> >(problem, transposed);
    case Precision::bf16: return std::make_unique<CusparseTrial<Bfloat16> >(problem, transposed);
    case Precision::fp16: return std::make_unique<CusparseTrial<Float16> >(problem, transposed);
    default: throw Error(ErrorCode::unsupported, "precisions of storage only", "cuSPARSE");
  }
}

#endif

}  // namespace tessera::bench
