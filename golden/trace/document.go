package trace

import (
	"slices"

	"github.com/plumbline-go/plumbline/golden/canonical"
)

// SchemaVersion is the schema of the documents that this package reads and writes.
const SchemaVersion = 1

// Head is a document without its sources and what is made of them.
type Head struct {
	// CapturedAt is a time; documents that are to be the same carry the same one.
	CapturedAt string
	Model      Model
	Tokenizer  TokenizerContract
	Sources    SourceContract
	Trace      Contract
	Execution  Execution
	// ClaimBoundary says in sentences what a trace doesn't show.
	ClaimBoundary []string
}

// Document is a trace.
type Document struct {
	Head
	Traced  []SourceTrace
	Summary Summary
}

// Model names the checkpoint.
type Model struct {
	Repo, Revision, CheckpointIdentity, Architecture, DType string
	// RevisionContract is an object of the caller's: how the files were had.
	RevisionContract canonical.Value
	Files            []FileIdentity
}

// FileIdentity is a file of the checkpoint.
type FileIdentity struct {
	Name   string
	Bytes  int64
	SHA256 string
}

// TokenizerContract describes the tokenizer and the conditions.
type TokenizerContract struct {
	// Length counts all tokens, VocabSize those that weren't added.
	Length, VocabSize int
	SpecialIDs        []int
	// Pad is the id that rows are padded with; nil without one.
	Pad        *int
	Conditions []Condition
}

// SourceContract says what was selected.
type SourceContract struct {
	// Reference are keys of whoever selected the sources, such as the hashes of
	// [Selection]; they come first.
	Reference          []canonical.Member
	Domains            []string
	PerDomain, Sources int
	// FullText says that no source was cut; TargetScope describes target_content.
	FullText    bool
	TargetScope string
}

// Contract says what was traced.
type Contract struct {
	Conditions, Scopes []string
	Edges              []Edge
	Layers             int
	Gates              []int
	Experts, TopK      int
	UseCache           bool
	// What the document doesn't hold, and does: raw hidden rows, raw route ids, load
	// vectors.
	RawHidden, RawRoutes, LoadVectors bool
	// HashesExact says that the hashes cover the exact bytes of bfloat16 rows.
	HashesExact bool
}

// Execution says what ran, how long and in how much memory. A field that a run has
// nothing to say in is nil.
type Execution struct {
	Python, Torch, Transformers, Accelerate, Safetensors *string
	Platform                                             string
	GPU, GPUMemoryLimit, CPUMemoryLimit, CudaAllocConf   *string
	InputDevice                                          string
	// DeviceMap is an object: modules by device.
	DeviceMap                   canonical.Value
	LoadSeconds, ForwardSeconds float64
	LoadPeak, Peak              *int64
	MaxRSSKiB                   int64
}

// SourceTrace is what was traced of one source. Lists follow the contract: by
// condition, by stage, by gate, by edge, by scope.
type SourceTrace struct {
	ID, Domain, ContentSHA256, ContentIDsSHA256 string
	PromptTokens                                []int
	BatchTokens, ContentTokens                  int
	BoundaryCrossing                            []int
	ForwardSeconds                              float64
	Peak                                        *int64
	Stages                                      []StageTrace
	Gates                                       []GateTrace
}

// StageTrace is one place with hidden rows.
type StageTrace struct {
	// Conditions has each condition's statistics by scope.
	Conditions [][]HiddenStats
	Edges      []HiddenComparison
}

// GateTrace is one router.
type GateTrace struct {
	Layer      int
	Conditions [][]RouteDistribution
	Edges      []RouteComparison
}

// NewContract is the contract of a plan on a shape.
func NewContract(p Plan, s Shape, hidden DType) Contract {
	return Contract{
		Conditions: p.Names(), Scopes: Scopes(), Edges: slices.Clone(p.Edges), Layers: s.Layers, Gates: slices.Clone(s.Gates),
		Experts: s.Experts, TopK: s.TopK, LoadVectors: true, HashesExact: hidden == BFloat16,
	}
}

// NewSourceContract is the contract of a selection. Its reference keys are the
// script's.
func NewSourceContract(s Selection) SourceContract {
	hash := func(sum *string) canonical.Value {
		if sum == nil {
			return canonical.Null()
		}
		return canonical.String(*sum)
	}
	return SourceContract{
		Reference: []canonical.Member{
			{Key: "reference_routing_sha256", Value: hash(s.ReferenceRouting)},
			{Key: "tnews_archive_sha256", Value: hash(s.TNewsArchive)},
		},
		Domains: slices.Clone(s.Domains), PerDomain: s.PerDomain, Sources: len(s.Sources), FullText: true,
		TargetScope: "the tokens that lie wholly within a source's text, the same ids under every condition; a token that reaches past either end of it is left out and counted",
	}
}

// Shape is the shape that a document declares. The width of its rows is that of
// the first source's, 0 without one.
func (d *Document) Shape() Shape {
	s := Shape{Layers: d.Trace.Layers, Gates: d.Trace.Gates, Experts: d.Trace.Experts, TopK: d.Trace.TopK}
	if len(d.Traced) > 0 && len(d.Traced[0].Stages) > 0 {
		if c := d.Traced[0].Stages[0].Conditions; len(c) > 0 && len(c[0]) > 0 && len(c[0][0].Shape) == 2 {
			s.Hidden = c[0][0].Shape[1]
		}
	}
	return s
}

// Plan is the plan that a document declares. It has no text.
func (d *Document) Plan() Plan {
	p := Plan{Edges: d.Trace.Edges}
	of := Plan{Conditions: d.Tokenizer.Conditions}
	for _, name := range d.Trace.Conditions {
		c := Condition{Name: name}
		if i := of.Condition(name); i >= 0 {
			c = of.Conditions[i]
		}
		p.Conditions = append(p.Conditions, c)
	}
	return p
}

// ClaimBoundary is what every trace says of its own limits. Further sentences are
// the caller's: its arithmetic, its softmax scale.
func ClaimBoundary(further ...string) []string {
	return append([]string{
		"One checkpoint was traced, the one whose files are named above; nothing here speaks of another, such as the base model of a chat model.",
		"Conditions are compared on content tokens only: those whose ids are the same under all conditions. Tokens that reach across the edge of a source's text are left out.",
		"That routes or hidden rows differ between conditions is an observation. It doesn't show that one causes the other, nor what a model can do.",
		"A device named in the execution block is where weights were kept; it doesn't prove where products were computed.",
		"Prompts ran in one pass without a cache. Decode steps, cached prefixes and a serving engine's batches are not covered.",
	}, further...)
}
