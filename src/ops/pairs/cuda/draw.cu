// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_handles.hpp"
#include "cuda/launch.cuh"
#include "cuda/search.cuh"
#include "ops/pairs/kernels.hpp"

namespace tessera::ops::on_gpu {
namespace {

/// A list of pairs as kernels take it, and whether each is there both ways.
template <class Id>
struct List {
  Id* data = nullptr;
  std::int64_t stride = 0;
  std::int64_t count = 0;  ///< without those that are turned
  bool both_ways = false;

  __device__ Pair read(std::int64_t k) const { return {data[k], data[stride + k]}; }
  __device__ void write(std::int64_t k, Pair pair) const {
    data[k] = pair.source;
    data[stride + k] = pair.target;
    if (!both_ways) return;
    data[k + count] = pair.target;
    data[stride + k + count] = pair.source;
  }
};

List<const std::int32_t> list_of(const ConstOperand& pairs) {
  return {static_cast<const std::int32_t*>(pairs.data), pairs.stride, pairs.cols};
}

List<std::int32_t> written_list(const Operand& pairs, bool both_ways) {
  return {static_cast<std::int32_t*>(pairs.data), pairs.stride,
          both_ways ? pairs.cols / 2 : pairs.cols, both_ways};
}

__global__ void choose_each(const List<const std::int32_t> pairs, const PairBatches batches,
                            std::int64_t steps, std::uint64_t side,
                            const List<std::int32_t> chosen) {
  cuda::begin_overlapped();
  const std::int64_t i = cuda::thread_number();
  if (i >= batches.size) return;
  const std::int64_t step = batches.clock == nullptr ? batches.step : batches.clock->step;
  const std::int64_t epoch = step / steps;
  const IndexShuffle order = order_of(pairs.count, side, batches.seed, epoch);
  const std::int64_t place = (step - epoch * steps) * batches.size + i;
  chosen.write(i, pairs.read(static_cast<std::int64_t>(order(static_cast<std::uint64_t>(place)))));
}

__global__ void draw_each(const List<const std::int32_t> positives, const NonEdgeLists known,
                          const NegativeDraw draw, const List<std::int32_t> negatives) {
  cuda::begin_overlapped();
  const std::int64_t i = cuda::thread_number();
  if (i >= negatives.count) return;
  const std::uint32_t step =
      draw.clock == nullptr ? draw.step : static_cast<std::uint32_t>(draw.clock->step);
  const Random random(draw.seed, draw_of_negatives, step);
  const VertexId source = positives.data[i / draw.per_positive];
  negatives.write(i,
                  drawn_negative(known, draw.kind, source, random, static_cast<std::uint64_t>(i)));
}

constexpr unsigned threads = 128;

}  // namespace

void choose_pairs(ConstOperand pairs, const PairBatches& batches, Operand chosen, Device device,
                  Stream stream) {
  const cuda_backend::CurrentDevice current(device.index);
  cuda::launch_overlapped(choose_each, dim3(cuda::num_blocks(batches.size, threads)), threads,
                          stream, list_of(pairs), batches, batches_of(pairs.cols, batches.size),
                          IndexShuffle::square_side(static_cast<std::uint64_t>(pairs.cols)),
                          written_list(chosen, batches.both_ways));
}

void draw_negatives(ConstOperand positives, const NonEdgeLists& known, const NegativeDraw& draw,
                    Operand negatives, Device device, Stream stream) {
  const cuda_backend::CurrentDevice current(device.index);
  const auto list = written_list(negatives, draw.both_ways);
  cuda::launch_overlapped(draw_each, dim3(cuda::num_blocks(list.count, threads)), threads, stream,
                          list_of(positives), known, draw, list);
}

}  // namespace tessera::ops::on_gpu
