package reference

import "github.com/plumbline-go/plumbline/engine"

func qwen35Config(r *configReader, family string) (engine.Arch, []*configReader) {
	return engine.Arch{}, nil
}
