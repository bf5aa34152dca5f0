package web

import (
	"crypto/rand"
	"sync"

	"github.com/clusterrun/clusterrun/starter/page"
)

// maxKept is the maximum number of kept values.
const maxKept = 100

// kept keeps the latest values by key.
type kept[V any] struct {
	mu   sync.Mutex
	keys []string // oldest first
	all  map[string]V
}

func (k *kept[V]) put(key string, value V) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.all == nil {
		k.all = map[string]V{}
	}
	if _, ok := k.all[key]; !ok {
		k.keys = append(k.keys, key)
	}
	k.all[key] = value
	if len(k.keys) > maxKept {
		delete(k.all, k.keys[0])
		k.keys = k.keys[1:]
	}
}

// get returns the value for a key.
func (k *kept[V]) get(key string) (V, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	value, ok := k.all[key]
	return value, ok
}

// notes are the answers to requests. The page that a request leads to shows its note. A link
// contains only the note's key, so that no one else can write notes.
type notes struct{ kept[page.Notice] }

// add keeps a note and returns its key.
func (n *notes) add(note page.Notice) string {
	key := rand.Text()
	n.put(key, note)
	return key
}
