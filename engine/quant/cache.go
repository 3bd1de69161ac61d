package quant

import (
	"sync"
	"unsafe"

	"github.com/plumbline-go/plumbline/engine"
)

// Cache keeps quantised tensors, so that emulations of nearly the same
// checkpoint (a model and its mutants) quantise what they share once. A tensor
// is recognised by its memory: Weights must not be written. Safe for concurrent
// use.
type Cache struct {
	parent *Cache
	mu     sync.Mutex
	m      map[cacheKey]*cacheEntry
}

type cacheKey struct {
	// data keeps the tensor alive, so that its address can't be reused.
	data       *float32
	rows, cols int
	perTensor  bool
	ties       rounding
}

type cacheEntry struct {
	once sync.Once
	m    *matrix
	err  error
}

// NewCache returns an empty cache.
func NewCache() *Cache { return &Cache{m: make(map[cacheKey]*cacheEntry)} }

// Fork returns a cache that finds what c holds and keeps its own additions to
// itself: dropping the fork frees what only a mutant had.
func (c *Cache) Fork() *Cache {
	f := NewCache()
	f.parent = c
	return f
}

// Len returns how many tensors c itself has quantised, without its parents'.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.m)
}

// matrix returns the quantised form of a [rows, cols] tensor.
func (c *Cache) matrix(t engine.Tensor, perTensor bool, ties rounding) (*matrix, error) {
	key := cacheKey{unsafe.SliceData(t.Data), t.Shape[0], t.Shape[1], perTensor, ties}
	for p := c.parent; p != nil; p = p.parent {
		p.mu.Lock()
		e := p.m[key]
		p.mu.Unlock()
		if e != nil {
			return e.get(t, key)
		}
	}
	c.mu.Lock()
	e := c.m[key]
	if e == nil {
		e = new(cacheEntry)
		c.m[key] = e
	}
	c.mu.Unlock()
	return e.get(t, key)
}

func (e *cacheEntry) get(t engine.Tensor, key cacheKey) (*matrix, error) {
	e.once.Do(func() { e.m, e.err = newMatrix(t.Data, key.rows, key.cols, key.perTensor, key.ties) })
	return e.m, e.err
}
