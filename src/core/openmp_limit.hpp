// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera {

/// While one of these lives, OpenMP allows one thread to other libraries that this thread calls.
/// Our own parallel loops keep what they were allowed before.
class OneOpenMpThread {
 public:
  OneOpenMpThread() noexcept;
  ~OneOpenMpThread();
  OneOpenMpThread(const OneOpenMpThread&) = delete;
  OneOpenMpThread& operator=(const OneOpenMpThread&) = delete;

 private:
  int openmp_before_;
  int ours_before_;
};

}  // namespace tessera
