package spec

import (
	"math"
	"strconv"
)

// node is a value of a JSON or YAML document as written, with its order, duplicate keys, and
// spelling of numbers. The types of encoding/json would lose all this before it could be checked.
type node struct {
	kind    kind
	text    string // of a string, or of a number or boolean as written
	members []member
	items   []node
	line    int // from 1
}

// member is a key in an object, with its value.
type member struct {
	name  string
	line  int
	value node
}

type kind int

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindText
	kindList
	kindObject
)

// get returns the first member with that name.
func (n *node) get(name string) (*node, bool) {
	for i := range n.members {
		if n.members[i].name == name {
			return &n.members[i].value, true
		}
	}
	return nil, false
}

// describe describes the node, as in "must be a string, not …".
func (n *node) describe() string {
	switch n.kind {
	case kindBool:
		return cut(n.text)
	case kindNumber:
		return "the number " + cut(n.text)
	case kindText:
		return "the string " + Quote(n.text)
	case kindList:
		return "a list"
	case kindObject:
		return "an object"
	default:
		return "empty (null)"
	}
}

// wholeNumber parses an integral number. JSON does not distinguish 3.0 from 3.
func (n *node) wholeNumber() (int, bool) {
	if n.kind != kindNumber {
		return 0, false
	}
	if i, err := strconv.Atoi(n.text); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(n.text, 64)
	// Above 2^53, neighboring integers are the same float.
	if err != nil || f > 1<<53 || f < -(1<<53) || f != math.Trunc(f) {
		return 0, false
	}
	return int(f), true
}
