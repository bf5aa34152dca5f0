package spec

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

var (
	durationType = reflect.TypeFor[Duration]()
	overrideType = reflect.TypeFor[Override]()
)

// fill stores the node in v, and reports everything that does not fit. Fields and entries that the
// node omits keep their values. It stores the parts that fit, so that the rules can be checked in
// the same pass, and therefore keeps the length of lists. key is v's key in the table, which
// improves the remedies. fill reports whether the node itself was of the right kind.
func (c *checker) fill(path, key string, n *node, v reflect.Value) bool {
	if v.Type() == durationType {
		return c.fillDuration(path, key, n, v)
	}
	if v.Type() == resourcesType {
		return c.fillResources(path, key, n, v)
	}
	if v.Type() == disconnectType {
		return c.fillDisconnect(path, key, n, v)
	}
	if v.Type() == hostCountType {
		return c.fillHostCount(path, key, n, v)
	}
	if v.Type() == variableType {
		return c.fillVariable(path, key, n, v)
	}
	if v.Type() == hostsType && (n.kind == kindNumber || n.kind == kindText) {
		return c.fill(fieldPath(path, "count"), "Hosts.count", n, v.FieldByName("Count"))
	}
	if v.Type() == shipType && n.kind == kindText {
		return c.fill(fieldPath(path, "dir"), "Ship.dir", n, v.FieldByName("Dir"))
	}
	switch v.Kind() {
	case reflect.Pointer:
		e := reflect.New(v.Type().Elem())
		ok := c.fill(path, key, n, e.Elem())
		if ok {
			v.Set(e)
		}
		return ok
	case reflect.Struct:
		return c.fillStruct(path, key, n, v)
	case reflect.Map:
		return c.fillMap(path, key, n, v)
	case reflect.Slice:
		return c.fillList(path, key, n, v)
	case reflect.String:
		if scalar := n.kind == kindNumber || n.kind == kindBool; n.kind != kindText && (!c.textOfAny || !scalar) {
			return c.mismatch(path, key, n, v.Type())
		}
		v.SetString(n.text)
	case reflect.Bool:
		// YAML has several spellings of booleans.
		b, err := strconv.ParseBool(strings.ToLower(n.text))
		if n.kind != kindBool || err != nil {
			return c.mismatch(path, key, n, v.Type())
		}
		v.SetBool(b)
	case reflect.Int:
		i, ok := n.wholeNumber()
		if !ok {
			return c.mismatch(path, key, n, v.Type())
		}
		v.SetInt(int64(i))
	default:
		panic("spec: no rule for reading a " + v.Type().String())
	}
	return true
}

func (c *checker) fillStruct(path, key string, n *node, v reflect.Value) bool {
	if n.kind != kindObject {
		return c.mismatch(path, key, n, v.Type())
	}
	seen := map[string]int{}
	for i := range n.members {
		m := &n.members[i]
		p := fieldPath(path, m.name)
		if c.givenTwice(seen, p, m) {
			continue
		}
		index, ok := fieldNamed(v.Type(), m.name)
		if !ok {
			c.unknownField(path, v.Type(), n, m)
			continue
		}
		// An empty value in YAML and null in JSON mean "not given".
		if m.value.kind != kindNull {
			c.fill(p, fieldKey(v.Type(), m.name), &m.value, v.Field(index))
		}
	}
	return true
}

func (c *checker) fillMap(path, key string, n *node, v reflect.Value) bool {
	if n.kind != kindObject {
		return c.mismatch(path, key, n, v.Type())
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	seen := map[string]int{}
	for i := range n.members {
		m := &n.members[i]
		p := fieldPath(path, m.name)
		if c.givenTwice(seen, p, m) {
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		// An empty override does not change anything, whereas an empty variable is probably a
		// mistake.
		if m.value.kind == kindNull && e.Type() == overrideType {
			continue
		}
		if c.fill(p, key+".*", &m.value, e) {
			v.SetMapIndex(reflect.ValueOf(m.name), e)
		}
	}
	return true
}

func (c *checker) fillList(path, key string, n *node, v reflect.Value) bool {
	if n.kind != kindList {
		return c.mismatch(path, key, n, v.Type())
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	for i := range n.items {
		p := indexPath(path, i)
		if c.lines != nil {
			c.lines[p] = n.items[i].line
		}
		c.fill(p, key+"[]", &n.items[i], v.Index(i))
	}
	return true
}

func (c *checker) fillDuration(path, key string, n *node, v reflect.Value) bool {
	if n.kind != kindText {
		return c.mismatch(path, key, n, v.Type())
	}
	d, err := ParseDuration(n.text)
	if err != nil {
		c.malform(path, n.line, Quote(n.text)+" is not a duration", durationRemedy)
		return false
	}
	v.SetInt(int64(d))
	return true
}

// givenTwice reports whether the member's name is a duplicate and, if so, adds a problem. It
// records the member's line.
func (c *checker) givenTwice(seen map[string]int, path string, m *member) bool {
	first, twice := seen[m.name]
	if !twice {
		seen[m.name] = m.line
		if c.lines != nil {
			c.lines[path] = m.line
		}
		return false
	}
	message := "given twice"
	if c.lines != nil {
		message += fmt.Sprintf(", first in line %d", first)
	}
	c.malform(path, m.line, message, "remove one of them")
	return true
}

// unknownField adds a problem about an unknown member of n, and suggests a field of t.
func (c *checker) unknownField(path string, t reflect.Type, n *node, m *member) {
	var remedy string
	known := fieldNames(t)
	near := Nearest(m.name, known)
	var elsewhere string
	if c.document == nil {
		elsewhere = placeOf(m.name)
	}
	switch {
	case near != "" && foldName(near) == foldName(m.name):
		remedy = "did you mean " + near + "?"
	case c.document == nil && path == "" && isTaskTypeOfTF(m.name):
		remedy = fmt.Sprintf("write tasks: [{type: %s, count: 1}]", m.name)
	case elsewhere == m.name:
		remedy = "it belongs at the top level of the spec"
	case elsewhere != "":
		remedy = "did you mean " + elsewhere + "?"
	case near != "":
		remedy = "did you mean " + near + "?"
	default:
		remedy = "its fields are " + strings.Join(known, ", ")
	}
	if _, given := n.get(near); near != "" && !given {
		// The field is present but misspelled, so it must not be reported as missing.
		c.malformed = setKey(c.malformed, fieldPath(path, near))
	}
	c.malform(fieldPath(path, m.name), m.line, "not a field of "+structTitle(t), remedy)
}

// mismatch adds a problem about a value of the wrong type.
func (c *checker) mismatch(path, key string, n *node, want reflect.Type) bool {
	c.malform(path, n.line, fmt.Sprintf("must be %s, not %s", typeTitle(want), n.describe()), typeRemedy(key, n, want))
	return false
}

func typeTitle(t reflect.Type) string {
	switch {
	case t == durationType:
		return "a duration"
	case t == resourcesType:
		return "auto or a list"
	case t == hostsType:
		return "a number or an object"
	case t == hostCountType:
		return "a whole number or a range"
	case t == shipType:
		return "a string or an object"
	case t.Kind() == reflect.Pointer:
		return typeTitle(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return "a list of objects"
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Int:
		return "a list of numbers"
	case t.Kind() == reflect.Slice:
		return "a list of strings"
	case t.Kind() == reflect.Map, t.Kind() == reflect.Struct:
		return "an object"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Int:
		return "a whole number"
	default:
		return "a string"
	}
}

// typeRemedy returns how to write what was probably meant or, if that is unclear, the field's
// example.
func typeRemedy(key string, n *node, want reflect.Type) string {
	switch {
	case want == durationType && n.kind == kindNumber:
		return fmt.Sprintf("write it with a unit: %s", strconv.Quote(cut(n.text)+"s"))
	case want == durationType:
		return durationRemedy
	case fieldOf(key).enum != nil:
		return "write " + orList(fieldOf(key).enum)
	case fieldOf(key).remedy != "":
		return fieldOf(key).remedy
	case want.Kind() == reflect.String && (n.kind == kindNumber || n.kind == kindBool):
		return "write it in quotes: " + Quote(n.text)
	case want.Kind() == reflect.String && n.kind == kindNull:
		return `write "" for an empty string, or omit it`
	case want.Kind() == reflect.Int && n.kind == kindText && decimal(n.text):
		return "write it without quotes: " + n.text
	case want.Kind() == reflect.Bool:
		return "write true or false, without quotes"
	case want.Kind() == reflect.Slice && want.Elem().Kind() == reflect.String && n.kind == kindText:
		return "write each separately: " + quotedList(strings.Fields(n.text))
	case want.Kind() == reflect.Slice && want.Elem().Kind() == reflect.Int && n.kind == kindNumber:
		return "write a list: [" + cut(n.text) + "]"
	case fieldOf(key).example != "":
		return "for example, " + fieldOf(key).example
	default:
		return ""
	}
}

func quotedList(words []string) string {
	if len(words) == 0 {
		return "[]"
	}
	list := make([]string, 0, len(words))
	for _, w := range words[:min(len(words), 8)] {
		list = append(list, Quote(w))
	}
	if len(words) > len(list) {
		list = append(list, "…")
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func decimal(text string) bool {
	i, err := strconv.Atoi(text)
	return err == nil && strconv.Itoa(i) == text
}
