package reference

import (
	"fmt"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/tensors"
)

// DType is the arithmetic of an engine.
type DType string

// The arithmetics on offer.
const (
	Float32 DType = "float32"
	Float64 DType = "float64"
	// BFloat16 is what transformers computes with dtype bfloat16 and eager attention
	// ([WithFusedAttention] has the other): values are float32, rounded to bfloat16
	// wherever that run holds one in it. The weights are rounded too, which changes
	// nothing in a bfloat16 checkpoint.
	BFloat16 DType = "bfloat16"
)

// known reports whether there is such an arithmetic.
func (d DType) known() bool { return d == Float32 || d == Float64 || d == BFloat16 }

// gomlx is the dtype of the tensors.
func (d DType) gomlx() dtypes.DType {
	if d == Float64 {
		return dtypes.Float64
	}
	return dtypes.Float32
}

// times is a product in the arithmetic.
func (d DType) times(a, b float64) float64 {
	if d == Float64 {
		return a * b
	}
	return float64(float32(a) * float32(b))
}

// device puts host values into tensors of one dtype on one backend.
type device struct {
	backend compute.Backend
	dtype   DType
}

type real interface{ float32 | float64 }

// upload makes a tensor of the device's dtype with the given dimensions from
// data, in shared memory where the backend has it, so that no second copy
// remains. float64 values are rounded once when the dtype is float32.
func upload[T real](d device, data []T, dims ...int) (*tensors.Tensor, error) {
	t, err := tensors.FromShapeForBackend(d.backend, 0, shapes.Make(d.dtype.gomlx(), dims...))
	if err != nil {
		return nil, fmt.Errorf("reference: tensor %v: %w", dims, err)
	}
	if t.Size() != len(data) {
		return nil, fmt.Errorf("reference: tensor %v: got %d values, want %d", dims, len(data), t.Size())
	}
	err = t.MutableFlatData(func(flat any) {
		switch dst := flat.(type) {
		case []float32:
			for i, v := range data {
				dst[i] = float32(v)
			}
		case []float64:
			for i, v := range data {
				dst[i] = float64(v)
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reference: tensor %v: %w", dims, err)
	}
	return t, nil
}

// zeros makes a tensor of zeros.
func (d device) zeros(dims ...int) (*tensors.Tensor, error) {
	t, err := tensors.FromShapeForBackend(d.backend, 0, shapes.Make(d.dtype.gomlx(), dims...))
	if err != nil {
		return nil, fmt.Errorf("reference: tensor %v: %w", dims, err)
	}
	return t, nil
}

// index makes an int32 tensor with the given dimensions; none gives a scalar.
func (d device) index(values []int, dims ...int) (*tensors.Tensor, error) {
	t, err := tensors.FromShapeForBackend(d.backend, 0, shapes.Make(dtypes.Int32, dims...))
	if err != nil {
		return nil, fmt.Errorf("reference: index tensor %v: %w", dims, err)
	}
	err = tensors.MutableFlatData(t, func(flat []int32) {
		for i, v := range values {
			flat[i] = int32(v)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reference: index tensor %v: %w", dims, err)
	}
	return t, nil
}

// download copies n values of t, from value offset on, into float64: exact for
// all dtypes.
func download(t *tensors.Tensor, offset, n int) ([]float64, error) {
	out := make([]float64, n)
	var got int
	err := t.ConstFlatData(func(flat any) {
		switch src := flat.(type) {
		case []float32:
			if got = len(src); got >= offset+n {
				for i, v := range src[offset : offset+n] {
					out[i] = float64(v)
				}
			}
		case []float64:
			if got = len(src); got >= offset+n {
				copy(out, src[offset:offset+n])
			}
		case []int32: // indices
			if got = len(src); got >= offset+n {
				for i, v := range src[offset : offset+n] {
					out[i] = float64(v)
				}
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("reference: reading a tensor: %w", err)
	}
	if got < offset+n {
		return nil, fmt.Errorf("reference: reading a tensor: got %d values, want %d", got, offset+n)
	}
	return out, nil
}

// described is what [Engine.Describe] says of the arithmetic.
func (d DType) described() string {
	if d == BFloat16 {
		return "bfloat16 (emulated)"
	}
	return string(d)
}
