package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/clusterrun/clusterrun/starter/command"
	"github.com/clusterrun/clusterrun/starter/help"
)

// writeShare writes manual pages and completions where programs look for them below dir.
func writeShare(dir string, when time.Time) error {
	root := command.Commands(io.Discard)
	root.InitDefaultCompletionCmd()
	files := map[string]func(io.Writer) error{
		"bash-completion/completions/clusterrun":    func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"zsh/site-functions/_clusterrun":            root.GenZshCompletion,
		"fish/vendor_completions.d/clusterrun.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
	}
	var pages []page
	for _, c := range documented(root) {
		pages = append(pages, commandPage(c))
	}
	for _, name := range help.Names() {
		topic, err := topicPage(name)
		if err != nil {
			return err
		}
		pages = append(pages, topic)
	}
	for _, p := range pages {
		name := fmt.Sprintf("man/man%s/%s.%s", p.section, p.name, p.section)
		files[name] = func(w io.Writer) error { return p.write(w, when) }
	}
	for name, write := range files {
		var content bytes.Buffer
		if err := write(&content); err != nil {
			return err
		}
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, content.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
