package web

import (
	"crypto/rand"
	"sync"

	"github.com/clusterrun/clusterrun/starter/page"
)

// mostNotes is the largest number of notes that are kept.
const mostNotes = 100

// notes are the answers to requests. The page to which a request leads shows its note: a link
// has only its key, so that nobody else can write notes.
type notes struct {
	mu   sync.Mutex
	keys []string
	all  map[string]page.Notice
}

// add keeps a note and returns its key.
func (n *notes) add(note page.Notice) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil {
		n.all = map[string]page.Notice{}
	}
	key := rand.Text()
	n.keys, n.all[key] = append(n.keys, key), note
	if len(n.keys) > mostNotes {
		delete(n.all, n.keys[0])
		n.keys = n.keys[1:]
	}
	return key
}

// take returns the note with a key.
func (n *notes) take(key string) (page.Notice, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note, ok := n.all[key]
	return note, ok
}
