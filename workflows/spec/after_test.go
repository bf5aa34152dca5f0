package spec

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAfterOf(t *testing.T) {
	for text, want := range map[string]After{
		"prep": {Run: "prep"}, "prep:ok": {"prep", AfterOK}, "prep:failed": {"prep", AfterFailed}, "a:b:any": {"a:b", AfterAny},
		"a:b": {Run: "a:b"}, ":any": {"", AfterAny},
	} {
		assert.Equal(t, want, AfterOf(text), text)
	}
}

func TestAfterHolds(t *testing.T) {
	ends := []RunEnd{EndedWell, EndedBadly, EndedSkipped, EndedUnknown}
	for when, want := range map[AfterWhen][]bool{
		"":          {true, false, false, false},
		AfterOK:     {true, false, false, false},
		AfterFailed: {false, true, false, false},
		AfterAny:    {true, true, true, true},
	} {
		for i, end := range ends {
			assert.Equal(t, want[i], After{"prep", when}.Holds(end), "%s after %s", end, when)
		}
	}
}
