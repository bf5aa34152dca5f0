package background

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

func always(int) bool { return true }

func TestFeed(t *testing.T) {
	var f Feed[int]
	first := f.Latest()
	assert.Zero(t, first.Value)
	select {
	case <-first.Later():
		t.Fatal("nothing came")
	default:
	}
	f.Add(1, always)
	f.Add(2, func(now int) bool { return now == 1 })
	f.Add(9, func(now int) bool { return now != 2 })
	<-first.Later()
	assert.Equal(t, 1, first.Next().Value, "it was there for a moment")
	assert.Equal(t, 2, first.Next().Next().Value)
	assert.Same(t, f.Latest(), first.Next().Next())
}

// Every follower sees every value, in order.
func TestManyFollow(t *testing.T) {
	const followers, values = 50, 1000
	var f Feed[int]
	var all sync.WaitGroup
	for range followers {
		i := f.Latest()
		all.Go(func() {
			for want := 1; want <= values; want++ {
				i = i.Next()
				if !assert.Equal(t, want, i.Value) {
					return
				}
			}
		})
	}
	for v := 1; v <= values; v++ {
		f.Add(v, always)
	}
	all.Wait()
}
