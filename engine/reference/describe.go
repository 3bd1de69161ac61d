package reference

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"golang.org/x/sys/cpu"

	"github.com/plumbline-go/plumbline/engine"
)

// Describe implements [engine.Reference]. Version holds what bit identity
// depends on: GoMLX and its backend, the Go version with its experiments, the
// architecture, and the SIMD level of the backend's matrix products.
func (e *Engine) Describe() engine.Info {
	info := engine.Info{
		Name: "plumbline-reference",
		Version: fmt.Sprintf("gomlx %s, compute %s, backend %s, %s %s/%s, simd %s",
			moduleVersion("github.com/gomlx/gomlx"), moduleVersion("github.com/gomlx/compute"),
			e.set.backend, runtime.Version(), runtime.GOOS, runtime.GOARCH, simdLevel()) + e.scaleNote(),
		Layers:      engine.LayersFloat32,
		Logits:      engine.LogitsFloat32,
		Weights:     string(e.set.dtype),
		Activations: string(e.set.dtype),
		KVCache:     fmt.Sprintf("%s, capacity in steps of %d", e.set.dtype, e.set.capacityStep),
		DType:       e.set.dtype.described(),
		Model:       e.arch.Family,
	}
	if e.set.dtype == BFloat16 && e.set.fused {
		info.Activations += ", float32 inside attention"
	}
	if e.kv.quantised() {
		info.KVCache = e.kv.String()
	}
	if n, ok := e.weights.(interface{ Name() string }); ok {
		info.Model = n.Name()
	}
	return info
}

// moduleVersion is a dependency's version in this build, "unknown" where the
// build doesn't say (a test binary of another module manager, for one).
func moduleVersion(path string) string {
	bi, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range bi.Deps {
		if m.Path == path {
			if m.Replace != nil {
				return m.Replace.Version
			}
			return m.Version
		}
	}
	return "unknown"
}

// simdLevel is the level of the go backend's matrix products: they use SIMD
// only in builds with GOEXPERIMENT=simd, which the Go version names, and then
// the widest the CPU has.
func simdLevel() string {
	switch {
	case !strings.Contains(runtime.Version(), "simd") || runtime.GOARCH != "amd64":
		return "none"
	case cpu.X86.HasAVX512F:
		return "avx512"
	case cpu.X86.HasAVX2:
		return "avx2"
	}
	return "none"
}
