package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"html/template"
	"io"
	"io/fs"
	"sync"
)

//go:embed assets
var assetFiles embed.FS

//go:embed templates
var templateFiles embed.FS

// Assets returns the files that live pages load from /assets/.
func Assets() fs.FS {
	files, err := fs.Sub(assetFiles, "assets")
	if err != nil {
		panic(err) // they are in the program
	}
	return files
}

// AssetsPath is where servers provide [Assets]. A query in pages' links changes with the
// content, so browsers may cache it forever.
const AssetsPath = "/assets/"

func asset(name string) []byte {
	text, err := fs.ReadFile(assetFiles, "assets/"+name)
	if err != nil {
		panic(err)
	}
	return text
}

// assetURL returns an asset's address.
func assetURL(name string) string {
	sum := sha256.Sum256(asset(name))
	return AssetsPath + name + "?v=" + hex.EncodeToString(sum[:6])
}

func hashOf(name string) string {
	sum := sha256.Sum256(asset(name))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// CSP returns a page's Content-Security-Policy. A server sends it as a header. A file has it in
// a meta element.
func CSP(m Mode) string {
	if m == File {
		return "default-src 'none'; style-src " + hashOf("page.css") + "; script-src " + hashOf("page.js") + "; img-src data:; base-uri 'none'; form-action 'none'"
	}
	return "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
}

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/*.html"))
})

// render executes a page's template with its model. It writes nothing if it fails.
func render(w io.Writer, name string, model any) error {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, name, model); err != nil {
		return err
	}
	_, err := b.WriteTo(w)
	return err
}
