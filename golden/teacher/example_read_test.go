package teacher_test

import (
	"fmt"

	"github.com/plumbline-go/plumbline/golden/teacher"
)

func ExampleRead() {
	plan, err := teacher.Read("testdata/case/summary.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(plan.Points), "points, vocabulary", plan.Vocab)
	// Output: 9 points, vocabulary 37
}
