package cli

import (
	"encoding/json"
	"fmt"
)

func (a *App) PrintRaw(b []byte) error {
	_, err := a.Out.Write(b)
	return err
}

// PrintJSON prints one document to stdout.
func (a *App) PrintJSON(v any) error { return a.encode(v, "  ") }

// PrintJSONLine prints one of several documents to stdout, on its own line.
func (a *App) PrintJSONLine(v any) error { return a.encode(v, "") }

// Print prints v as JSON if --json is given, and otherwise calls text.
func (a *App) Print(v any, text func()) error {
	if a.Global.JSON {
		return a.PrintJSON(v)
	}
	text()
	return nil
}

// PrintLine prints v as JSON if --json is given, and otherwise a line.
func (a *App) PrintLine(v any, format string, args ...any) error {
	if a.Global.JSON {
		return a.PrintJSON(v)
	}
	_, err := fmt.Fprintf(a.Out, format+"\n", args...)
	return err
}

func (a *App) encode(v any, indent string) error {
	a.printed = true
	e := json.NewEncoder(a.Out)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}
