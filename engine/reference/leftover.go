package reference

import "sync"

// leftover is what the last decode of an engine left in the cache, where a fault
// has it kept. Its zero value is empty.
type leftover struct {
	mu    sync.Mutex
	cache kvCache
	slots int
}

// length is how many slots are left over.
func (l *leftover) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.slots
}

// restore copies at most room slots to the front of a cache and returns how many:
// another decode may have ended since the room was measured.
func (l *leftover) restore(cache kvCache, room int) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(room, l.slots)
	if n == 0 {
		return 0, nil
	}
	return n, cache.take(l.cache, n)
}

// keep remembers a run's positions, not those that were left over before it.
// Without the fault it does nothing.
func (l *leftover) keep(r *run, s schedule, positions int) error {
	if !s.arch.Fault.KeepCache {
		return nil
	}
	cache, err := r.e.newKVCache(positions)
	if err != nil {
		return err
	}
	for n := range cache {
		if err := cache.write(n, 0, r.cache[n].parts, s.base, positions); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cache, l.slots = cache, positions
	return nil
}
