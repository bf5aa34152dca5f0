package closures

import "slices"

// maxFunctions bounds the names that are remembered.
const maxFunctions = 2000

// functions are the names that tasks have ever registered, also tasks that do not
// serve at the moment. Beyond the bound every name counts as registered.
type functions struct {
	names map[string]bool
	// list has them in the order they came.
	list []string
}

func (f *functions) add(name string) {
	if f.names[name] || len(f.list) >= maxFunctions {
		return
	}
	if f.names == nil {
		f.names = map[string]bool{}
	}
	f.names[name] = true
	f.list = append(f.list, name)
}

// never reports whether no task has ever registered the function.
func (f *functions) never(name string) bool {
	return !f.names[name] && len(f.list) < maxFunctions
}

func (f *functions) sorted() []string { return slices.Sorted(slices.Values(f.list)) }
