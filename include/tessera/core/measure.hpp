// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "tessera/core/device.hpp"
#include "tessera/core/parallel.hpp"

/// How long things take, and how long they must take at least.
namespace tessera {

/// Runs from the moment it is made.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double microseconds() const { return seconds() * 1e6; }
  void restart() { start_ = std::chrono::steady_clock::now(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Launching takes a large part of anything shorter.
constexpr double chained_below_us = 20;

struct MeasureOptions {
  int warmups = 2;           ///< runs whose time is thrown away
  int repeats = 10;          ///< timed runs, at least
  double min_seconds = 0.2;  ///< go on until this much time was measured
  double max_seconds = 10;   ///< stop after this much, once three runs were timed
  int max_repeats = 1 << 14;
  /// On a GPU: where one run takes less than `chain_below_us`, also time this many in a row inside
  /// one captured graph. 0: never.
  int chain = 0;
  double chain_below_us = chained_below_us;
};

/// The times of single runs, in microseconds.
struct Timing {
  double median_us = 0;
  double min_us = 0;
  double worst_us = 0;
  double mean_us = 0;
  std::int64_t repeats = 0;
  double chain_us = 0;  ///< of one run in a captured chain; 0 where none was timed
};

/// Sums up samples; none give zeros. Of an even number the median is the mean of the middle two.
Timing summarise(std::vector<double> samples_us);

/// Times `function` run after run with warm caches, as it runs inside a training loop.
Timing measure(FunctionRef<void()> function, const MeasureOptions& options = {});

/// Times what `enqueue` queues on the stream it is given, which belongs to the measurement. On a
/// GPU an event before and one after each run measure it, and the next run waits for the last one.
/// Where work cannot be captured there is no `chain_us`. On the CPU this is `measure`.
Timing measure_on(Device device, FunctionRef<void(Stream)> enqueue,
                  const MeasureOptions& options = {});

/// One measurement as every tool of this project writes and reads it.
struct Measurement {
  std::string op;
  std::string graph;
  std::int64_t features = 0;
  std::string precision;
  std::string device;
  int threads = 0;
  std::string kernel;
  double median_us = 0;
  double min_us = 0;
  double worst_us = 0;
  double chain_us = 0;   ///< of one run in a captured chain; 0 where none was timed
  double floor_us = 0;   ///< see `floor_us` below
  double max_error = 0;  ///< largest error found by the check before the measurement
  std::string plan;      ///< why this kernel ran, in one line
};

/// Bytes per second that `num_threads()` threads move when they copy arrays too large for any
/// cache: what was read plus what was written. Measured at the first call for each number of
/// threads, then remembered.
double copy_bandwidth();

/// The same of a device's memory.
double copy_bandwidth(Device device);

/// The time that moving `bytes` to and from memory takes at the bandwidth of a plain copy. No
/// kernel whose data lies in memory can be faster; one whose data stays in a cache can.
double floor_us(std::int64_t bytes, Device device = {});

}  // namespace tessera
