package lease

import (
	"testing"
	"time"

	"github.com/clusterrun/clusterrun/tests/scripts"
)

// FuzzClocks feeds random events at any time to the rules, on clocks that differ by up to one
// percent, and checks that nothing is alive when the run declares a task lost.
func FuzzClocks(f *testing.F) {
	for seed := range byte(32) {
		script := []byte{seed, seed * 7}
		for i := range byte(120) {
			script = append(script, i*7+seed, i*5+seed*3)
		}
		f.Add(script)
	}
	scripts.Fuzz(f, 2000, func(t *testing.T, data scripts.Bytes) { newClocks(t, data).run() })
}

type clocks struct {
	t *testing.T
	scripts.Bytes
	now         int64 // the server's clock, in nanoseconds
	rates       [3]int64
	b           Bounds
	holder      *Holder
	others      [2]*Witness
	loss        *Loss
	offer, held int64
	taken       bool
	since, wait int64
	lost        bool
}

func newClocks(t *testing.T, data scripts.Bytes) *clocks {
	c := &clocks{t: t, Bytes: data, b: Bounds{15 * time.Second, 10 * time.Minute}, offer: 1, held: 1, taken: true}
	for i := range c.rates {
		c.rates[i] = 990 + int64(c.Byte())%21
	}
	c.holder, c.loss = NewHolder(c.b, 0), NewLoss(c.b, time.Unix(0, 0))
	for i := range c.others {
		c.others[i] = NewWitness(0, nil)
	}
	return c
}

// at returns the time by a host's clock. Host 0 is the holder.
func (c *clocks) at(host int) int64 { return c.now / 1000 * c.rates[host] }

func (c *clocks) alive() bool {
	return c.at(0) < c.holder.Until()+10*time.Second.Nanoseconds()/1000*c.rates[0]
}

func (c *clocks) run() {
	for len(c.Bytes) > 0 && !c.lost && c.alive() {
		c.now += int64(c.Byte()) * 50 * time.Millisecond.Nanoseconds()
		c.event(c.Byte())
	}
}

func (c *clocks) event(what byte) {
	now, lives := time.Unix(0, c.now), c.at(0) < c.holder.Until()
	switch what % 8 {
	case 0: // a heartbeat
		if lives && c.taken && c.held == c.offer {
			c.holder.Answered(c.at(0))
			c.since = c.now
		}
	case 1, 2, 3: // it asks, and the answers take some time
		sent, said := c.at(0), 0
		for i, w := range c.others {
			c.now += int64(what) * time.Millisecond.Nanoseconds()
			if w.Silent(task, c.held, c.at(i+1)) {
				said++
			}
		}
		if said == len(c.others) && c.at(0) < c.holder.Until() {
			c.holder.Agreed(sent)
		}
	case 4: // a host worker is killed
		i := int(what/8) % len(c.others)
		c.others[i] = NewWitness(c.at(i+1), c.others[i].denied)
	case 5:
		if !c.taken && lives {
			c.taken, c.held, c.since = true, c.offer, c.now
			c.holder.Answered(c.at(0))
		}
	default:
		c.serve(what, now)
	}
}

// serve lets the server's timers fire, and the run act.
func (c *clocks) serve(what byte, now time.Time) {
	const beats = 15 * time.Second
	switch {
	case c.taken && c.now-c.since >= int64(beats):
		c.loss.Heard(now.Add(-beats))
	case !c.taken && c.now-c.since >= c.wait:
		if what&8 != 0 {
			i := int(what/16) % len(c.others)
			c.loss.Promised(now, c.others[i].Deny(task, c.offer, c.at(i+1)))
		}
		if c.loss.Lost(now) {
			c.lost = true
			if c.alive() {
				c.t.Fatalf("a process lives %s longer than the run thinks", time.Duration(c.holder.Until()-c.at(0)))
			}
			return
		}
	default:
		return
	}
	c.taken, c.since, c.wait = false, c.now, int64(c.loss.Wait(now))
	c.offer++
}
