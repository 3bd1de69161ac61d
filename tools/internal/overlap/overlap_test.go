package overlap_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/plumbline-go/plumbline/tools/internal/overlap"
)

// maker makes numbers until it is told to stop; ran is the last one.
func maker(ran *int) func(each func(int) error) error {
	return func(each func(int) error) error {
		for n := range 100 {
			*ran = n
			if err := each(n); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestValuesAreTakenInOrder(t *testing.T) {
	var ran int
	var got []int
	require.NoError(t, overlap.Run(maker(&ran), func(n int) error { got = append(got, n); return nil }))
	require.Len(t, got, 100)
	for i, n := range got {
		require.Equal(t, i, n)
	}
}

// The maker is ahead when taking fails: it ends soon, and the first error counts.
func TestAnErrorOfTakingEndsTheMaker(t *testing.T) {
	broken := errors.New("broken")
	var ran, taken int
	require.Equal(t, broken, overlap.Run(maker(&ran), func(int) error {
		if taken++; taken == 3 {
			return broken
		}
		return nil
	}))
	require.Less(t, ran, 10)
	require.Equal(t, 3, taken)
}

func TestAnErrorOfTheMakerIsReturned(t *testing.T) {
	broken := errors.New("broken")
	taken := 0
	require.Equal(t, broken, overlap.Run(func(each func(int) error) error {
		if err := each(1); err != nil {
			return err
		}
		return broken
	}, func(int) error { taken++; return nil }))
	require.Equal(t, 1, taken)
}
