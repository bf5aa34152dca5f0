package sweep

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Order sorts trials by a number in their values or metrics.
type Order struct {
	// Key is the name of a metric, the dotted path of a number in a returned object, or "value" for
	// a returned number.
	Key string
	// Max reports whether the largest number is the best.
	Max bool
}

// ParseOrder parses an order such as "loss:min".
func ParseOrder(text string) (o Order, err error) {
	key, order, _ := strings.Cut(text, ":")
	if key == "" || order != "min" && order != "max" {
		return o, fmt.Errorf("%q is no order of trials; give a returned value's key or a metric's name, and which is best, such as loss:min or accuracy:max; value:min is for values that are numbers", text)
	}
	return Order{key, order == "max"}, nil
}

func (o Order) String() string {
	if o.Max {
		return o.Key + ":max"
	}
	return o.Key + ":min"
}

// Of returns a trial's number. A returned value takes precedence over a metric.
func (o Order) Of(value json.RawMessage, metrics map[string]float64) (n float64, ok bool) {
	at := value
	if o.Key != "value" || isObject(value) {
		for part := range strings.SplitSeq(o.Key, ".") {
			var object map[string]json.RawMessage
			_ = json.Unmarshal(at, &object) // object remains nil on errors
			at = object[part]
		}
	}
	if at != nil && json.Unmarshal(at, &n) == nil && !bytes.Equal(at, []byte("null")) {
		return n, true
	}
	n, ok = metrics[o.Key]
	return n, ok && !math.IsNaN(n)
}

func isObject(value json.RawMessage) bool {
	return bytes.HasPrefix(bytes.TrimSpace(value), []byte("{"))
}

// Best returns the indices of trials with a number, best first.
func (o Order) Best(n int, of func(i int) (float64, bool)) (best []int) {
	numbers := make([]float64, n)
	for i := range n {
		number, ok := of(i)
		if numbers[i] = number; o.Max {
			numbers[i] = -number
		}
		if ok {
			best = append(best, i)
		}
	}
	slices.SortStableFunc(best, func(a, b int) int {
		switch {
		case numbers[a] < numbers[b]:
			return -1
		case numbers[a] > numbers[b]:
			return 1
		}
		return 0
	})
	return best
}

// Keys returns a trial's keys for [ParseOrder]: a returned object's numbers, except nested ones,
// "value" for a returned number, and the metrics.
func Keys(value json.RawMessage, metrics map[string]float64) (keys []string) {
	var object map[string]json.RawMessage
	_ = json.Unmarshal(value, &object) // object remains nil on errors
	for key := range object {
		if _, ok := (Order{Key: key}).Of(value, nil); ok {
			keys = append(keys, key)
		}
	}
	if _, ok := (Order{Key: "value"}).Of(value, nil); ok && object == nil {
		keys = append(keys, "value")
	}
	for key := range metrics {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}
