package closures

// Bounds of the keys that are remembered.
const (
	maxKeys     = 10_000
	maxKeyBytes = 128 << 10
)

// keys are the latest keys of closures, of ended ones too.
type keys struct {
	ids map[string]uint64 // for look-ups only: ranging over a map has no order
	// list has them in the order they came, from first on. Some are forgotten.
	list  []keyed
	first int
	bytes int
}

type keyed struct {
	Key string `json:"k"`
	ID  uint64 `json:"i"`
}

func newKeys() keys { return keys{ids: map[string]uint64{}} }

func (k *keys) find(key string) (id uint64, known bool) {
	if key == "" {
		return 0, false
	}
	id, known = k.ids[key]
	return id, known
}

func (k *keys) add(key string, id uint64) {
	if key == "" {
		return
	}
	k.ids[key] = id
	k.list = append(k.list, keyed{key, id})
	k.bytes += len(key)
	for len(k.list)-k.first > maxKeys || k.bytes > maxKeyBytes {
		oldest := k.list[k.first]
		k.list[k.first] = keyed{}
		k.first++
		k.bytes -= len(oldest.Key)
		k.forget(oldest.Key, oldest.ID)
	}
	if k.first > maxKeys {
		k.list, k.first = append([]keyed(nil), k.list[k.first:]...), 0
	}
}

// forget: the key is free again. A cancelled closure can be scheduled again with it,
// which is what its error asks for.
func (k *keys) forget(key string, id uint64) {
	if k.ids[key] == id {
		delete(k.ids, key)
	}
}
