// SPDX-License-Identifier: Apache-2.0
#include "tessera/core/error.hpp"

#include "core/cuda_handles.hpp"
#include "core/cuda_timing.hpp"

namespace tessera::cuda_backend {
namespace {

/// The graph of `length` runs, or null where something in them cannot be captured.
cudaGraph_t captured(const OwnedStream& stream, FunctionRef<void(Stream)> enqueue, int length) {
  cuda_check(cudaStreamBeginCapture(stream.raw(), cudaStreamCaptureModeThreadLocal),
             "starting to capture");
  bool refused = false;
  try {
    for (int i = 0; i < length; ++i) enqueue(stream);
  } catch (const Error&) {
    refused = true;
  }
  cudaGraph_t graph = nullptr;
  refused = cudaStreamEndCapture(stream.raw(), &graph) != cudaSuccess || refused;
  if (!refused) return graph;
  cudaGetLastError();
  if (graph != nullptr) cudaGraphDestroy(graph);
  return nullptr;
}

double time_between(Event& begin, Event& end, cudaStream_t stream, FunctionRef<void()> enqueue) {
  begin.record(stream);
  enqueue();
  end.record(stream);
  end.wait();
  return end.microseconds_since(begin);
}

}  // namespace

std::string gpu_name(int index) {
  cudaDeviceProp properties{};
  cuda_check(cudaGetDeviceProperties(&properties, index), "asking for a GPU's name");
  return properties.name;
}

std::vector<double> time_runs(Device device, Stream given, FunctionRef<void(Stream)> enqueue,
                              const MeasureOptions& options) {
  const CurrentDevice current(device.index);
  // What the caller queued elsewhere must not run beside the measurement.
  cuda_check(cudaDeviceSynchronize(), "waiting for the GPU");
  const OwnedStream own;
  const Stream stream = given.handle != nullptr ? given : Stream(own);
  auto* const raw = static_cast<cudaStream_t>(stream.handle);
  Event begin, end;
  for (int i = 0; i < options.warmups; ++i) enqueue(stream);
  cuda_check(cudaStreamSynchronize(raw), "warming up");
  return repeat_timed(options,
                      [&] { return time_between(begin, end, raw, [&] { enqueue(stream); }); });
}

double time_chain(Device device, FunctionRef<void(Stream)> enqueue, int length) {
  constexpr int warmups = 3;
  const CurrentDevice current(device.index);
  cuda_check(cudaDeviceSynchronize(), "waiting for the GPU");
  const OwnedStream stream;
  cudaGraph_t const graph = captured(stream, enqueue, length);
  if (graph == nullptr) return 0;
  CapturedWork work(graph);
  for (int i = 0; i < warmups; ++i) work.launch(stream.raw());
  cuda_check(cudaStreamSynchronize(stream.raw()), "warming up");
  Event begin, end;
  MeasureOptions options;
  options.repeats = 20;
  options.min_seconds = 0;
  const std::vector<double> times = repeat_timed(options, [&] {
    return time_between(begin, end, stream.raw(), [&] { work.launch(stream.raw()); });
  });
  return summarise(times).median_us / length;
}

}  // namespace tessera::cuda_backend
