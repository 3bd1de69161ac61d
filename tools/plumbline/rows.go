package main

import (
	"fmt"
	"math"
)

// asFloat32 hands rows to write as float32, one at a time in the same memory,
// which loses nothing of a float32 run. A value that isn't finite as float32
// either is an error: whoever reads the dump would refuse it.
func asFloat32(rows [][]float64, write func([]float32) error) error {
	var row []float32
	for i, r := range rows {
		row = append(row[:0], make([]float32, len(r))...)
		for j, x := range r {
			row[j] = float32(x)
			if y := float64(row[j]); math.IsNaN(y) || math.IsInf(y, 0) {
				return fmt.Errorf("row %d: element %d: got %v, want a finite float32", i, j, x)
			}
		}
		if err := write(row); err != nil {
			return err
		}
	}
	return nil
}
