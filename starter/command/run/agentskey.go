package run

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/clusterrun/clusterrun/activities/system/atomicfile"
	"github.com/clusterrun/clusterrun/starter/command/cli"
	"github.com/clusterrun/clusterrun/starter/hosts/agents"
	"github.com/clusterrun/clusterrun/starter/launchers/torchrun"
	"github.com/clusterrun/clusterrun/workflows/spec"
)

// agentsKey returns the agents' shared key. If all agents are on this machine, it may come from
// a file that only its user can read.
func agentsKey(a *cli.App, m *torchrun.Meeting) ([]byte, error) {
	secret, err := agents.Secret(m.TokenFile, os.Getenv)
	switch {
	case errors.Is(err, agents.ErrNoToken) && spec.IsLoopback(m.Host):
		key, err := ownKey(a.Global.StateDir)
		if err != nil {
			return nil, fmt.Errorf("state directory: %w", err)
		}
		return key, nil
	case err != nil:
		return nil, cli.Usagef("%s", err)
	}
	return agents.Key(secret)
}

// ownKey returns the key derived from this user's secret, which it creates if needed.
func ownKey(dir string) ([]byte, error) {
	file := filepath.Join(dir, "agents.key")
	secret, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeSecret(file); err == nil {
			secret, err = os.ReadFile(file)
		}
	}
	if err != nil {
		return nil, err
	}
	key, err := agents.Key(secret)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; remove the file to create a new one", file, err)
	}
	return key, nil
}

// makeSecret creates a secret's file. The file is complete even after a power cut. If another
// process creates it first, makeSecret keeps that file.
func makeSecret(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	made := file + "." + rand.Text()
	defer os.Remove(made)
	if err := atomicfile.WriteSynced(made, []byte(rand.Text()), 0o600); err != nil {
		return err
	}
	if err := os.Link(made, file); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
