package teacher

import (
	"os"
	"testing"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// largePlan is a summary with 1,000 examples of 4,096 tokens, three in four with a
// teacher-forced point in the middle, the others prompts; PLUMBLINE_BENCH_PLAN names
// a file to keep it in, for another reader to be measured on.
func largePlan(b *testing.B) []byte {
	const examples, length, vocab = 1000, 4096, 151_936
	v := readCase(b, caseSummary)
	var texts, receipts, points, prompts []canonical.Value
	h := newHasher()
	sum := func(s Sum, err error) canonical.Value {
		if err != nil {
			b.Fatal(err)
		}
		return canonical.String(s.String())
	}
	for i := range examples {
		id := "example/" + string(rune('a'+i%26)) + canonical.Int(int64(i)).String()
		ids, small := make([]int, length), make([]int64, length)
		for j := range ids {
			ids[j] = (i*length + j) * 48_271 % vocab
			small[j] = int64(ids[j])
		}
		texts = append(texts, object("stable_id", id, "render_mode", "completed_transcript", "token_ids", canonical.Ints(small)))
		receipts = append(receipts, object("stable_id", id, "render_mode", "completed_transcript", "token_count", canonical.Int(length), "token_ids_sha256", sum(h.tokens(id, ids))))
		n := length / 2
		kind := object("kind", "teacher_forced", "target_token_index", canonical.Int(int64(n)), "target_token_id", canonical.Int(small[n]))
		if i%4 == 3 {
			n, kind = length, object("kind", "generation_next")
		}
		prefix := sum(h.sum([]byte(prefixFrame), ids[:n]))
		points = append(points, object("point_ordinal", canonical.Int(int64(i)), "stable_id", id, "kind", kind, "prefix_token_count", canonical.Int(int64(n)), "prefix_token_ids_sha256", prefix))
		if i%4 == 3 {
			prompts = append(prompts, object("stable_id", id, "prefix_token_count", canonical.Int(int64(n)), "prefix_token_ids_sha256", prefix))
		}
	}
	put := func(path string, x canonical.Value) {
		v = replaced(v, path, func(canonical.Value) canonical.Value { return x })
	}
	put(inInput+"/vocabulary_size", canonical.Int(vocab))
	put(inInput+"/examples", canonical.Array(texts...))
	put(inInput+"/target_limits", value(`{"max_vocabulary_size":262144,"max_prediction_rows":1024,"max_target_bytes":1073741824,"top_k":8}`))
	put(inPlan+"/limits", value(`{"max_examples":1000,"max_tokens":4096000,"max_prediction_points":1024,"max_greedy_prompts":256}`))
	put(inPlan+"/total_example_count", canonical.Int(examples))
	put(inPlan+"/total_token_count", canonical.Int(examples*length))
	put(inPlan+"/examples", canonical.Array(receipts...))
	put(inPlan+"/prediction_points", canonical.Array(points...))
	put(inPlan+"/greedy_prompts", canonical.Array(prompts...))
	data, err := rehashed(v).Append(nil, canonical.InsertionOrder)
	if err != nil {
		b.Fatal(err)
	}
	if path := os.Getenv("PLUMBLINE_BENCH_PLAN"); path != "" {
		if err := os.WriteFile(path, data, 0o666); err != nil {
			b.Fatal(err)
		}
	}
	return data
}

// BenchmarkPlan parses and checks a plan of four million tokens.
func BenchmarkPlan(b *testing.B) {
	data := largePlan(b)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("plan.json", data); err != nil {
			b.Fatal(err)
		}
	}
}
