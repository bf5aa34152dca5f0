package closure

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// checker collects a request's problems.
type checker struct{ spec.Checker }

// Validate checks the request in isolation. The queue checks whether it knows the functions and
// resources. The error is an [*spec.InvalidRequestError] with all problems.
func (r ScheduleRequest) Validate() error {
	c := &checker{}
	c.checkCaller(r.Client, "batch", r.Batch)
	switch n := len(r.Closures); {
	case n == 0 && len(r.Released) == 0:
		c.Add("closures", "is empty", "give at least one closure")
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
				c.Add(path("resources"), fmt.Sprintf("has %d, which is not among the resources of the request", id), "give its definition there")
			}
		}
	}
	if total > MaxBatchBytes {
		c.Add("closures", fmt.Sprintf("arguments and names have %d bytes in all; a request may have at most %d", total, MaxBatchBytes), "send several requests")
	}
	return c.Err()
}

// Validate checks a closure as the queue does, for clients that check before they send, because
// the server rejects a request that is far too large. The error is an [*spec.InvalidRequestError]
// with all problems.
func (c *Closure) Validate() error {
	k := &checker{}
	k.checkClosure(c, func(field string) string { return field })
	return k.Err()
}

// Validate checks the request. The error is an [*spec.InvalidRequestError].
func (r WaitRequest) Validate() error {
	c := &checker{}
	c.checkCaller(r.Client, "call", r.Call)
	return c.Err()
}

// Validate checks the request. The error is an [*spec.InvalidRequestError].
func (r TakeRequest) Validate() error {
	c := &checker{}
	c.checkClient(r.Client)
	return c.Err()
}

func (c *checker) checkResource(r *Resource, path func(field string) string) {
	if r.ID == 0 || r.ID > MaxResourceID {
		c.Add(path("id"), fmt.Sprintf("is %d", r.ID), fmt.Sprintf("give a random number from 1 to %d", uint64(MaxResourceID)))
	}
	c.checkFunction(func() string { return path("function") }, r.Function)
	c.checkArguments(path, r.Args, r.Kwargs, nil)
}

func (c *checker) checkCaller(client, field string, number uint64) {
	c.checkClient(client)
	if number == 0 {
		c.Add(field, "missing", "count the requests of the client from 1")
	}
}

func (c *checker) checkClient(client string) {
	switch {
	case client == "":
		c.Add("client", "missing", "give the name of the client; it distinguishes repeated requests from new ones")
	case len(client) > MaxFunctionName || !printableName(client):
		c.Add("client", spec.Quote(client)+" is not a valid name", fmt.Sprintf("give at most %d bytes of visible text", MaxFunctionName))
	}
}

// checkClosure builds paths only for problems: a request has a thousand closures and hardly ever a
// problem.
func (c *checker) checkClosure(closure *Closure, path func(field string) string) {
	if closure.ID != 0 {
		c.Add(path("id"), "is set", "leave it out; the queue sets it")
	}
	c.checkFunction(func() string { return path("function") }, closure.Function)
	if n := len(closure.Resources); n > MaxResources {
		c.Add(path("resources"), fmt.Sprintf("has %d; a closure may use at most %d resources", n, MaxResources), "put several into one resource")
		return
	}
	c.checkArguments(path, closure.Args, closure.Kwargs, closure.Resources)
	if closure.Task != "" {
		c.TaskName(path("task"), closure.Task)
	}
}

func (c *checker) checkFunction(path func() string, name string) {
	switch {
	case name == "":
		c.Add(path(), "missing", "name a function that the tasks have registered")
	case len(name) > MaxFunctionName:
		c.Add(path(), fmt.Sprintf("%s has %d bytes; a function's name may have at most %d", spec.Quote(name), len(name), MaxFunctionName), "register it under a shorter one")
	case !printableName(name):
		c.Add(path(), spec.Quote(name)+" is not the name of a function", "give visible text")
	}
}

func (c *checker) checkArguments(path func(string) string, args, kwargs json.RawMessage, resources []uint64) {
	if size := len(args) + len(kwargs); size > MaxBytes {
		c.Add(path("args"), fmt.Sprintf("the arguments have %d bytes; at most %d are allowed", size, MaxBytes), "pass large data in files")
		return
	}
	c.checkArgument(path, "args", args, '[', "a JSON array", "[1, \"x\"]", resources)
	c.checkArgument(path, "kwargs", kwargs, '{', "a JSON object", "{\"rate\": 0.1}", resources)
}

func (c *checker) checkArgument(path func(string) string, field string, value json.RawMessage, first byte, what, example string, resources []uint64) {
	if len(value) == 0 {
		return
	}
	text := bytes.TrimLeft(value, " \t\r\n")
	switch {
	case !json.Valid(value) || !utf8.Valid(value):
		c.Add(path(field), "is not JSON: "+spec.Quote(string(value)), "give "+what+" such as "+example)
	case text[0] != first:
		c.Add(path(field), fmt.Sprintf("must be %s, not %s", what, spec.Quote(string(value))), "give one such as "+example)
	case bytes.Contains(value, []byte(reservedKeys)):
		c.checkStandIns(path, field, value, resources)
	}
}

// reservedKeys is the prefix of keys that mark objects with a special meaning.
const reservedKeys = "$clusterrun."

// checkStandIns checks the objects among arguments that stand for something else. Resources and
// values that JSON cannot express are allowed, but not the result of another closure.
func (c *checker) checkStandIns(path func(string) string, field string, value json.RawMessage, resources []uint64) {
	var decoded any
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&decoded); err != nil {
		return // checked before
	}
	walk(decoded, func(key string, value any) {
		if _, isText := value.(string); isText && (key == spec.NumberKey || key == spec.BytesKey) {
			return
		}
		if key != ResourceKey {
			c.Add(path(field), fmt.Sprintf("has %s, but only a per-worker resource can be an argument", spec.Quote(key)),
				"fetch the value of the other closure, and pass that")
			return
		}
		number, _ := value.(json.Number)
		id, err := strconv.ParseUint(number.String(), 10, 64)
		if err != nil || !slices.Contains(resources, id) {
			c.Add(path(field), fmt.Sprintf("uses resource %s, which is not in its list of resources", spec.Quote(fmt.Sprint(value))), "list its ID there")
		}
	})
}

// walk finds the objects with a single, reserved key.
func walk(value any, found func(key string, value any)) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			walk(e, found)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if len(v) == 1 && strings.HasPrefix(key, reservedKeys) {
				found(key, v[key])
			} else {
				walk(v[key], found)
			}
		}
	}
}

// printableName reports whether a name fits on one line and survives JSON unchanged.
func printableName(name string) bool {
	return utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}
