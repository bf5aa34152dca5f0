package web

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/clusterrun/clusterrun/starter/page"
)

// Only the latest notes are kept, and only who knows the key of one sees it.
func TestNotes(t *testing.T) {
	var n notes
	first := n.add(page.Notice{Text: "first"})
	note, ok := n.get(first)
	assert.True(t, ok)
	assert.Equal(t, "first", note.Text)
	for i := range mostKept {
		n.add(page.Notice{Text: strconv.Itoa(i)})
	}
	_, ok = n.get(first)
	assert.False(t, ok)
	_, ok = n.get("")
	assert.False(t, ok)
	assert.Len(t, n.all, mostKept)
	assert.Len(t, n.keys, mostKept)
}
