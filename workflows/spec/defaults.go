package spec

import (
	"cmp"
	"reflect"
	"slices"
	"time"
)

// Defaults of a spec. Where possible, they are TensorFlow's or torchrun's.
const (
	DefaultRPCLayer         = "grpc"
	DefaultChiefGrace       = Duration(3 * time.Second)
	DefaultOnFailure        = OnFailureStop
	DefaultRestartScope     = RestartScopeTask
	DefaultPlacementTimeout = Duration(time.Minute)
	DefaultPriority         = 3
	DefaultStrategy         = StrategyPack
	DefaultJoinWait         = Duration(30 * time.Second)
	DefaultGrow             = GrowNever
	DefaultBarriers         = BarriersServer
	DefaultSameErrors       = 3
	DefaultStopSignal       = "SIGTERM"
	DefaultStopGrace        = Duration(30 * time.Second)
	DefaultErrorGrace       = Duration(2 * time.Second)
	DefaultStdMask          = "3"
	DefaultTogetherGrace    = Duration(2 * time.Minute)
	DefaultSilence          = Silence("10m")
)

// WithDefaults returns a deep copy with every default set, and with canonical signal names. Fields
// that remain unset mean that there is no limit (MaxRestarts, MaxRunTime, Timeout) or are filled in
// by the host (Dir, Logs.Dir). It is idempotent.
func (s *RunSpec) WithDefaults() *RunSpec {
	d := clone(reflect.ValueOf(s)).Interface().(*RunSpec)
	setDefaults(reflect.ValueOf(d).Elem())
	d.Stop.Signal = canonicalSignal(d.Stop.Signal)
	d.NoticeSignal = canonicalSignal(d.NoticeSignal)
	if d.total() > 1 { // a single task's stacks cannot be compared
		d.Silence = cmp.Or(d.Silence, DefaultSilence)
		if d.Silence.IsWatched() {
			d.OnSilence = cmp.Or(d.OnSilence, OnSilenceReport)
		}
	}
	for i := range d.Tasks {
		g := &d.Tasks[i]
		if len(g.Addresses) == 0 && g.Count == nil {
			g.Count = new(1)
		}
		g.Stop.Signal = canonicalSignal(g.Stop.Signal)
	}
	return d
}

// setDefaults sets the unset fields of a struct and its nested structs.
func setDefaults(v reflect.Value) {
	for i := range v.NumField() {
		field := v.Field(i)
		if field.Kind() == reflect.Struct {
			setDefaults(field)
			continue
		}
		def := fieldOf(fieldKey(v.Type(), jsonName(v.Type().Field(i)))).def
		if def == nil || !field.IsZero() {
			continue
		}
		if field.Kind() == reflect.Pointer {
			field.Set(reflect.New(field.Type().Elem()))
			field = field.Elem()
		}
		field.Set(clone(reflect.ValueOf(def)))
	}
}

// clone returns a deep copy of v.
func clone(v reflect.Value) reflect.Value {
	c := reflect.New(v.Type()).Elem()
	c.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.Set(reflect.New(v.Type().Elem()))
			c.Elem().Set(clone(v.Elem()))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			c.Field(i).Set(clone(v.Field(i)))
		}
	case reflect.Slice:
		if !v.IsNil() {
			c.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			for i := range v.Len() {
				c.Index(i).Set(clone(v.Index(i)))
			}
		}
	case reflect.Map:
		if !v.IsNil() {
			c.Set(reflect.MakeMap(v.Type()))
			for _, key := range v.MapKeys() { // in any order, since maps are unordered
				c.SetMapIndex(key, clone(v.MapIndex(key)))
			}
		}
	}
	return c
}

// sortedKeys is the only way this package iterates over a map: a workflow must visit the entries
// in the same order on replay.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	//workflowcheck:ignore the order is made below
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
