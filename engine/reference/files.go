package reference

// WeightFiles names the files that the weights lie in, as Load was given the path.
// An index that lists them isn't among them.
func (c *Checkpoint) WeightFiles() []string {
	var names []string
	for _, s := range c.shards {
		names = append(names, s.path())
	}
	return names
}
