package quant_test

import (
	"context"
	"fmt"

	"github.com/plumbline-go/plumbline/engine"
	"github.com/plumbline-go/plumbline/engine/internal/seeded"
	"github.com/plumbline-go/plumbline/engine/quant"
)

// The yardstick of a comparison, and a candidate that is not the yardstick.
func Example() {
	weights, err := seeded.Weights() // or a reference's Weights: quant.New(ref)
	if err != nil {
		fmt.Println(err)
		return
	}
	cache := quant.NewCache()
	yardstick := quant.FromWeights(weights, quant.WithCache(cache))
	scheme := engine.Scheme{RowsInt8: true}
	rows, err := yardstick.Emulate(context.Background(), scheme, []int{5, 17, 300})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(rows), "rows of", len(rows[0]))

	candidate := quant.FromWeights(weights, quant.WithCache(cache), quant.KVCacheInt8()).Candidate(scheme)
	info, err := candidate.Info(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(info.Layers, info.KVCache)
	// Output:
	// 29 rows of 64
	// int8-scaled int8
}
