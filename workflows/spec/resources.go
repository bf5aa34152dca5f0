package spec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// Resources are a host's GPUs or CPUs that are divided among its tasks: ["auto"] means all of them;
// others are listed by number ("0"), by range ("0-3") or, for devices, by name (a UUID). nil means
// that the field was not given, and an empty list means none.
//
// In JSON and YAML they are a string ("auto", "0-3,8") or a list ([0, 1, "GPU-1"]).
type Resources []string

// resourcesAuto, as the only item of [Resources], means everything on the host.
const resourcesAuto = "auto"

// Auto reports whether r means all host resources.
func (r Resources) Auto() bool { return len(r) == 1 && r[0] == resourcesAuto }

// Expand lists the items of r, with ranges written out. r must be valid, but not [Resources.Auto].
func (r Resources) Expand() []string {
	list := make([]string, 0, len(r))
	for _, item := range r {
		first, last, ok := rangeOf(item)
		if !ok {
			list = append(list, item)
			continue
		}
		for n := first; n <= last && len(list) < maxResources; n++ {
			list = append(list, strconv.Itoa(n))
		}
	}
	return list
}

// maxResources limits the CPUs and devices of a host.
const maxResources = 8192

// rangeOf parses "0-3". Device names may also contain hyphens.
func rangeOf(item string) (first, last int, ok bool) {
	a, b, found := strings.Cut(item, "-")
	if !found {
		return 0, 0, false
	}
	first, err1 := strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	return first, last, err1 == nil && err2 == nil
}

// MarshalJSON encodes "auto" or a list.
func (r Resources) MarshalJSON() ([]byte, error) {
	if r.Auto() {
		return json.Marshal(resourcesAuto)
	}
	return json.Marshal([]string(r))
}

// UnmarshalJSON parses the output of [Resources.MarshalJSON]. For specs that people write, use
// [Decode], which describes their mistakes.
func (r *Resources) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*r = strings.Split(text, ",")
		return nil
	}
	return json.Unmarshal(b, (*[]string)(r))
}

// ResourcesOf parses a flag's value, which is "auto", "0-3,8" or, for none, "".
func ResourcesOf(text string) Resources {
	if text == "" {
		return Resources{}
	}
	return strings.Split(text, ",")
}

var resourcesType = reflect.TypeFor[Resources]()

func (c *checker) fillResources(path, key string, n *node, v reflect.Value) bool {
	var list Resources
	switch n.kind {
	case kindText:
		list = ResourcesOf(n.text)
	case kindNumber:
		// YAML parses a single number as a number.
		list = Resources{n.text}
	case kindList:
		list = Resources{}
		for i := range n.items {
			item := &n.items[i]
			if item.kind != kindText && item.kind != kindNumber {
				c.malform(indexPath(path, i), item.line, "must be a number or a string, not "+item.describe(), fieldOf(key).remedy)
				return false
			}
			list = append(list, item.text)
		}
	default:
		return c.mismatch(path, key, n, v.Type())
	}
	v.Set(reflect.ValueOf(list))
	return true
}

var (
	deviceRegexp = lazyregexp.New(devicesPattern)
	cpuRegexp    = lazyregexp.New(cpusPattern)
)

func checkDevices(c *checker, path string, r Resources) { r.check(c, path, deviceRegexp) }
func checkCPUs(c *checker, path string, r Resources)    { r.check(c, path, cpuRegexp) }

// checkGPUShares refuses task types that use all GPUs of a host if another type uses exclusive
// GPUs.
func checkGPUShares(c *checker, s *RunSpec) {
	auto := slices.IndexFunc(s.Tasks, func(g TaskGroup) bool {
		list, _ := s.DevicesOf(g.Type)
		return s.GPUsPerTaskOf(g.Type) == 0 && list.Auto()
	})
	some := slices.IndexFunc(s.Tasks, func(g TaskGroup) bool { return s.GPUsPerTaskOf(g.Type) > 0 })
	if auto >= 0 && some >= 0 {
		c.add("gpus_per_task", fmt.Sprintf("tasks of type %s need their own GPUs, but tasks of type %s take all GPUs", s.Tasks[some].Type, s.Tasks[auto].Type),
			"set gpus_per_task for both, or list the devices of both")
	}
}

// checkGPUs refuses a spec that combines both ways to assign GPUs to tasks.
func checkGPUs(c *checker, path string, devices Resources, perTask *int) {
	if devices != nil && perTask != nil {
		c.add(fieldPath(path, "gpus_per_task"), "devices is also set", "keep one: devices to divide a list among tasks, or gpus_per_task for a number per task")
	}
}

func (r Resources) check(c *checker, path string, syntax func() *regexp.Regexp) {
	if c.isMalformed(path) || len(r) == 0 || r.Auto() {
		return
	}
	var seen []string
	for i, item := range r {
		p := path
		if len(r) > 1 {
			p = indexPath(path, i)
		}
		switch first, last, ok := rangeOf(item); {
		case item == resourcesAuto:
			c.add(p, "auto means all of them", "write it alone, or omit it")
			return
		case !syntax().MatchString(item) || strings.Contains(item, ","):
			c.add(p, Quote(item)+" is not a valid item", resourcesRemedy)
			return
		case ok && (first > last || last >= maxResources):
			c.add(p, fmt.Sprintf("%s is not a range of numbers below %d", Quote(item), maxResources), "put the lower number first, such as 0-3")
			return
		}
		for _, one := range (Resources{item}).Expand() {
			if slices.Contains(seen, one) {
				c.add(p, one+" is given twice", "remove one of them")
				return
			}
			seen = append(seen, one)
		}
	}
}

// resourcesSchema accepts a string or a list.
func resourcesSchema(f field, nullable bool) object {
	types := []string{"string", "array", "integer"}
	if nullable {
		types = append(types, "null")
	}
	o := object{{"type", types}}
	if f.doc != "" {
		o = append(o, entry{"description", f.doc})
	}
	if f.syntax.pattern != "" {
		o = append(o, entry{"pattern", emptyOr(f.syntax.pattern, true)})
	}
	return append(o, entry{"minimum", 0}, entry{"items", object{
		{"type", []string{"integer", "string"}}, {"minimum", 0},
	}})
}

const (
	// MinMemory is the minimum memory limit. No program starts with less memory.
	MinMemory = 1 << 20
	// CoreUnlimited and CoreNone are the non-numeric sizes of core dumps.
	CoreUnlimited, CoreNone = "unlimited", "none"
)

// LimitsOf returns a task's limits.
func (s *RunSpec) LimitsOf(t Task) Limits {
	g, run := s.group(t.Type).Limits, s.Limits
	return Limits{
		Memory: cmp.Or(g.Memory, run.Memory), CPUs: cmp.Or(g.CPUs, run.CPUs), PIDs: cmp.Or(g.PIDs, run.PIDs),
		NoFile: cmp.Or(g.NoFile, run.NoFile), Core: cmp.Or(g.Core, run.Core),
	}
}

// MemoryBytes returns the memory limit. 0 means no limit.
func (l Limits) MemoryBytes() int64 { return bytesOf(l.Memory) }

// CoreBytes returns the maximum size of a core dump; ok is false if it is not set.
func (l Limits) CoreBytes() (n uint64, ok bool) {
	switch l.Core {
	case "":
		return 0, false
	case CoreUnlimited:
		return math.MaxUint64, true
	}
	return uint64(bytesOf(l.Core)), true
}

// QuotaBytes returns how many bytes the run may write to output files on each host. 0 means no
// limit.
func (l Logs) QuotaBytes() int64 { return bytesOf(l.Quota) }

// bytesOf parses a valid size.
func bytesOf(text string) int64 {
	n, err := ParseSize(text)
	if err != nil {
		return 0
	}
	return n
}

func checkMemory(c *checker, path, text string) { checkSizeOf(c, path, text, MinMemory, "1MiB") }
func checkQuota(c *checker, path, text string)  { checkSizeOf(c, path, text, MinQuota, "4KiB") }

// MinQuota is the minimum output quota. A smaller quota would not leave space for the note about
// dropped output.
const MinQuota = 4 << 10

func checkSizeOf(c *checker, path, text string, least int64, remedy string) {
	if text == "" {
		return
	}
	n, err := ParseSize(text)
	c.addError(path, err)
	if err == nil && n < least {
		c.add(path, fmt.Sprintf("must be at least %s, not %s", remedy, Quote(text)), "omit it to set no limit")
	}
}

func checkCore(c *checker, path, text string) {
	if text == CoreUnlimited || text == CoreNone {
		return
	}
	if _, err := ParseSize(text); text != "" && err != nil {
		c.add(path, Quote(text)+" is not a valid core dump size", "write none, unlimited, or a size such as 1GiB")
	}
}
