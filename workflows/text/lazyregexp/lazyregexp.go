// Package lazyregexp compiles regular expressions on first use. Every clusterrun process links all
// packages but needs few of their expressions, and it would take milliseconds to compile all of
// them at each start.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles expression once. The function panics if it is invalid.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
