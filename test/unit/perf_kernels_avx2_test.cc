// The AVX2 kernels, for the tests in perf_kernels_test.cc and perf_values_test.cc.
#include "tools/perf/kernels_avx2.cc"  // NOLINT(bugprone-suspicious-include)
