package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// OnDisconnect controls a run's processes on a host that cannot reach the Temporal server. It is
// [OnDisconnectKeep], or a duration for which they keep running, such as "2m", or two durations,
// such as "15s,10m"; see [RunSpec.TwoBounds]. If it is empty, [RunSpec.StopAfter] and TwoBounds
// return defaults.
//
// In JSON and YAML it is keep, {stop_after: 2m}, or {stop_after: 15s, outage: 10m}.
type OnDisconnect string

// OnDisconnectKeep keeps processes running without limit. The run waits for its hosts, and never
// gives one up.
const OnDisconnectKeep OnDisconnect = "keep"

const (
	// DefaultStopAfter is how long the processes of a multi-host run keep running without contact
	// to a server.
	DefaultStopAfter = Duration(2 * time.Minute)
	// MinStopAfter is the minimum. A healthy host sends four heartbeats in this time, and two may
	// get lost.
	MinStopAfter = Duration(5 * time.Second)
	// DefaultShort and DefaultLong are a run's two bounds if its hosts can reach each other.
	DefaultShort, DefaultLong = Duration(15 * time.Second), Duration(10 * time.Minute)
)

// OnDisconnectStop stops processes that have been without contact to a server for the given time.
func OnDisconnectStop(after time.Duration) OnDisconnect {
	return OnDisconnect(Duration(after).String())
}

// OnDisconnectWithOutage stops processes after one of two durations; see [RunSpec.TwoBounds].
func OnDisconnectWithOutage(short, long time.Duration) OnDisconnect {
	return OnDisconnectStop(short) + "," + OnDisconnectStop(long)
}

// StopAfter returns how long a host keeps the run's processes running without contact to a server
// if the run is on the given number of hosts. 0 means no limit, which is the default for one host
// because the run could not continue elsewhere. A run that requeues after losing a host always has
// a limit.
func (s *RunSpec) StopAfter(hosts int) time.Duration {
	first, _, _ := s.OnDisconnect.times()
	d, err := ParseDuration(first)
	switch {
	case s.OnDisconnect == OnDisconnectKeep, s.OnDisconnect == "" && hosts < 2 && !s.Requeues(RequeueOnHostLost):
		return 0
	case s.OnDisconnect == "", err != nil:
		return time.Duration(DefaultStopAfter)
	}
	return time.Duration(d)
}

// TwoBounds returns how long a host keeps the run's processes running without contact to a server.
// short applies if the host also cannot reach the run's other hosts, and long if those cannot reach
// a server either. Both bounds require hosts that can reach each other. ok is false for a run with
// fewer than two bounds.
func (s *RunSpec) TwoBounds(tasks int) (short, long time.Duration, ok bool) {
	if s.OnDisconnect == "" {
		// A large run sends fewer heartbeats per task, 32 per second in total.
		short = max(time.Duration(DefaultShort), time.Duration(tasks)*time.Second/8)
		return min(short, time.Duration(DefaultStopAfter)), time.Duration(DefaultLong), true
	}
	first, second, ok := s.OnDisconnect.times()
	if !ok {
		return 0, 0, false
	}
	a, errA := ParseDuration(first)
	b, errB := ParseDuration(second)
	return time.Duration(a), time.Duration(b), errA == nil && errB == nil
}

// times returns the two durations; two is false if there is only one.
func (o OnDisconnect) times() (first, second string, two bool) {
	first, second, two = strings.Cut(string(o), ",")
	return strings.TrimSpace(first), strings.TrimSpace(second), two
}

// stopAfter is the object form of an [OnDisconnect].
type stopAfter struct {
	StopAfter string `json:"stop_after"`
	Outage    string `json:"outage,omitempty"`
}

// text returns the form with one or two durations.
func (s stopAfter) text() OnDisconnect {
	if s.Outage == "" {
		return OnDisconnect(s.StopAfter)
	}
	return OnDisconnect(s.StopAfter + "," + s.Outage)
}

// MarshalJSON writes "keep" or an object.
func (o OnDisconnect) MarshalJSON() ([]byte, error) {
	if o == OnDisconnectKeep || o == "" {
		return json.Marshal(string(o))
	}
	first, second, _ := o.times()
	return json.Marshal(stopAfter{first, second})
}

// UnmarshalJSON parses the output of [OnDisconnect.MarshalJSON]. For specs that people write, use
// [Decode], which describes their mistakes.
func (o *OnDisconnect) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(o)) == nil {
		return nil
	}
	var s stopAfter
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*o = s.text()
	return nil
}

var disconnectType = reflect.TypeFor[OnDisconnect]()

func (c *checker) fillDisconnect(path, key string, n *node, v reflect.Value) bool {
	switch {
	case n.kind == kindText && n.text == string(OnDisconnectKeep):
		v.SetString(n.text)
		return true
	case n.kind == kindText:
		c.malform(path, n.line, Quote(n.text)+" is neither keep nor {stop_after: TIME}", disconnectRemedy)
		return false
	case n.kind != kindObject || len(n.members) == 0:
		return c.mismatch(path, key, n, v.Type())
	}
	seen := map[string]int{}
	var given stopAfter
	for i := range n.members {
		m := &n.members[i]
		p := fieldPath(path, m.name)
		switch {
		case c.givenTwice(seen, p, m):
		case m.name != "stop_after" && m.name != "outage":
			c.malform(p, m.line, "not a field of on_disconnect", disconnectRemedy)
		case m.value.kind != kindText:
			c.malform(p, m.line, "must be a duration, not "+m.value.describe(), disconnectRemedy)
		default:
			if _, err := ParseDuration(m.value.text); err != nil {
				c.malform(p, m.value.line, Quote(m.value.text)+" is not a duration", durationRemedy)
				continue
			}
			if m.name == "outage" {
				given.Outage = m.value.text
			} else {
				given.StopAfter = m.value.text
			}
		}
	}
	if given.StopAfter == "" && given.Outage != "" && !c.isMalformed(path) {
		c.malform(path, n.line, "sets outage without stop_after", disconnectRemedy)
		return false
	}
	v.SetString(string(given.text()))
	return true
}

func (o OnDisconnect) check(c *checker, path string) {
	if o == "" || o == OnDisconnectKeep || c.isMalformed(path) {
		return
	}
	first, second, two := o.times()
	d, err := ParseDuration(first)
	var long Duration
	if two && err == nil {
		long, err = ParseDuration(second)
	}
	switch {
	case err != nil:
		c.add(path, Quote(string(o))+" is neither keep nor a duration", disconnectRemedy)
	case two && long < d:
		c.add(path+".outage", fmt.Sprintf("must be at least stop_after, which is %s, not %s", d, long), disconnectRemedy)
	case long > MaxDuration:
		c.add(path+".outage", fmt.Sprintf("must be at most %s, not %s", MaxDuration, long), "write keep to set no limit")
	case d < MinStopAfter:
		c.add(path+".stop_after", fmt.Sprintf("must be at least %s, not %s", MinStopAfter, d),
			"a healthy host needs this long to be sure that the server is unreachable")
	case d > MaxDuration:
		c.add(path+".stop_after", fmt.Sprintf("must be at most %s, not %s", MaxDuration, d), "write keep to set no limit")
	}
}

func disconnectSchema(f field, nullable bool) object {
	forms := []object{
		{{"enum", []any{string(OnDisconnectKeep)}}},
		{{"type", "object"}, {"properties", object{
			{"stop_after", object{{"type", "string"}, {"pattern", durationPattern}}}, {"outage", object{{"type", "string"}, {"pattern", durationPattern}}},
		}},
			{"required", []string{"stop_after"}}, {"additionalProperties", false}},
	}
	if nullable {
		forms = append(forms, object{{"type", "null"}})
	}
	return object{{"description", f.doc}, {"anyOf", forms}}
}
