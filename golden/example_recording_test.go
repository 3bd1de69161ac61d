package golden_test

import (
	"fmt"
	"os"

	"github.com/plumbline-go/plumbline/golden"
)

// A recording whose manifest is not yet written is held to the form of one.
func ExampleNewRecording() {
	_, err := golden.NewRecording(os.DirFS("qwen2-trained"), &golden.Recording{Set: "mine", Schema: "my-goldens"})
	fmt.Println(err)
	// Output: golden: manifest mine.manifest.json: schema: got my-goldens, want plumbline-recording-v1
}
