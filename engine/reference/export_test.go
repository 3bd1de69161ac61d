//go:build unix

package reference

// CPUSeconds is for the benchmarks of package reference_test.
var CPUSeconds = cpuSeconds
