package conformance

import (
	"errors"

	"github.com/plumbline-go/plumbline/engine"
)

// answerError turns what a candidate returned in place of an answer into an
// outcome: broken is the candidate's fault, unsupported is not.
func answerError(err error) Outcome {
	var un *engine.UnsupportedError
	var bad *engine.MalformedError
	broken := errors.As(err, &bad) // such as an answer with what no engine can offer
	if errors.As(err, &un) && !broken {
		return unsupported(un.Error())
	}
	o := Outcome{Status: Error, Reason: err.Error(), Kind: kindOf(err)}
	if broken && bad.File != "" {
		o.Findings = []Finding{{Metric: "answer", Got: 0, Limit: Limit{1, "a readable answer"},
			At: At{Row: -1, Channel: -1, File: bad.File}, Detail: bad.Err.Error()}}
	}
	return o
}

// candidatesFault tells a candidate that answers badly, or not at all, from one
// that the run can't ask.
func candidatesFault(err error) bool {
	var bad *engine.MalformedError
	var dead *engine.ProcessError
	return errors.As(err, &bad) || errors.As(err, &dead)
}

// runsFault tells a candidate that can't even be asked: no program, no room for
// its answer, a command line that doesn't fit.
func runsFault(err error) bool {
	var setup *engine.SetupError
	var line *engine.CommandError
	return errors.As(err, &setup) || errors.As(err, &line)
}

func kindOf(err error) Kind {
	var bad *engine.MalformedError
	if errors.As(err, &bad) {
		if bad.Provenance {
			return KindProvenance
		}
	}
	return KindFormat // no answer is as unreadable as a broken one
}
