// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/core/measure.hpp"

namespace tessera {

/// Times runs until the options are content. `timed_run` returns microseconds.
std::vector<double> repeat_timed(const MeasureOptions& options, FunctionRef<double()> timed_run);

/// As `measure_on`, on a stream of the caller's, such as the one that a plan was made on. On the
/// CPU, and without a handle, it is `measure_on`.
Timing measure_on_stream(Device device, Stream stream, FunctionRef<void(Stream)> enqueue,
                         const MeasureOptions& options);

/// What measurements need of a GPU. As in cuda_backend.hpp, a build contains one of two
/// implementations.
namespace cuda_backend {

/// What the driver calls a GPU.
std::string gpu_name(int index);

/// Microseconds between an event before and one after each run, on this stream or, where it has no
/// handle, on one of its own.
std::vector<double> time_runs(Device device, Stream stream, FunctionRef<void(Stream)> enqueue,
                              const MeasureOptions& options);

/// Microseconds of one run inside a captured chain of `length`; 0 where it cannot be captured.
double time_chain(Device device, FunctionRef<void(Stream)> enqueue, int length);

}  // namespace cuda_backend
}  // namespace tessera
