// Package strictjson decodes requests, each of which is a single JSON object, into structs.
// [Decode] rejects unknown fields; otherwise a misspelled field, such as "prio" for "priority",
// would silently be ignored. Errors are worded for readers who do not write Go.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// Error describes a mistake in the input.
type Error struct {
	// Path is the field, such as "options.key", or empty for the whole input.
	Path    string
	Message string
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return "field " + e.Path + ": " + e.Message
}

// maxPath limits an unknown field's name in an error, in bytes.
const maxPath = 80

// Decode decodes text into the struct that v points to. The error is an [*Error].
func Decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return decode(d, v)
}

// DecodeKnown is like Decode, but ignores unknown fields, which may belong to a later version.
func DecodeKnown(text []byte, v any) error {
	return decode(json.NewDecoder(bytes.NewReader(text)), v)
}

func decode(d *json.Decoder, v any) error {
	err := d.Decode(v)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			return &Error{"", "unexpected data after the JSON object"}
		}
		return nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Error{"", "the JSON ends too early"}
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		wrong.Field = pathOf(reflect.TypeOf(v), wrong.Field)
		number, isNumber := strings.CutPrefix(wrong.Value, "number ")
		switch {
		case wrong.Field == "":
			return &Error{"", "it is " + article(wrong.Value) + "; want an object"}
		case isNumber && wrong.Type.Kind() == reflect.Float64:
			return &Error{wrong.Field, "the number " + shorten.Text(number, maxPath) + " is too large"}
		}
		return &Error{wrong.Field, fmt.Sprintf("it is %s; want %s", article(wrong.Value), inWords(wrong.Type))}
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return &Error{shorten.Text(strings.Trim(field, `"`), maxPath), "unknown field; the fields are " + strings.Join(fieldsOf(reflect.TypeOf(v), ""), ", ")}
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return &Error{"", "it is not JSON: " + err.Error()}
	}
	return &Error{"", strings.TrimPrefix(err.Error(), "json: ")} // from a type with its own UnmarshalJSON
}

// pathOf returns a field's path without the embedded structs that encoding/json includes.
func pathOf(t reflect.Type, path string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, rest, ok := strings.Cut(path, ".")
	if f, has := t.FieldByName(name); ok && has && f.Anonymous {
		return pathOf(f.Type, rest)
	}
	return path
}

// article returns kind with an indefinite article, such as "an array".
func article(kind string) string {
	if strings.IndexByte("aeiou", kind[0]) >= 0 {
		return "an " + kind
	}
	return "a " + kind
}

func inWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Uint64:
		return "a number from 0"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Float64, reflect.Int:
		return "a number"
	case reflect.Struct, reflect.Pointer:
		return "an object"
	}
	return "another type"
}

// fieldsOf returns the JSON names of a struct's fields. Names in nested structs are qualified
// with a dot.
func fieldsOf(t reflect.Type, prefix string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, fieldsOf(f.Type, prefix)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, prefix+name)
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			names = append(names, fieldsOf(f.Type, prefix+name+".")...)
		}
	}
	return names
}
