// Package lazyregexp compiles regular expressions when they are first used. Every process of
// clusterrun links all of its packages and needs few of their expressions; together they take
// milliseconds, at each start.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that compiles an expression once. The function panics if that is not valid.
func New(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
