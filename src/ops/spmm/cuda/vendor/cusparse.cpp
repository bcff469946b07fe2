// SPDX-License-Identifier: Apache-2.0
#include "cuda/cusparse.hpp"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "ops/spmm/cuda/edge_weights.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/rows/matrix.hpp"
#include "ops/spmm/cuda/vendor/cost.hpp"

/// The vendor's library as one of the candidates of plans that admit sums which depend on timing:
/// even the algorithm that promises the same bits in every run gives others on graphs with hubs.
namespace tessera::ops {
namespace {

struct Algorithm {
  const char* name;
  cusparseSpMMAlg_t id;
  bool adds_in_fp32;  ///< features of 16 bits, too
};

constexpr std::array<Algorithm, 3> algorithms = {{
    {"spmm/cuda/cusparse_alg1", CUSPARSE_SPMM_CSR_ALG1, false},
    {"spmm/cuda/cusparse_alg2", CUSPARSE_SPMM_CSR_ALG2, false},
    {"spmm/cuda/cusparse_alg3", CUSPARSE_SPMM_CSR_ALG3, true},
}};

/// Preprocessed once. cuSPARSE wants a value for every edge: its whole weight. It reads beyond, or
/// wrongly, rows that are not on 16-byte boundaries. What preprocessing found lies in cuSPARSE's
/// buffer, which no run can bring: runs follow one another, whatever their workspace.
class CusparseSpmm final : public PreparedSpmm {
 public:
  CusparseSpmm(const SpmmProblem& problem, cusparseSpMMAlg_t algorithm)
      : problem_(problem),
        algorithm_(algorithm),
        matrix_(problem),
        handle_(cuda::make_cusparse_handle()) {
    const cuda::DeviceRows& rows = matrix_.rows();
    const Place place = problem.place();
    const auto element = static_cast<std::int64_t>(bytes_per_element(problem.precision));
    weights_ = Buffer<std::byte>(rows.num_edges * element, place);
    write_edge_weights(matrix_.launch({}), problem.precision, weights_.data(), place.stream);
    cuda::cusparse_check(
        cusparseSetStream(handle_.get(), static_cast<cudaStream_t>(place.stream.handle)),
        "cusparseSetStream");
    if (rows.wide_offsets.size() > 0) copy_wide_indices();
    make_descriptor();

    // Preprocessing looks at the shapes of the operands alone.
    const void* const somewhere = weights_.data();
    const cuda::DenseMatrix x = dense(somewhere, rows.num_cols, problem.features);
    const cuda::DenseMatrix y = dense(somewhere, rows.num_rows, problem.features);
    std::size_t bytes = 0;
    cuda::cusparse_check(
        cusparseSpMM_bufferSize(handle_.get(), plain, plain, &one, descriptor_.get(), x.get(),
                                &zero, y.get(), CUDA_R_32F, algorithm_, &bytes),
        "cusparseSpMM_bufferSize");
    workspace_ =
        Buffer<std::byte>(static_cast<std::int64_t>(std::max<std::size_t>(bytes, 16)), place);
    cuda::cusparse_check(
        cusparseSpMM_preprocess(handle_.get(), plain, plain, &one, descriptor_.get(), x.get(),
                                &zero, y.get(), CUDA_R_32F, algorithm_, workspace_.data()),
        "cusparseSpMM_preprocess");
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView&) const override {
    const cuda::DenseMatrix x =
        cuda::dense_matrix(call.x.data, call.x.rows, call.x.cols, call.x.stride, call.x.type);
    const cuda::DenseMatrix y =
        cuda::dense_matrix(call.y.data, call.y.rows, call.y.cols, call.y.stride, call.y.type);
    cuda::cusparse_check(cusparseSetStream(handle_.get(), static_cast<cudaStream_t>(stream.handle)),
                         "cusparseSetStream");
    cuda::cusparse_check(cusparseSpMM(handle_.get(), plain, plain, &one, descriptor_.get(), x.get(),
                                      &zero, y.get(), CUDA_R_32F, algorithm_, workspace_.data()),
                         "cusparseSpMM");
  }

 private:
  static constexpr cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE;
  static constexpr float one = 1;
  static constexpr float zero = 0;

  cuda::DenseMatrix dense(const void* data, std::int64_t rows, std::int64_t cols) const {
    return cuda::dense_matrix(data, rows, cols, cols, storage_of(problem_.precision));
  }

  /// Beyond 2^31 edges cuSPARSE wants offsets and indices of 64 bits.
  void copy_wide_indices() {
    const Graph& graph = problem_.graph;
    const SharedArray<VertexId>& narrow =
        problem_.pass == SpmmPass::forward ? graph.col_indices() : graph.csc().row_indices;
    const std::vector<std::int64_t> wide(narrow.begin(), narrow.end());
    wide_indices_ = cuda::to_device(std::span<const std::int64_t>(wide), problem_.place());
  }

  void make_descriptor() {
    const cuda::DeviceRows& rows = matrix_.rows();
    const bool wide = wide_indices_.size() > 0;
    const void* const offsets = wide ? static_cast<const void*>(rows.wide_offsets.data())
                                     : static_cast<const void*>(rows.narrow_offsets.data());
    const void* const indices = wide ? static_cast<const void*>(wide_indices_.data())
                                     : static_cast<const void*>(rows.indices.data());
    const cusparseIndexType_t type = wide ? CUSPARSE_INDEX_64I : CUSPARSE_INDEX_32I;
    cusparseSpMatDescr_t descriptor = nullptr;
    cuda::cusparse_check(
        cusparseCreateCsr(&descriptor, rows.num_rows, rows.num_cols, rows.num_edges,
                          const_cast<void*>(offsets), const_cast<void*>(indices), weights_.data(),
                          type, type, CUSPARSE_INDEX_BASE_ZERO,
                          cuda::cuda_type(storage_of(problem_.precision))),
        "cusparseCreateCsr");
    descriptor_.reset(descriptor);
  }

  SpmmProblem problem_;
  cusparseSpMMAlg_t algorithm_;
  DeviceMatrix matrix_;
  cuda::CusparseHandle handle_;
  cuda::SparseMatrix descriptor_;
  Buffer<std::int64_t> wide_indices_;
  Buffer<std::byte> weights_;
  mutable Buffer<std::byte> workspace_;
};

std::string why_not(const SpmmProblem& problem, bool adds_in_fp32) {
  const bool narrow = problem.precision != Precision::fp32;
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (!problem.is_plain()) return "no epilogue";
  if (problem.reduction != Reduction::sum) return "sums only";
  if (problem.heads > 1) return "several values per edge";
  if (problem.edge_values_expected) return "values of the graph only";
  if (!problem.aligned) return "rows on 16-byte boundaries only";
  if (problem.occasional) return "weights of its own, for occasional runs";
  if (problem.edge_features) return "features of edges, not of vertices";
  if (narrow && !adds_in_fp32) return "adds parts of a row in 16 bits";
  const auto element = static_cast<std::int64_t>(bytes_per_element(problem.precision));
  if (problem.features == 0 || problem.features * element % 16 != 0) {
    return "rows of features that do not fill 16 bytes";
  }
  if (problem.features > max_features_of_rows) return "too many features";
  const Graph& graph = problem.graph;
  if (graph.num_edges() == 0) return "no edges";
  if (narrow && (graph.has_values() || graph.has_row_scale() || graph.has_col_scale())) {
    return "would round the weights to 16 bits";
  }
  if (has_subnormal_weights(graph)) return "would take the smallest weights for 0";
  return {};
}

template <std::size_t index>
SpmmKernel kernel_of_algorithm() {
  SpmmKernel kernel;
  kernel.info.name = algorithms[index].name;
  kernel.info.description = fmt::format("cuSPARSE, CSR, algorithm {}", index + 1);
  kernel.info.op = "spmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.info.deterministic = false;
  kernel.why_not = [](const SpmmProblem& problem) {
    return why_not(problem, algorithms[index].adds_in_fp32);
  };
  kernel.predicted_us = [](const SpmmProblem& problem) {
    return predict_cusparse_us(problem, device_traits(problem.device));
  };
  kernel.prepare = [](const SpmmProblem& problem) -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<CusparseSpmm>(problem, algorithms[index].id);
  };
  return kernel;
}

}  // namespace

void append_cusparse_kernels(std::vector<SpmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (table.push_back(kernel_of_algorithm<i>()), ...);
  }
  (std::make_index_sequence<algorithms.size()>{});
}

}  // namespace tessera::ops
