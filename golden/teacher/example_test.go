package teacher_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/plumbline-go/plumbline/golden/teacher"
)

func ExampleVerify() {
	const dir = "testdata/case/"
	v, err := teacher.Verify(context.Background(), teacher.Files{Summary: dir + "summary.json", Target: dir + "target.bin", Evidence: dir + "evidence.json"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(v.Plan.Points), "rows of", v.Plan.Vocab, "logits,", v.Target.Bytes, "bytes, by", v.Producer)
	// Output: 9 rows of 37 logits, 1902 bytes, by made up
}

func ExampleParse() {
	_, err := teacher.Parse("summary.json", []byte(`{"executed": false, "structural_target_receipt": {}}`))
	var refused *teacher.RefusedError
	if errors.As(err, &refused) {
		for _, p := range refused.Problems {
			fmt.Printf("%s, ours %t: %v\n", p.Rule, p.Own(), &p)
		}
	}
	// Output:
	// execution, ours false: teacher: summary.json: executed: got false, want true
	// execution, ours false: teacher: summary.json: structural_target_receipt: got {}, want a receipt
	// fields, ours true: teacher: summary.json: prediction_plan_sha256: got no such key, want one (a rule of our own: the script ends with a traceback)
	// fields, ours true: teacher: summary.json: reference_input: got no such key, want one (a rule of our own: the script ends with a traceback)
}
