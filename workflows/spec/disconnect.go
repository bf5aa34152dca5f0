package spec

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"
)

// OnDisconnect says how a host treats the processes of a run while it has no contact with the
// Temporal server: [OnDisconnectKeep], or the time for which it keeps them running, such as
// "2m". If it is empty, [RunSpec.StopAfter] has the default.
//
// In JSON and YAML it is keep, or {stop_after: 2m}.
type OnDisconnect string

// OnDisconnectKeep keeps processes running without limit: the run waits for its hosts, and
// gives none up.
const OnDisconnectKeep OnDisconnect = "keep"

const (
	// DefaultStopAfter is the time for which a host keeps the processes of a run on several
	// hosts running without a server.
	DefaultStopAfter = Duration(2 * time.Minute)
	// MinStopAfter is the least: a healthy host sends four heartbeats in it, and two of these
	// may get lost.
	MinStopAfter = Duration(5 * time.Second)
)

// OnDisconnectStop stops processes after a time without a server.
func OnDisconnectStop(after time.Duration) OnDisconnect {
	return OnDisconnect(Duration(after).String())
}

// StopAfter returns the time for which a host keeps the processes of the run running without a
// server, if the run has so many hosts. 0 means no limit.
func (s *RunSpec) StopAfter(hosts int) time.Duration {
	d, err := ParseDuration(string(s.OnDisconnect))
	switch {
	case s.OnDisconnect == OnDisconnectKeep, s.OnDisconnect == "" && hosts < 2:
		return 0
	case s.OnDisconnect == "", err != nil:
		return time.Duration(DefaultStopAfter)
	}
	return time.Duration(d)
}

// stopAfter is the other form of an [OnDisconnect].
type stopAfter struct {
	StopAfter string `json:"stop_after"`
}

// MarshalJSON writes "keep" or an object.
func (o OnDisconnect) MarshalJSON() ([]byte, error) {
	if o == OnDisconnectKeep || o == "" {
		return json.Marshal(string(o))
	}
	return json.Marshal(stopAfter{string(o)})
}

// UnmarshalJSON reads the output of [OnDisconnect.MarshalJSON]. [Decode] reads specs that
// people write, and describes their mistakes.
func (o *OnDisconnect) UnmarshalJSON(b []byte) error {
	if json.Unmarshal(b, (*string)(o)) == nil {
		return nil
	}
	var s stopAfter
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*o = OnDisconnect(s.StopAfter)
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
	for i := range n.members {
		m := &n.members[i]
		p := fieldPath(path, m.name)
		switch {
		case c.givenTwice(seen, p, m):
		case m.name != "stop_after":
			c.malform(p, m.line, "not a field of on_disconnect", disconnectRemedy)
		case m.value.kind != kindText:
			c.malform(p, m.line, "must be a time, not "+m.value.describe(), disconnectRemedy)
		default:
			if _, err := ParseDuration(m.value.text); err != nil {
				c.malform(p, m.value.line, Quote(m.value.text)+" is not a duration", durationRemedy)
				continue
			}
			v.SetString(m.value.text)
		}
	}
	return true
}

func (o OnDisconnect) check(c *checker, path string) {
	if o == "" || o == OnDisconnectKeep || c.isMalformed(path) {
		return
	}
	d, err := ParseDuration(string(o))
	switch {
	case err != nil:
		c.add(path, Quote(string(o))+" is neither keep nor a time", disconnectRemedy)
	case d < MinStopAfter:
		c.add(path+".stop_after", fmt.Sprintf("must be at least %s, not %s", MinStopAfter, d),
			"a healthy host needs that long to be sure that the server is unreachable")
	case d > MaxDuration:
		c.add(path+".stop_after", fmt.Sprintf("must be at most %s, not %s", MaxDuration, d), "write keep for no limit")
	}
}

func disconnectSchema(f field, nullable bool) object {
	forms := []object{
		{{"enum", []any{string(OnDisconnectKeep)}}},
		{{"type", "object"}, {"properties", object{{"stop_after", object{{"type", "string"}, {"pattern", durationPattern}}}}},
			{"required", []string{"stop_after"}}, {"additionalProperties", false}},
	}
	if nullable {
		forms = append(forms, object{{"type", "null"}})
	}
	return object{{"description", f.doc}, {"anyOf", forms}}
}
