package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// VariableCache is the environment variable that sets the installation folder.
const VariableCache = "WEIR_CACHE"

// CacheDir returns the folder for installs and for the state of kept systems: the value of
// VariableCache, or weir in the user's cache folder. lookup has the semantics of os.LookupEnv.
func CacheDir(lookup func(string) (string, bool)) (string, error) {
	if dir, ok := lookup(VariableCache); ok && dir != "" {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("%s: %s is not absolute (a folder's absolute path)", VariableCache, dir)
		}
		return filepath.Clean(dir), nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache folder: %w (set %s to a folder)", err, VariableCache)
	}
	return filepath.Join(dir, "weir"), nil
}

// installedFile marks a complete install.
const installedFile = "installed.json"

// schemaInstalled is the format name in installedFile.
const schemaInstalled = "weir.installed/v1"

// An Installation locates the programs of a recipe.
type Installation struct {
	Schema   string            `json:"schema"`
	Name     string            `json:"name"`
	Version  string            `json:"version"` // as far as the source reports it
	Source   string            `json:"source"`  // go, maven, apt, pypi; host for the host's own programs
	Programs map[string]string `json:"programs"`
	Env      []string          `json:"env,omitempty"` // environment the programs need, as NAME=value

	Dir string `json:"-"` // "" for the host's own programs
}

// home returns the cache folder for an install of the recipe. A different install specification gets a
// different folder.
func (r *Recipe) home(cache string) string {
	b, err := json.Marshal(r.Install) // maps in the order of their keys
	if err != nil {                   // only strings and booleans: cannot fail
		b = []byte(r.Version)
	}
	sum := sha256.Sum256(append(b, runtime.GOOS+"/"+runtime.GOARCH...))
	return filepath.Join(cache, r.Name, r.Version+"-"+hex.EncodeToString(sum[:4]))
}

// load returns the install in dir, or nil if there is none. Paths in the file are relative to the
// folder, so that the cache can be moved.
func load(dir string) (*Installation, error) {
	b, err := os.ReadFile(filepath.Join(dir, installedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the install: %w", err)
	}
	in := &Installation{}
	if err := json.Unmarshal(b, in); err != nil || in.Schema != schemaInstalled {
		return nil, fmt.Errorf("weir did not write %s (remove the folder %s, and install again)", filepath.Join(dir, installedFile), dir)
	}
	in.Dir = dir
	for name, p := range in.Programs {
		full := filepath.Join(dir, p)
		if _, err := os.Stat(full); err != nil {
			return nil, fmt.Errorf("the install of %s is incomplete: %w (remove the folder %s, and install again)", name, err, dir)
		}
		in.Programs[name] = full
	}
	for i, e := range in.Env {
		in.Env[i] = os.Expand(e, func(name string) string {
			if name == "DIR" {
				return dir
			}
			return "$" + name
		})
	}
	return in, nil
}
