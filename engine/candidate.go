package engine

import "context"

// Case is one prompt, as token ids and as the text they came from.
type Case struct {
	// Name identifies the case; in a dump folder it is the files' base name.
	Name string
	// Text is the whole chat-templated prompt, before tokenisation. Its
	// FNV-1a 64 is the fingerprint that a dump of this case must carry.
	Text string
	// TokenIDs are the prompt's ids, at least one.
	TokenIDs []int
	// Stop are the ids that end an output; none when nil.
	Stop []int
	// Why says what the case has power to show; empty for a user's own case.
	Why string
}

// Row element types a side may declare for its layer and logit dumps.
const (
	LayersFloat32    = "f32"         // float32 rows
	LayersInt8Scaled = "int8-scaled" // int8 codes with one m*2^e scale per row
	LogitsFloat32    = "f32"
	LogitsInt32      = "i32" // integer logits without a scale
)

// Info is what a side declares about itself (engine.json in a dump folder).
// Empty fields were not declared.
type Info struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// Layers is LayersFloat32 or LayersInt8Scaled.
	Layers string `json:"layers,omitempty"`
	// Logits is LogitsFloat32 or LogitsInt32.
	Logits string `json:"logits,omitempty"`
	// Weights, Activations and KVCache name the arithmetic, e.g. "int8".
	Weights     string `json:"weights,omitempty"`
	Activations string `json:"activations,omitempty"`
	KVCache     string `json:"kv_cache,omitempty"`
	// DType is the arithmetic of a float engine, e.g. "float32".
	DType string `json:"dtype,omitempty"`
	// Model is the side's own name for its checkpoint.
	Model string `json:"model,omitempty"`
	// Features are what the side claims to offer, as package conformance names them;
	// none is no claim.
	Features []string `json:"features,omitempty"`
}

// Request asks a candidate for one case.
type Request struct {
	Case Case
	// DecodeSteps is how many tokens to decode greedily after the prompt; 0
	// leaves it to the candidate.
	DecodeSteps int
	// NoLogits says that nobody looks at tokens and logits: a candidate may leave
	// the decode out.
	NoLogits bool
	// Probes are the places in the model that are wanted beside the dumps; none
	// leaves it to the candidate.
	Probes []Probe
}

// Response is a candidate's answer. A nil source means that the candidate
// does not offer it, which is not a fault by itself.
type Response struct {
	// Layers is the last-token residual capture.
	Layers RowSource
	// Logits is the logit dump, one row per output token.
	Logits LogitSource
	// Probes are places in the model at every position.
	Probes ProbeSource
	// OutputIDs are the tokens that were chosen, when the side told them.
	OutputIDs []int
	// PromptIDs are the ids that the side ran as its prompt, nil when it didn't
	// tell. A side that is handed token ids runs those.
	PromptIDs []int
	// Files names where the answer came from, for messages; may be empty.
	Files ResponseFiles
	// Notes say what was seen in the answer that is no fault, such as bytes
	// behind the last row of an int8 layer dump; one line each.
	Notes []string

	release func() // gives back what the answer was kept in; may be nil
}

// ResponseFiles names the files behind a response; empty when there are none.
type ResponseFiles struct {
	Layers, Logits, Probes string
}

// Close releases the files behind the response.
func (r *Response) Close() error {
	if r.release != nil {
		defer r.release()
	}
	var first error
	for _, c := range []interface{ Close() error }{r.Layers, r.Logits, r.Probes} {
		if c == nil {
			continue
		}
		if err := c.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// CaptureModeIncremental is the only capture mode a residual capture may
// declare: token by token with a KV cache.
const CaptureModeIncremental = 1

// CaptureHeader is what a residual capture declares about itself.
type CaptureHeader struct {
	// Rows is layers + 1.
	Rows int
	// Width is the hidden size.
	Width int
	// Fingerprint is the FNV-1a 64 of the templated prompt.
	Fingerprint uint64
	// Mode is CaptureModeIncremental in a valid capture.
	Mode uint64
}

// RowSource yields a residual capture row by row, so that a capture of any
// size is compared in the memory of a few rows.
type RowSource interface {
	Header() CaptureHeader
	// Row reads row i into dst (length Width) and returns the row's
	// quantisation step: the value of one int8 code, or 0 for a float row.
	Row(i int, dst []float64) (step float64, err error)
	Close() error
}

// LogitSource yields a logit dump row by row.
type LogitSource interface {
	// Shape returns the number of rows (output tokens) and the vocabulary.
	Shape() (rows, vocab int)
	// Row reads row i into dst (length vocab).
	Row(i int, dst []float64) error
	Close() error
}

// Candidate is an engine under test.
//
// Run may return a [*MalformedError] (the answer is broken, which is the
// candidate's fault), an [*UnsupportedError] (not offered), or any other error
// (no answer). It must honour ctx.
type Candidate interface {
	Info(ctx context.Context) (Info, error)
	Run(ctx context.Context, req Request) (*Response, error)
}

// SelfTimed marks a candidate that bounds the work on a case by itself, and that
// may let a request wait for its turn: a caller's own deadline per case would
// count the waiting, and doesn't apply to its Run.
type SelfTimed interface {
	TimesItself()
}

// CaseLister is a candidate that brings its own cases, as a dump folder does.
type CaseLister interface {
	// Cases lists the cases in name order. A case that is broken is listed
	// too: running it gives its error, and the others are not lost.
	Cases(ctx context.Context) ([]Case, error)
}
