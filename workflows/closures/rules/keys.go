package rules

// Bounds of the keys that are remembered: for as long as the run lives, because a closure
// whose key was forgotten would be called twice. What finds no room is refused.
const (
	maxKeyBytes = 1 << 20
	// keyBytes is what each key counts beside its text.
	keyBytes = 8
)

// keys are those of all closures, of ended ones too, but for those that were cancelled.
type keys struct {
	ids map[string]keyed // for look-ups only: ranging over a map has no order
	// list has them in the order they came, which is that of their IDs. Some were forgotten.
	list  []listedKey
	bytes int
}

// keyed is the closure of a key. failed: with an error of its own.
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

// add remembers the closure of a key, in the place of the one before it.
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

// hasFailed notes that the closure of a key has.
func (k *keys) hasFailed(key string, id uint64) {
	if c, known := k.find(key); known && c.id == id {
		k.ids[key] = keyed{id, true}
	}
}

// forget: the key is free again. A cancelled closure can be scheduled again with it,
// which is what its error asks for.
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

// known returns those of the list that were not forgotten.
func (k *keys) known() []listedKey {
	known := make([]listedKey, 0, len(k.ids))
	for _, l := range k.list {
		if c, ok := k.ids[l.key]; ok && c.id == l.id {
			known = append(known, l)
		}
	}
	return known
}
