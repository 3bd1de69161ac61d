package reference

import "fmt"

// snapshot is the KV cache of the first positions of a prompt, and no larger.
type snapshot struct {
	length int
	cache  kvCache
	bytes  int64
}

// snapshots are those of one composition, of prefixes of one prompt, shortest
// first. All compositions' together stay within the budget.
type snapshots struct {
	stack  []snapshot
	budget *int64 // bytes left, shared
}

// longest is the longest snapshot of at most length positions, or nil.
func (s *snapshots) longest(length int) *snapshot {
	for i := len(s.stack) - 1; i >= 0; i-- {
		if s.stack[i].length <= length {
			return &s.stack[i]
		}
	}
	return nil
}

// drop frees the snapshots of more than length positions.
func (s *snapshots) drop(length int) error {
	for n := len(s.stack); n > 0 && s.stack[n-1].length > length; n = len(s.stack) {
		last := s.stack[n-1]
		s.stack = s.stack[:n-1]
		*s.budget += last.bytes
		if err := last.cache.finalize(); err != nil {
			return err
		}
	}
	return nil
}

// save copies the first positions of cache, unless that is there already or the
// budget has no room. alloc makes an empty cache of a capacity.
func (s *snapshots) save(cache kvCache, length int, alloc func(capacity int) (kvCache, error)) error {
	if n := len(s.stack); n > 0 && s.stack[n-1].length >= length {
		return nil
	}
	bytes := cache.bytes(length)
	if bytes > *s.budget {
		return nil
	}
	c, err := alloc(length)
	if err != nil {
		return err
	}
	if err := c.take(cache, length); err != nil {
		return fmt.Errorf("reference: snapshot of %d positions: %w", length, err)
	}
	*s.budget -= bytes
	s.stack = append(s.stack, snapshot{length, c, bytes})
	return nil
}
