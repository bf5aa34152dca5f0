package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Validate checks the request by itself. Whether its functions and resources are
// known is for the queue to say. The error is an [*InvalidRequestError] with all
// problems.
func (r ScheduleRequest) Validate() error {
	c := &checker{}
	c.checkCaller(r.Client, "batch", r.Batch)
	switch n := len(r.Closures); {
	case n == 0:
		c.add("closures", "is empty", "give at least one closure")
	case n > MaxBatch:
		c.add("closures", fmt.Sprintf("has %d; a request takes up to %d", n, MaxBatch), "send several requests")
	}
	total := 0
	for i := range r.Closures {
		total += r.Closures[i].Size()
		if len(c.problems) < maxProblems {
			c.checkClosure(&r.Closures[i], func(field string) string { return indexPath("closures", i) + "." + field })
		}
	}
	if total > MaxBatchBytes {
		c.add("closures", fmt.Sprintf("arguments and names have %d bytes together; a request takes up to %d", total, MaxBatchBytes), "send several requests")
	}
	return c.requestError()
}

// Validate checks a closure as a request with it is checked, for those who want to know
// before they send it: what is far too large a server does not even take. The error is
// an [*InvalidRequestError] with all problems.
func (c *Closure) Validate() error {
	k := &checker{}
	k.checkClosure(c, func(field string) string { return field })
	return k.requestError()
}

// Validate is that of closures.
func (r *Resource) Validate() error {
	k := &checker{}
	k.checkResource(r, func(field string) string { return field })
	return k.requestError()
}

// Validate checks the request. The error is an [*InvalidRequestError].
func (r WaitRequest) Validate() error {
	c := &checker{}
	c.checkCaller(r.Client, "call", r.Call)
	return c.requestError()
}

// Validate checks the request by itself. The error is an [*InvalidRequestError]
// with all problems.
func (r ResourceRequest) Validate() error {
	c := &checker{}
	c.checkCaller(r.Client, "number", r.Number)
	c.checkResource(&r.Resource, func(field string) string { return "resource." + field })
	return c.requestError()
}

// Validate checks the request by itself. The error is an [*InvalidRequestError].
func (r ReleaseRequest) Validate() error {
	c := &checker{}
	if r.Task != "" {
		c.checkTaskName("task", r.Task)
		return c.requestError()
	}
	c.checkClient(r.Client)
	switch n := len(r.Resources); {
	case n == 0:
		c.add("resources", "is empty", "give the IDs of resources that the client has created")
	case n > MaxBatch:
		c.add("resources", fmt.Sprintf("has %d; a request takes up to %d", n, MaxBatch), "send several requests")
	}
	return c.requestError()
}

func (c *checker) checkResource(r *Resource, path func(field string) string) {
	if r.ID != 0 {
		c.add(path("id"), "is set", "leave it out: the queue gives the ID")
	}
	c.checkFunction(func() string { return path("function") }, r.Function)
	c.checkArguments(path, r.Args, r.Kwargs, nil)
}

func (c *checker) checkCaller(client, field string, number uint64) {
	c.checkClient(client)
	if number == 0 {
		c.add(field, "missing", "count the requests of the client from 1")
	}
}

func (c *checker) checkClient(client string) {
	switch {
	case client == "":
		c.add("client", "missing", "give the name of the one who asks; it tells requests that are sent again from new ones")
	case len(client) > MaxFunctionName || !printableName(client):
		c.add("client", quote(client)+" is no name", fmt.Sprintf("give up to %d bytes of visible text", MaxFunctionName))
	}
}

// checkClosure makes paths only where there is something to complain about:
// there are a thousand closures in a request and hardly ever a problem.
func (c *checker) checkClosure(closure *Closure, path func(field string) string) {
	c.checkFunction(func() string { return path("function") }, closure.Function)
	if n := len(closure.Resources); n > MaxClosureResources {
		c.add(path("resources"), fmt.Sprintf("has %d; a closure uses up to %d resources", n, MaxClosureResources), "put several into one resource")
		return
	}
	c.checkArguments(path, closure.Args, closure.Kwargs, closure.Resources)
	o := closure.Options
	if o == nil {
		return
	}
	if len(o.Key) > MaxFunctionName || o.Key != "" && !printableName(o.Key) {
		c.add(path("options.key"), quote(o.Key)+" is no key", fmt.Sprintf("give up to %d bytes of visible text", MaxFunctionName))
	}
	if o.Retry && o.Key == "" {
		c.add(path("options.retry"), "is set without a key", "give the key of the closure that has failed")
	}
	if o.Task != "" {
		c.checkTaskName(path("options.task"), o.Task)
	}
	if o.Priority < -MaxPriority || o.Priority > MaxPriority {
		c.add(path("options.priority"), fmt.Sprintf("must be from %d to %d, is %d", -MaxPriority, MaxPriority, o.Priority), "higher ones go first, and 0 is the default")
	}
	if o.Retries < 0 {
		c.add(path("options.retries"), fmt.Sprintf("must not be negative, is %d", o.Retries), "leave it out for none")
	}
	c.checkDuration(path("options.timeout"), &o.Timeout, orZero)
}

func (c *checker) checkFunction(path func() string, name string) {
	switch {
	case name == "":
		c.add(path(), "missing", "name a function that the tasks have registered")
	case len(name) > MaxFunctionName:
		c.add(path(), fmt.Sprintf("%s has %d bytes; a function's name has up to %d", quote(name), len(name), MaxFunctionName), "register it under a shorter one")
	case !printableName(name):
		c.add(path(), quote(name)+" is no name of a function", "give visible text")
	}
}

func (c *checker) checkArguments(path func(string) string, args, kwargs json.RawMessage, resources []uint64) {
	if size := len(args) + len(kwargs); size > MaxClosureBytes {
		c.add(path("args"), fmt.Sprintf("the arguments have %d bytes; they may have %d", size, MaxClosureBytes), "pass large data in files")
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
		c.add(path(field), "is not JSON: "+quote(string(value)), "give "+what+" such as "+example)
	case text[0] != first:
		c.add(path(field), fmt.Sprintf("must be %s, is %s", what, quote(string(value))), "give one such as "+example)
	case bytes.Contains(value, []byte(reservedKeys)):
		c.checkStandIns(path, field, value, resources)
	}
}

// reservedKeys is how the keys begin of objects that stand for something else.
const reservedKeys = "$clusterrun."

// checkStandIns looks at the objects among arguments that stand for something
// else. Only resources may: what another closure will return is no argument
// (CC-24, D-13).
func (c *checker) checkStandIns(path func(string) string, field string, value json.RawMessage, resources []uint64) {
	var decoded any
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&decoded); err != nil {
		return // checked before
	}
	walk(decoded, func(key string, value any) {
		if key != ResourceKey {
			c.add(path(field), fmt.Sprintf("has %s, and only a per-worker resource can be among the arguments", quote(key)),
				"fetch the value of the other closure, and pass that")
			return
		}
		number, _ := value.(json.Number)
		id, err := strconv.ParseUint(number.String(), 10, 64)
		if err != nil || !slices.Contains(resources, id) {
			c.add(path(field), fmt.Sprintf("uses resource %s, which is not in the list of resources that it uses", quote(fmt.Sprint(value))), "list its ID there")
		}
	})
}

// walk finds the objects with one key that is reserved.
func walk(value any, found func(key string, value any)) {
	switch v := value.(type) {
	case []any:
		for _, e := range v {
			walk(e, found)
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if len(v) == 1 && strings.HasPrefix(key, reservedKeys) {
				found(key, v[key])
			} else {
				walk(v[key], found)
			}
		}
	}
}

// printableName reports whether a name can be shown in one line and passes through
// JSON unchanged.
func printableName(name string) bool {
	return utf8.ValidString(name) && strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// maxListed bounds the names that a message lists.
const maxListed = 20

// UnknownTask is the problem that the run has no such task to call a closure, which would
// wait for it for ever. tasks are those there are.
func UnknownTask(path, name string, tasks []string) Problem {
	p := Problem{Path: path, Message: "the run has no task " + quote(name), Remedy: "it has " + AndMore(tasks, maxListed)}
	p.Message, p.Remedy = printable(p.Message), printable(p.Remedy)
	return p
}

// UnknownFunction is the problem that no task has registered a function.
// registered are the names that tasks have, sorted.
func UnknownFunction(path, name string, registered []string) Problem {
	p := Problem{Path: path, Message: "no task has registered a function " + quote(name)}
	var listed []string
	for _, r := range registered[:min(len(registered), maxListed)] {
		listed = append(listed, quote(r))
	}
	switch more := len(registered) - len(listed); {
	case len(registered) == 0:
		p.Remedy = "the tasks that serve have registered none"
	case more > 0:
		p.Remedy = fmt.Sprintf("registered are %s and %d more", strings.Join(listed, ", "), more)
	default:
		p.Remedy = "registered are " + strings.Join(listed, ", ")
	}
	if meant := nearest(name, registered); meant != "" {
		p.Remedy = "did you mean " + quote(meant) + "? " + strings.ToUpper(p.Remedy[:1]) + p.Remedy[1:]
	}
	p.Message, p.Remedy = printable(p.Message), printable(p.Remedy)
	return p
}
