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

// VariableCache names the environment variable that says where installs go.
const VariableCache = "WEIR_CACHE"

// CacheDir returns the folder in which installs and the states of kept systems
// are: what VariableCache says, or weir in the user's cache folder. lookup is as
// os.LookupEnv.
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

// installedFile says that an install is whole.
const installedFile = "installed.json"

// schemaInstalled names the format of installedFile.
const schemaInstalled = "weir.installed/v1"

// An Installation is where the programs of a recipe are.
type Installation struct {
	Schema   string            `json:"schema"`
	Name     string            `json:"name"`
	Version  string            `json:"version"` // as far as the source tells it
	Source   string            `json:"source"`  // go, maven, apt, pypi; host where the programs are the host's own
	Programs map[string]string `json:"programs"`
	Env      []string          `json:"env,omitempty"` // that they need: NAME=value

	Dir string `json:"-"` // "" where the programs are the host's own
}

// home is the folder that an install of the recipe has in the cache. What is
// installed otherwise is elsewhere.
func (r *Recipe) home(cache string) string {
	b, err := json.Marshal(r.Install) // maps in the order of their keys
	if err != nil {                   // texts and flags only
		b = []byte(r.Version)
	}
	sum := sha256.Sum256(append(b, runtime.GOOS+"/"+runtime.GOARCH...))
	return filepath.Join(cache, r.Name, r.Version+"-"+hex.EncodeToString(sum[:4]))
}

// load returns what is installed in dir, nil where nothing is. Paths in the file
// are below the folder, so that the cache may be moved.
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
