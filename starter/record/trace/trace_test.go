package trace

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/clusterrun/clusterrun/starter"
	"github.com/clusterrun/clusterrun/starter/record"
	"github.com/clusterrun/clusterrun/tests/must"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

func at(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0).UTC() }

// failed returns a run whose second task was started again, and failed again.
func failed() *record.Account {
	first := spec.Exit{Restart: 0, PID: 7, Cause: spec.CauseOrigin, ExitCode: 1, Started: at(6), Ended: at(9), Message: "no luck\n"}
	last := spec.Exit{Restart: 1, PID: 9, Cause: spec.CauseOrigin, ExitCode: 3, Started: at(10), Ended: at(30), Message: "boom"}
	return &record.Account{
		Status: &starter.Status{
			RunID: "iris-x2k4", ExecutionID: "0190c7a5-3c5e-7d1f-8a2b-4c6d8e0f1a2b", Name: "iris", Owner: "ada@vm", Queue: "clusterrun",
			Started: at(0), Ended: at(33), Verdict: spec.VerdictFailed,
			Result: &spec.RunResult{Verdict: spec.VerdictFailed, ExitCode: 3, Message: "worker-1 exited with exit code 3", Tasks: []spec.TaskResult{
				{Name: "worker-0", Type: "worker", Host: "a", Exit: &spec.Exit{PID: 6, Cause: spec.CauseCollateral, ExitCode: -15, Started: at(6), Ended: at(31), Message: "bye"}},
				{Name: "worker-1", Type: "worker", Rank: 1, Host: "b", Restarts: 1, Exit: &last, Exits: []spec.Exit{first, last}},
				{Name: "worker-2", Type: "worker", Rank: 2, Exit: &spec.Exit{Cause: spec.CauseHostLost, ExitCode: -1}}, // never started
			}},
		},
		Phases: []record.Phase{{Name: "queued", Seconds: 2}, {Name: "running", Seconds: 31}},
	}
}

func rounds() []starter.Round {
	return []starter.Round{{Name: "epoch", Round: 1, Opened: at(7), Closed: at(8)}, {Name: "epoch", Round: 2, Opened: at(8), Closed: at(12)}}
}

// A trace is valid OpenTelemetry: its own types know all fields, and their values are right.
func TestTrace(t *testing.T) {
	text := must.Get(json.Marshal(New(failed(), rounds(), "training")))(t)
	var read otlp.TracesData
	require.NoError(t, protojson.Unmarshal(text, &read), "%s", text)
	require.Len(t, read.ResourceSpans, 1)
	assert.Equal(t, "training", read.ResourceSpans[0].Resource.Attributes[0].Value.GetStringValue())
	require.Len(t, read.ResourceSpans[0].ScopeSpans, 1)
	assert.Equal(t, spec.Version, read.ResourceSpans[0].ScopeSpans[0].Scope.Version)

	type span struct {
		name       string
		start, end int
		code       otlp.Status_StatusCode
		message    string
	}
	var spans []span
	ids := map[string]bool{}
	all := read.ResourceSpans[0].ScopeSpans[0].Spans
	for i, s := range all {
		spans = append(spans, span{s.Name, int(s.StartTimeUnixNano/1e9) - 1000, int(s.EndTimeUnixNano/1e9) - 1000, s.Status.GetCode(), s.Status.GetMessage()})
		assert.Equal(t, otlp.Span_SPAN_KIND_INTERNAL, s.Kind)
		assert.Equal(t, all[0].TraceId, s.TraceId)
		ids[string(s.SpanId)] = true
		if i == 0 {
			assert.Empty(t, s.ParentSpanId)
		} else {
			assert.Equal(t, all[0].SpanId, s.ParentSpanId)
		}
	}
	assert.Len(t, ids, len(all), "each has an ID of its own")
	assert.Equal(t, []span{
		{"run iris", 0, 33, otlp.Status_STATUS_CODE_ERROR, "worker-1 exited with exit code 3"},
		{"queued", 0, 2, otlp.Status_STATUS_CODE_UNSET, ""},
		{"running", 2, 33, otlp.Status_STATUS_CODE_UNSET, ""},
		{"worker-0", 6, 31, otlp.Status_STATUS_CODE_UNSET, ""},
		{"worker-1", 6, 9, otlp.Status_STATUS_CODE_ERROR, "no luck"},
		{"worker-1", 10, 30, otlp.Status_STATUS_CODE_ERROR, "boom"},
		{"barrier epoch", 7, 8, otlp.Status_STATUS_CODE_UNSET, ""},
		{"barrier epoch", 8, 12, otlp.Status_STATUS_CODE_UNSET, ""},
	}, spans)
	attributes := map[string]any{}
	for _, a := range all[5].Attributes {
		attributes[a.Key] = a.Value.GetStringValue()
		if n := a.Value.GetIntValue(); n != 0 {
			attributes[a.Key] = n
		}
	}
	assert.Equal(t, "b", attributes["host.name"])
	assert.Equal(t, int64(3), attributes["process.exit.code"])
	assert.Equal(t, int64(9), attributes["process.pid"])
	assert.Equal(t, int64(1), attributes["clusterrun.task.restart"])
	assert.Equal(t, "origin", attributes["clusterrun.task.cause"])

	// IDs are hex in JSON, unlike protobuf's own JSON, and identify the execution.
	first := New(failed(), rounds(), "training").ResourceSpans[0].ScopeSpans[0].Spans[0]
	assert.Equal(t, "0190c7a53c5e7d1f8a2b4c6d8e0f1a2b", first.TraceID)
	assert.Regexp(t, "^[0-9a-f]{16}$", first.SpanID)
}

func TestCollectorOf(t *testing.T) {
	of := func(variables map[string]string) (Collector, error) {
		return CollectorOf(func(name string) string { return variables[name] })
	}
	for want, variables := range map[string]map[string]string{
		"http://localhost:4318/v1/traces": {},
		"http://jaeger:4318/v1/traces":    {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://jaeger:4318/"},
		"https://tempo/otlp/v1/traces":    {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://tempo/otlp"},
		"http://here:1/as/it/is?q":        {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://here:1/as/it/is?q", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://other"},
	} {
		c := must.Get(of(variables))(t)
		assert.Equal(t, want, c.URL)
	}
	c := must.Get(of(map[string]string{"OTEL_EXPORTER_OTLP_HEADERS": "a=1, authorization=Bearer%20x", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=2"}))(t)
	assert.Equal(t, http.Header{"A": {"2"}, "Authorization": {"Bearer x"}}, c.Headers)
	for _, wrong := range []map[string]string{
		{"OTEL_EXPORTER_OTLP_ENDPOINT": "jaeger:4318"}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "grpc://jaeger"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://"}, {"OTEL_EXPORTER_OTLP_HEADERS": "secret"}, {"OTEL_EXPORTER_OTLP_HEADERS": "a=%zz"},
	} {
		_, err := of(wrong)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestSend(t *testing.T) {
	answer, code := `{}`, 200
	var got []byte
	var asked *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r
		got, _ = io.ReadAll(r.Body)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, answer)
	}))
	defer s.Close()
	c := Collector{URL: s.URL + "/v1/traces", Headers: http.Header{"A": {"b"}}}
	trace := New(failed(), rounds(), "training")
	require.NoError(t, c.Send(t.Context(), trace))
	assert.Equal(t, "application/json", asked.Header.Get("Content-Type"))
	assert.Equal(t, "b", asked.Header.Get("A"))
	require.NoError(t, protojson.Unmarshal(got, new(otlp.TracesData)))

	answer = `{"partialSuccess": {"rejectedSpans": "2", "errorMessage": "too old"}}`
	require.ErrorContains(t, c.Send(t.Context(), trace), "did not take 2 of the spans: too old")
	answer, code = "no room\n", 503
	require.ErrorContains(t, c.Send(t.Context(), trace), "refuses the trace: 503 Service Unavailable no room")
	s.Close()
	require.ErrorContains(t, c.Send(t.Context(), trace), "send the trace: ")
}
