package rules

// Bounds of the keys, which are kept for as long as the run lives: a closure whose key was
// forgotten would be called twice. New keys are refused when there is no room.
const (
	maxKeyBytes = 1 << 20
	// keyBytes counts for each key in addition to its text.
	keyBytes = 8
)

// keys are the keys of all closures, ended ones included, except cancelled ones.
type keys struct {
	ids map[string]keyed // for look-ups only: ranging over a map has no order
	// list has them in the order of IDs. Some were forgotten.
	list  []listedKey
	bytes int
}

// keyed is the closure of a key. failed reports whether it has ended with an error.
type keyed struct {
	id     uint64
	failed bool
}

type listedKey struct {
	key string
	id  uint64
}

func newKeys() keys { return keys{ids: map[string]keyed{}} }

func (k *keys) find(key string) (c keyed, known bool) {
	if key == "" {
		return keyed{}, false
	}
	c, known = k.ids[key]
	return c, known
}

// hasRoom reports whether so many bytes of new keys can be remembered.
func (k *keys) hasRoom(bytes int) bool {
	return bytes == 0 || k.bytes+bytes <= maxKeyBytes
}

// add remembers the closure of a key, and replaces an earlier one.
func (k *keys) add(key string, id uint64) {
	if key == "" {
		return
	}
	if before, known := k.ids[key]; known {
		k.forget(key, before.id)
	}
	k.ids[key] = keyed{id: id}
	k.list = append(k.list, listedKey{key, id})
	k.bytes += len(key) + keyBytes
}

// hasFailed records that the closure of a key has failed.
func (k *keys) hasFailed(key string, id uint64) {
	if c, known := k.find(key); known && c.id == id {
		k.ids[key] = keyed{id, true}
	}
}

// forget frees the key of a cancelled closure, which may be scheduled again.
func (k *keys) forget(key string, id uint64) {
	if c, known := k.find(key); !known || c.id != id {
		return
	}
	delete(k.ids, key)
	k.bytes -= len(key) + keyBytes
	if len(k.list) > 2*len(k.ids)+64 {
		k.list = k.known()
	}
}

// known returns the keys that were not forgotten, in the order of IDs.
func (k *keys) known() []listedKey {
	known := make([]listedKey, 0, len(k.ids))
	for _, l := range k.list {
		if c, ok := k.ids[l.key]; ok && c.id == l.id {
			known = append(known, l)
		}
	}
	return known
}
