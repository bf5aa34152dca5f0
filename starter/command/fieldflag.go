package command

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/workflows/spec"
)

// addFlag adds the flag of a field, as the field's type has it.
func addFlag(fs *pflag.FlagSet, f spec.Flag) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[spec.Duration]():
		fs.Var(new(duration), f.Name, f.Usage)
	case t == reflect.TypeFor[spec.Resources](), t.Kind() == reflect.String:
		fs.String(f.Name, "", f.Usage)
	case t.Kind() == reflect.Bool:
		fs.Bool(f.Name, false, f.Usage)
	case t.Kind() == reflect.Int:
		fs.Int(f.Name, 0, f.Usage)
	case t == reflect.TypeFor[[]int]():
		fs.IntSlice(f.Name, nil, f.Usage)
	case f.Repeated:
		fs.StringArray(f.Name, nil, f.Usage)
	default:
		fs.StringSlice(f.Name, nil, f.Usage)
	}
}

// setField gives a field the value of its flag.
func setField(field reflect.Value, value pflag.Value) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch value := value.(type) {
	case *duration:
		field.SetInt(int64(*value))
	case pflag.SliceValue:
		items := value.GetSlice()
		field.Set(reflect.MakeSlice(field.Type(), len(items), len(items)))
		for i, item := range items {
			setText(field.Index(i), item)
		}
	default:
		setText(field, value.String())
	}
}

// setText is called with a value as pflag writes it.
func setText(field reflect.Value, text string) {
	switch field.Kind() {
	case reflect.Bool:
		field.SetBool(text == "true")
	case reflect.Int:
		n, _ := strconv.Atoi(text)
		field.SetInt(int64(n))
	case reflect.String:
		field.SetString(text)
	default:
		field.Set(reflect.ValueOf(spec.ResourcesOf(text)))
	}
}

// duration is a flag's time span. It tells what to write where pflag's own says
// only what is wrong.
type duration time.Duration

func (d *duration) Set(text string) error {
	v, err := time.ParseDuration(text)
	if err != nil {
		if _, number := strconv.Atoi(text); number == nil {
			return fmt.Errorf("%q has no unit; write %ss, %sm or %sh", text, text, text, text)
		}
		return fmt.Errorf("%q is no time span; write it like 3s, 90m or 1h30m", text)
	}
	*d = duration(v)
	return nil
}

// String is empty for none, so that help does not call 0s the default.
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}
func (d *duration) Type() string { return "duration" }

func (d duration) spec() *spec.Duration { return spec.DurationOf(time.Duration(d)) }
