package engine_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/engine"
)

// counting makes a tensor on every call and counts the calls.
type counting struct{ calls int }

func (c *counting) Arch() engine.Arch { return engine.Arch{Family: "toy"} }

func (c *counting) Tensor(name string) (engine.Tensor, error) {
	c.calls++
	if name == "missing" {
		return engine.Tensor{}, errors.New("no such tensor")
	}
	return engine.Tensor{Shape: []int{1}, Data: []float32{float32(c.calls)}}, nil
}

func TestResidentReadsEachTensorOnce(t *testing.T) {
	c := &counting{}
	w := engine.Resident(c)
	first, err := w.Tensor("a")
	require.NoError(t, err)
	again, err := w.Tensor("a")
	require.NoError(t, err)
	assert.Same(t, &first.Data[0], &again.Data[0])
	other, err := w.Tensor("b")
	require.NoError(t, err)
	assert.NotSame(t, &first.Data[0], &other.Data[0])
	assert.Equal(t, 2, c.calls)
	_, err = w.Tensor("missing")
	require.Error(t, err)
	assert.Equal(t, "toy", w.Arch().Family)
}
