package closure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// checker collects a request's problems.
type checker struct{ spec.Checker }

// Validate checks the request in isolation. The error is an [*spec.InvalidRequestError] with all
// problems.
func (r SyncRequest) Validate() error {
	c := &checker{}
	switch {
	case r.Client == "":
		c.Add("client", "missing", "give the client a random name")
	case len(r.Client) > MaxFunctionName || !printableName(r.Client):
		c.Add("client", spec.Quote(r.Client)+" is not a valid name", fmt.Sprintf("use up to %d bytes of printable characters", MaxFunctionName))
	}
	switch n := len(r.Closures); {
	case n > 0 && r.First == 0:
		c.Add("first", "missing", "count the closures of the client from 1")
	case n > MaxBatch:
		c.Add("closures", fmt.Sprintf("has %d; a request may have at most %d", n, MaxBatch), "send several requests")
	}
	if n := max(len(r.Resources), len(r.Released)); n > MaxBatch*MaxResources {
		c.Add("resources", fmt.Sprintf("has %d; a request may have at most %d", n, MaxBatch*MaxResources), "send several requests")
	}
	known, total := make(map[uint64]bool, len(r.Resources)), 0
	for i := range r.Resources {
		known[r.Resources[i].ID] = true
		total += len(r.Resources[i].Args) + len(r.Resources[i].Kwargs)
		c.checkResource(&r.Resources[i], func(field string) string { return fmt.Sprintf("resources[%d].%s", i, field) })
	}
	for i := range r.Closures {
		total += r.Closures[i].Size()
		if c.Full() {
			continue
		}
		path := func(field string) string { return fmt.Sprintf("closures[%d].%s", i, field) }
		c.checkClosure(&r.Closures[i], path)
		for _, id := range r.Closures[i].Resources[:min(len(r.Closures[i].Resources), MaxResources)] {
			if id != 0 && !known[id] {
				c.Add(path("resources"), fmt.Sprintf("has %d, which is not among the request's resources", id), "define it there")
			}
		}
	}
	if total > MaxBatchBytes {
		c.Add("closures", fmt.Sprintf("arguments and names have %d bytes in total; a request may have at most %d", total, MaxBatchBytes), "send several requests")
	}
	return c.Err()
}

// Validate checks a closure in the same way as the queue. Clients call it before they send a
// closure, because the server rejects requests that are far too large. The error is an
// [*spec.InvalidRequestError] with all problems.
func (c *Closure) Validate() error {
	k := &checker{}
	k.checkClosure(c, func(field string) string { return field })
	return k.Err()
}

func (c *checker) checkResource(r *Resource, path func(field string) string) {
	if r.ID == 0 || r.ID > MaxResourceID {
		c.Add(path("id"), fmt.Sprintf("is %d", r.ID), fmt.Sprintf("use a random number from 1 to %d", uint64(MaxResourceID)))
	}
	c.checkFunction(func() string { return path("function") }, r.Function)
	c.checkArguments(path, r.Args, r.Kwargs)
}

// checkClosure builds field paths only for problems, because a request may contain a thousand
// closures, and problems are rare.
func (c *checker) checkClosure(closure *Closure, path func(field string) string) {
	if closure.ID != 0 {
		c.Add(path("id"), "is set", "omit it; the queue sets it")
	}
	c.checkFunction(func() string { return path("function") }, closure.Function)
	if n := len(closure.Resources); n > MaxResources {
		c.Add(path("resources"), fmt.Sprintf("has %d; a closure may use at most %d resources", n, MaxResources), "combine several into one resource")
		return
	}
	c.checkArguments(path, closure.Args, closure.Kwargs)
	if closure.Task != "" {
		c.TaskName(path("task"), closure.Task)
	}
}

func (c *checker) checkFunction(path func() string, name string) {
	switch {
	case name == "":
		c.Add(path(), "missing", "name a function that the tasks have registered")
	case len(name) > MaxFunctionName:
		c.Add(path(), fmt.Sprintf("%s has %d bytes; a function's name may have at most %d", spec.Quote(name), len(name), MaxFunctionName), "register it under a shorter name")
	case !printableName(name):
		c.Add(path(), spec.Quote(name)+" is not a valid function name", "use printable characters")
	}
}

func (c *checker) checkArguments(path func(string) string, args, kwargs json.RawMessage) {
	if size := len(args) + len(kwargs); size > MaxBytes {
		c.Add(path("args"), fmt.Sprintf("the arguments have %d bytes; at most %d are allowed", size, MaxBytes), "put large data into files")
		return
	}
	c.checkArgument(path, "args", args, '[', "a JSON array", "[1, \"x\"]")
	c.checkArgument(path, "kwargs", kwargs, '{', "a JSON object", "{\"rate\": 0.1}")
}

func (c *checker) checkArgument(path func(string) string, field string, value json.RawMessage, first byte, what, example string) {
	if len(value) == 0 {
		return
	}
	text := bytes.TrimLeft(value, " \t\r\n")
	switch {
	case !json.Valid(value) || !utf8.Valid(value):
		c.Add(path(field), "is not JSON: "+spec.Quote(string(value)), "use "+what+" such as "+example)
	case text[0] != first:
		c.Add(path(field), fmt.Sprintf("must be %s, not %s", what, spec.Quote(string(value))), "use one such as "+example)
	}
}

// printableName reports whether a name fits on one line and survives JSON unchanged.
func printableName(name string) bool {
	return utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
