package canonical

import (
	"bytes"
	"strconv"
	"testing"
)

// ids is a text of four million token ids in a thousand arrays.
func ids() []byte {
	var b bytes.Buffer
	b.WriteString("[")
	for i := range 1000 {
		b.WriteString("[0")
		for j := range 4095 {
			b.WriteString("," + strconv.Itoa((i*4096+j)*48271%151_936))
		}
		b.WriteString("],")
	}
	b.WriteString("0]")
	return b.Bytes()
}

func BenchmarkParse(b *testing.B) {
	text := ids()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("x.json", text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSHA256(b *testing.B) {
	text := ids()
	v, err := Parse("x.json", text)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.SHA256(InsertionOrder); err != nil {
			b.Fatal(err)
		}
	}
}
