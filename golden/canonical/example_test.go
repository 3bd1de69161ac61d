package canonical_test

import (
	"fmt"
	"os"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

func Example() {
	v, err := canonical.Parse("plan.json", []byte(`{ "b": 1.50, "a": [1E3, -0, "<\u00e9>"] }`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = v.Write(os.Stdout, canonical.InsertionOrder)
	fmt.Println()
	_ = v.Write(os.Stdout, canonical.SortedKeys)
	fmt.Println()
	sum, _ := v.SHA256(canonical.InsertionOrder)
	fmt.Printf("%x\n", sum)
	// Output:
	// {"b":1.5,"a":[1000.0,0,"<é>"]}
	// {"a":[1000.0,0,"<é>"],"b":1.5}
	// fb168207ebd1a70871b8ccdd24cb7f6ac8fcac251c06774bc7dc5b3a3ae2c52f
}
