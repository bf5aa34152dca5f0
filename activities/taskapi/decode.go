package taskapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/activities/internal/wire"
	"github.com/clusterrun/clusterrun/activities/strictjson"
)

// Bounds of bodies, in bytes. An error that is longer than what is kept of it is
// cut and not refused, as far as that is reasonable.
const (
	maxSmall     = 64 << 10
	maxArrive    = 256 << 10 // a thousand participants by name
	maxErrorBody = 8 << 20
)

// body reads the whole body.
func (r *request) body(most int64) ([]byte, *wire.Problem) {
	b, err := io.ReadAll(http.MaxBytesReader(r.w, r.Body, most))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, &wire.Problem{Code: wire.CodeTooLarge, Message: fmt.Sprintf("the body has more than %d bytes, the limit", most)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &wire.Problem{Code: wire.CodeTooSlow, Message: fmt.Sprintf("the body did not come within %s", r.server.bodyPatience)}
	case err != nil:
		return nil, &wire.Problem{Code: wire.CodeInvalid, Message: "the body cannot be read: " + err.Error()}
	}
	// The wait at a barrier may be long.
	_ = http.NewResponseController(r.w).SetReadDeadline(time.Time{})
	return b, nil
}

// decode reads the body as a JSON object with the fields of v and no others. No
// body is an object without fields.
func (r *request) decode(v any, most int64) *wire.Problem {
	b, problem := r.body(most)
	if problem != nil {
		return problem
	}
	return decodeStrictly(b, v)
}

func decodeStrictly(b []byte, v any) *wire.Problem {
	if len(b) == 0 {
		return nil
	}
	err := strictjson.Decode(b, v)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, strictjson.ErrMore):
		return invalid("", err.Error())
	}
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		field := typ.Field
		if field == "" {
			return invalid("", fmt.Sprintf("the body is %s; want an object", article(typ.Value)))
		}
		if number, ok := strings.CutPrefix(typ.Value, "number "); ok && typ.Type.Kind() == reflect.Float64 {
			return invalid(field, "the number "+cutName(number)+" is too large")
		}
		return invalid(field, fmt.Sprintf("it is %s; want %s", article(typ.Value), inWords(typ.Type)))
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		field = strings.Trim(field, `"`)
		return invalid(cutName(field), "there is no such field; there are "+strings.Join(fieldsOf(reflect.TypeOf(v), ""), ", "))
	}
	return invalid("", "the body is not JSON: "+strings.TrimPrefix(err.Error(), "json: "))
}

// article says "an array".
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

// fieldsOf are the names of the fields of a struct in JSON, and after a dot those of
// the structs in it.
func fieldsOf(t reflect.Type, prefix string) []string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, prefix+name)
		if f.Type.Kind() == reflect.Pointer && f.Type.Elem().Kind() == reflect.Struct {
			names = append(names, fieldsOf(f.Type, prefix+name+".")...)
		}
	}
	return names
}
