package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/lazyregexp"
)

// Constraint is a condition on hosts, such as "gpu.model == H100".
type Constraint struct {
	// Key is one of [ConstraintKeys], or a label.
	Key string
	// Op is one of == != >= <= > <.
	Op string
	// Value is the operand as written, and Number its value as a number or a size in bytes.
	Value    string
	Number   float64
	IsNumber bool
}

// The built-in keys of constraints. All other keys are labels.
const (
	KeyName      = "name"
	KeyGPUModel  = "gpu.model"
	KeyGPUCount  = "gpu.count"
	KeyGPUMemory = "gpu.memory"
	KeyMemory    = "memory"
	KeyCPUs      = "cpus"
	KeySlots     = "slots"
)

// ConstraintKeys lists the built-in keys, which cannot be labels.
var ConstraintKeys = []string{KeyName, KeyGPUModel, KeyGPUCount, KeyGPUMemory, KeyMemory, KeyCPUs, KeySlots}

var constraintOps = []string{"==", "!=", ">=", "<=", ">", "<"}

const constraintRemedy = `for example, "gpu.model == H100", "memory >= 512GiB" or "rack == r7"`

// maxConstraint limits a constraint, in bytes.
const maxConstraint = 500

var labelRegexp = lazyregexp.New(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?$`)

// CheckLabel returns an error if name cannot be used as a host label in a constraint.
func CheckLabel(name string) error {
	switch {
	case slices.Contains(ConstraintKeys, name) || strings.HasPrefix(name, "gpu."):
		return valueError{Quote(name) + " is a built-in key of constraints", "choose another name"}
	case !labelRegexp().MatchString(name):
		return valueError{Quote(name) + " is not a valid label name", "use up to 128 letters, digits and . _ / -, starting and ending with a letter or a digit"}
	}
	return nil
}

// ParseConstraint parses "key op value". The value may be in double quotes.
func ParseConstraint(text string) (Constraint, error) {
	bad := func(at int, format string, args ...any) (Constraint, error) {
		return Constraint{}, valueError{fmt.Sprintf("%s, position %d: %s", Quote(text), at+1, fmt.Sprintf(format, args...)), constraintRemedy}
	}
	if len(text) > maxConstraint {
		return bad(maxConstraint, "is longer than %d bytes", maxConstraint)
	}
	at := strings.IndexAny(text, "=!<>")
	if at < 0 {
		return bad(len(text), "the operator is missing; use %s", orList(constraintOps))
	}
	c := Constraint{Key: strings.TrimSpace(text[:at])}
	start := len(text) - len(strings.TrimLeft(text, " \t"))
	switch {
	case c.Key == "":
		return bad(at, "the key is missing")
	case !labelRegexp().MatchString(c.Key):
		return bad(start, "%s is not a valid key", Quote(c.Key))
	case strings.HasPrefix(c.Key, "gpu.") && !slices.Contains(ConstraintKeys, c.Key):
		return bad(start, "there is no %s; use %s", c.Key, orList(ConstraintKeys[1:4]))
	}
	i := slices.IndexFunc(constraintOps, func(op string) bool { return strings.HasPrefix(text[at:], op) })
	if i < 0 {
		return bad(at, "unknown operator %s; use %s", Quote(text[at:at+1]), orList(constraintOps))
	}
	c.Op = constraintOps[i]
	rest := text[at+len(c.Op):]
	value := len(text) - len(strings.TrimLeft(rest, " \t"))
	c.Value = strings.TrimSpace(rest)
	if quoted, err := strconv.Unquote(c.Value); err == nil && c.Value[0] == '"' {
		c.Value = quoted
	} else if j := strings.IndexAny(c.Value, `"=!<>`); j >= 0 {
		return bad(value+j, "unexpected %s", Quote(c.Value[j:j+1]))
	}
	if c.Value == "" {
		return bad(value, "the value is missing")
	}
	c.Number, c.IsNumber = ParseNumber(c.Value)
	wantsNumber := slices.Contains([]string{KeyGPUCount, KeyGPUMemory, KeyMemory, KeyCPUs, KeySlots}, c.Key)
	compares := c.Op != "==" && c.Op != "!="
	switch {
	case !c.IsNumber && wantsNumber:
		return bad(value, "%s can only be compared with a number or a size such as 512GiB, not with %s", c.Key, Quote(c.Value))
	case compares && (c.Key == KeyName || c.Key == KeyGPUModel):
		return bad(at, "%s is a string, which %s cannot compare", c.Key, c.Op)
	case compares && !c.IsNumber:
		return bad(value, "%s compares numbers, not %s", c.Op, Quote(c.Value))
	}
	return c, nil
}

// sizeUnits are the units of sizes: powers of 1024, and of 1000.
var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40},
	{"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12},
}

// ParseNumber parses a number, or a size such as 512GiB, which it returns in bytes.
func ParseNumber(text string) (float64, bool) {
	unit := 1.0
	for _, u := range sizeUnits {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = strings.TrimSpace(number), u.bytes
			break
		}
	}
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n * unit, err == nil
}

// ParseSize parses a size such as 512GiB or 80GB, and returns it in bytes.
func ParseSize(text string) (int64, error) {
	n, ok := ParseNumber(text)
	if !ok || n >= 1<<62 {
		return 0, valueError{Quote(text) + " is not a size", "for example, 512GiB or 80GB"}
	}
	return int64(n), nil
}
