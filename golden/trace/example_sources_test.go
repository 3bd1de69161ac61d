package trace_test

import (
	"fmt"
	"log"
	"testing/fstest"

	"github.com/plumbline-go/plumbline/golden/trace"
)

func ExampleReadSourcesFS() {
	files := fstest.MapFS{"texts.jsonl": {Data: []byte(`{"id": "p1", "domain": "prose", "text": "some text"}` + "\n")}}
	s, err := trace.ReadSourcesFS(files, "texts.jsonl", trace.Plan{}, trace.SourceOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Sources[0].ID)
	// Output: prose/p1
}
