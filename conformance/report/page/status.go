package page

import "github.com/plumbline-go/plumbline/conformance"

// status is how an outcome looks: a word and a sign beside the colour.
type status struct{ Word, Sign, Class string }

func statusOf(s conformance.Status) status {
	switch s {
	case conformance.Pass:
		return status{"pass", "✓", "ok"}
	case conformance.Fail:
		return status{"fail", "✗", "bad"}
	case conformance.Error:
		return status{"error", "!", "bad"}
	case conformance.Unsupported:
		return status{"not offered", "–", "none"}
	case conformance.Skip:
		return status{"skipped", "○", "none"}
	}
	return status{visible(string(s), 40), "?", "none"}
}

func conclusionOf(c conformance.Conclusion) status {
	switch c {
	case conformance.Conforms:
		return status{"Conforms", "✓", "ok"}
	case conformance.Fails:
		return status{"Fails", "✗", "bad"}
	case conformance.Partial:
		return status{"Partial", "◐", "part"}
	case conformance.NothingJudged:
		return status{"Nothing judged", "○", "none"}
	}
	return status{visible(string(c), 40), "?", "none"}
}

// kindText says what a kind of failure means.
func kindText(k conformance.Kind) string {
	switch k {
	case conformance.KindLayer:
		return "one layer introduces the error"
	case conformance.KindAllLayers:
		return "every layer introduces error"
	case conformance.KindInput:
		return "the input is wrong: token or embedding, no layer"
	case conformance.KindDump:
		return "a bad row in the dump; the engine went on healthy"
	case conformance.KindHead:
		return "final norm or output projection"
	case conformance.KindFormat:
		return "a file or an answer that can't be read"
	case conformance.KindProvenance:
		return "well formed, but of another prompt or model"
	}
	return ""
}
