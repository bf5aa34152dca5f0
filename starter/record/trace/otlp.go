package trace

import (
	"strconv"
	"time"
)

// Traces is an OTLP request, with the names and types of its JSON form (OTLP 1.10).
type Traces struct {
	ResourceSpans []ResourceSpans `json:"resourceSpans"`
}

// ResourceSpans are the spans of one service.
type ResourceSpans struct {
	Resource   Resource     `json:"resource"`
	ScopeSpans []ScopeSpans `json:"scopeSpans"`
}

// Resource identifies the service.
type Resource struct {
	Attributes []Attribute `json:"attributes"`
}

// ScopeSpans are the spans of one program.
type ScopeSpans struct {
	Scope Scope  `json:"scope"`
	Spans []Span `json:"spans"`
}

// Scope identifies the program.
type Scope struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Span is an operation with a start and an end. Its IDs are in hex, and its times in
// nanoseconds since 1970.
type Span struct {
	TraceID    string      `json:"traceId"`
	SpanID     string      `json:"spanId"`
	Parent     string      `json:"parentSpanId,omitempty"`
	Name       string      `json:"name"`
	Kind       int         `json:"kind"`
	Start      string      `json:"startTimeUnixNano"`
	End        string      `json:"endTimeUnixNano"`
	Attributes []Attribute `json:"attributes"`
	Status     Status      `json:"status"`
}

// Status is the outcome of a span.
type Status struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// These are numbers of OTLP.
const (
	kindInternal = 1
	codeOK       = 1
	codeError    = 2
)

// Attribute is an additional fact about a span.
type Attribute struct {
	Key   string `json:"key"`
	Value Value  `json:"value"`
}

// Value is either a text or a number.
type Value struct {
	Text   *string `json:"stringValue,omitempty"`
	Number *string `json:"intValue,omitempty"`
}

func text(key, value string) Attribute { return Attribute{key, Value{Text: &value}} }

func number(key string, value int) Attribute {
	n := strconv.Itoa(value)
	return Attribute{key, Value{Number: &n}}
}

// nanos returns a time in OTLP's form.
func nanos(t time.Time) string { return strconv.FormatInt(t.UnixNano(), 10) }
