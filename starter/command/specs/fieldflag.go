package specs

import (
	"reflect"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// addFlag adds a field's flag, with a type that suits the field.
func addFlag(fs *pflag.FlagSet, f spec.Flag) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == reflect.TypeFor[spec.Duration]():
		fs.Var(new(cli.Duration), f.Name, f.Usage)
	case t == reflect.TypeFor[spec.Resources](), t == reflect.TypeFor[spec.Variable](), t.Kind() == reflect.String:
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

// setField sets a field to its flag's value.
func setField(field reflect.Value, value pflag.Value) {
	if field.Kind() == reflect.Pointer {
		field.Set(reflect.New(field.Type().Elem()))
		field = field.Elem()
	}
	switch value := value.(type) {
	case *cli.Duration:
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

// setText sets a field to a value in pflag's text form.
func setText(field reflect.Value, text string) {
	switch field.Type() {
	case reflect.TypeFor[spec.Variable]():
		field.Set(reflect.ValueOf(spec.Variable{Value: text}))
		return
	case reflect.TypeFor[spec.After]():
		field.Set(reflect.ValueOf(spec.AfterOf(text)))
		return
	}
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
