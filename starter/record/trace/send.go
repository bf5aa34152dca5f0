package trace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/clusterrun/clusterrun/workflows/text/shorten"
)

// sendBound is the longest time for a collector to answer, as in OpenTelemetry's own exporters.
const sendBound = 10 * time.Second

// Collector is a receiver of traces.
type Collector struct {
	URL     string
	Headers http.Header
}

// CollectorOf returns the collector that the variables of OpenTelemetry name, or else the
// default one on this machine. getenv reads the variables.
func CollectorOf(getenv func(string) string) (Collector, error) {
	from, path := "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", ""
	given := getenv(from)
	if given == "" {
		from, path = "OTEL_EXPORTER_OTLP_ENDPOINT", "/v1/traces"
		given = cmp.Or(getenv(from), "http://localhost:4318")
	}
	c := Collector{URL: strings.TrimSuffix(given, "/") + path, Headers: http.Header{}}
	if u, err := url.Parse(given); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return c, fmt.Errorf("%s: %q is not the URL of a collector, such as http://localhost:4318", from, given)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"} {
		for pair := range strings.SplitSeq(getenv(name), ",") {
			key, value, ok := strings.Cut(pair, "=")
			if strings.TrimSpace(pair) == "" {
				continue
			}
			value, err := url.PathUnescape(strings.TrimSpace(value))
			if key = strings.TrimSpace(key); !ok || err != nil || key == "" {
				return c, fmt.Errorf("%s: write it like name=value,name=value, with %%2C for a comma", name) // it may be a secret
			}
			c.Headers.Set(key, value)
		}
	}
	return c, nil
}

// Send sends traces to a collector.
func (c Collector) Send(ctx context.Context, t *Traces) error {
	body, err := json.Marshal(t)
	if err != nil {
		return err
	}
	ctx, done := context.WithTimeout(ctx, sendBound)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = c.Headers.Clone()
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("send the trace: %w", err)
	}
	defer answer.Body.Close()
	const most = 4 << 10
	text, _ := io.ReadAll(io.LimitReader(answer.Body, most))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector at %s refuses the trace: %s %s", c.URL, answer.Status, shorten.Text(strings.TrimSpace(string(text)), maxMessage))
	}
	var partly struct {
		Rejected struct {
			Spans json.Number `json:"rejectedSpans"`
			Why   string      `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if json.Unmarshal(text, &partly) == nil && partly.Rejected.Spans != "" && partly.Rejected.Spans != "0" {
		return errors.New("the collector at " + c.URL + " did not take " + partly.Rejected.Spans.String() + " of the spans: " + partly.Rejected.Why)
	}
	return nil
}
