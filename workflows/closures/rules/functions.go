package rules

import "slices"

// Bounds of the names that are kept.
const (
	maxFunctions     = 2000
	maxFunctionBytes = 64 << 10
)

// functions are the names that tasks have ever registered, including tasks that no longer
// serve. Beyond the bounds every name counts as registered.
type functions struct {
	places map[string]int
	// list has them in the order in which they were first seen.
	list  []string
	bytes int
}

// add adds a name, and reports whether it is kept.
func (f *functions) add(name string) bool {
	if _, known := f.places[name]; known {
		return true
	}
	if f.full() {
		return false
	}
	if f.places == nil {
		f.places = map[string]int{}
	}
	f.places[name] = len(f.list)
	f.list = append(f.list, name)
	f.bytes += len(name)
	return true
}

func (f *functions) full() bool { return len(f.list) >= maxFunctions || f.bytes >= maxFunctionBytes }

// never reports whether no task has ever registered the function.
func (f *functions) never(name string) bool {
	_, known := f.places[name]
	return !known && !f.full()
}

// beyond reports whether a name is not kept and there is no room for more names.
func (f *functions) beyond(name string) bool {
	_, known := f.places[name]
	return !known && f.full()
}

func (f *functions) sorted() []string { return slices.Sorted(slices.Values(f.list)) }

// set returns a list of remembered names as bits, by their places: a thousand tasks that
// each serve others of the most functions still take little room in a snapshot.
func (f *functions) set(names []string) []byte {
	var set []byte
	for _, name := range names {
		place, known := f.places[name]
		if !known {
			continue
		}
		for len(set) <= place/8 {
			set = append(set, 0)
		}
		set[place/8] |= 1 << (place % 8)
	}
	return set
}

// of is the inverse of set, except that the list is sorted.
func (f *functions) of(set []byte) (names []string) {
	for place, name := range f.list {
		if place/8 < len(set) && set[place/8]&(1<<(place%8)) != 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
